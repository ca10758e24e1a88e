"""An HTTP API as a store: its resources are watched like tables, and single values are read of it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import cast

from opentelemetry import baggage, propagate

from guardrail.errors import StoreError
from guardrail.pictures import Answer
from guardrail.query.headers import header_name, header_text
from guardrail.query.proof import Dialect
from guardrail.stores.answers import near, unanswered
from guardrail.stores.http.api import Api, Place, Resource
from guardrail.stores.http.connections import Route, trust
from guardrail.stores.http.drivers import adrive, drive
from guardrail.stores.http.keeping import Kept
from guardrail.stores.http.network import Deadline
from guardrail.stores.http.sources import Source
from guardrail.stores.http.visits import Visit
from guardrail.stores.store import Question, Remark, Trial
from guardrail.threads import in_thread_apart


class HttpStore:
    """An HTTP API that is only read, each look on connections of its own."""

    def __init__(self, name: str, api: Api, source: Source, timeout: float, kept: Kept | None = None) -> None:
        """`kept` are the answers of one run. Raises `StoreError` when the file of `ca` cannot be read."""
        self.name = name
        self.dialect: Dialect | None = None
        self._api = api
        self._source = source
        self._timeout = timeout
        self._kept = kept
        self._route = Route(trust(api.ca), api.proxy, api.private)

    def look(self, questions: Sequence[Question]) -> list[Answer]:
        """Answer all questions, one after the other; see `Store`. An API has no snapshot."""
        deadline = Deadline.in_seconds(self._timeout)
        try:
            place = self._source.place()
        except Exception as error:  # noqa: BLE001 - a function of the user's may raise anything
            return self._none(questions, _untold(error))
        try:
            return drive(self._visit(place, deadline).answers(questions), self._route, deadline)
        except Exception as error:  # noqa: BLE001 - a look never raises, whatever the network's layers let out
            return self._none(questions, _broken(error))

    async def alook(self, questions: Sequence[Question]) -> list[Answer]:
        """The same without blocking the loop."""
        deadline = Deadline.in_seconds(self._timeout)
        try:
            place = await self._aplace(deadline)
        except Exception as error:  # noqa: BLE001 - as above
            return self._none(questions, _untold(error))
        try:
            return await adrive(self._visit(place, deadline).answers(questions), self._route, deadline)
        except Exception as error:  # noqa: BLE001 - as above
            return self._none(questions, _broken(error))

    def for_run(self) -> HttpStore:
        """The store as one run sees it: at one URL, and with answers that need not be sent again while they hold."""
        return HttpStore(self.name, self._api, self._source.bound(), self._timeout, Kept())

    def examine(self, trial: Trial | None = None) -> tuple[Remark, ...]:
        """Whether it can be reached, and whether what it answers has rows with their keys and columns, and its pages."""
        try:
            place = self._source.place()
        except Exception as error:  # noqa: BLE001 - as above
            return (Remark("error", self.name, _untold(error)),)
        return tuple(self._remarks(place, trial or Trial()))

    def close(self) -> None:
        """Nothing to give up: no connection outlives a look."""

    def _visit(self, place: Place, deadline: Deadline) -> Visit:
        return Visit(self.name, self._api, place, deadline, self._kept, _context())

    async def _aplace(self, deadline: Deadline) -> Place:
        if not self._source.asks:
            return self._source.place()
        async with asyncio.timeout(deadline.left):
            return cast("Place", await in_thread_apart(self._source.place))

    def _none(self, questions: Sequence[Question], why: str) -> list[Answer]:
        return [unanswered(self.name, question, why) for question in questions]

    def _remarks(self, place: Place, trial: Trial) -> Iterator[Remark]:
        if place.url.origin.scheme == "http" and place.headers and not self._api.private:
            yield Remark("warning", self.name, "its headers are sent unencrypted; give an https:// URL")
        if not self._api.resources:
            yield Remark("note", self.name, "it has no resources that could be watched, only values that are read")
        inputs = trial.inputs.keys()
        if not any(inputs >= set(resource.request.parameters) for resource in self._api.resources.values()):
            yield from self._of_home(place)
        for resource in self._api.resources.values():
            yield from self._of_resource(resource, place, trial)

    def _of_home(self, place: Place) -> Iterator[Remark]:
        """Of the API's own URL, where no resource can be asked for without inputs."""
        deadline = Deadline.in_seconds(self._timeout)
        try:
            status = drive(self._visit(place, deadline).home(), self._route, deadline)
        except StoreError as error:
            yield Remark("error", self.name, str(error))
            return
        if status in (401, 403):
            yield Remark("warning", self.name, f"its URL answers {status}; are the credentials right?")
        elif status >= 500:
            yield Remark("error", self.name, f"its URL answers {status}")

    def _of_resource(self, resource: Resource, place: Place, trial: Trial) -> Iterator[Remark]:
        where = f"{self.name}.{resource.name}"
        if not resource.key and resource.name not in trial.keys:
            yield Remark("warning", where, "nothing tells its rows apart; declare a key, here or where it is watched")
        lacking = [name for name in resource.request.parameters if name not in trial.inputs]
        if lacking:
            named = ", ".join(f":{name}" for name in lacking)
            given = " ".join(f"--input {name}=VALUE" for name in lacking)
            yield Remark("note", where, f"it was not tried, as it takes inputs ({named}); give them: {given}")
            return
        deadline = Deadline.in_seconds(self._timeout)
        try:
            rows = drive(self._visit(place, deadline).first_pages(resource, trial.inputs), self._route, deadline)
        except StoreError as error:
            yield Remark("error", where, str(error))
            return
        if rows is None:
            asked = "are its path and these inputs right?" if resource.request.parameters else "is its path right?"
            yield Remark("warning", where, f"it answers that there is none, which stands for no rows; {asked}")
        elif rows:
            yield from _of_rows(resource, rows, where, trial)


def _of_rows(resource: Resource, rows: Sequence[Mapping[str, object]], where: str, trial: Trial) -> Iterator[Remark]:
    """Of the columns that are declared to be in rows, which have no schema; a row may leave out what is null."""
    key = trial.keys.get(resource.name, resource.key or ())
    lacking = [name for name in key if any(name not in row for row in rows)]
    if lacking:
        yield Remark("error", where, f"not all of its rows have {', '.join(lacking)}, which is its key")
        return
    known = tuple(dict.fromkeys(name for row in rows for name in row))
    for name in trial.columns.get(resource.name, ()):
        if name not in known:
            text = f"a contract names its column {name}, which none of the rows has that were tried"
            meant = near(name, known)
            yield Remark("warning" if meant else "note", where, text + (meant or ", as if it were null in all"))


def _context() -> Mapping[str, str]:
    """The headers that tell a server in which trace it is asked, but no baggage, which is not meant for it."""
    told: dict[str, str] = {}
    with suppress(Exception):  # a propagator of the user's may raise anything
        propagate.inject(told, baggage.clear())
    headers: dict[str, str] = {}
    for name, text in told.items():
        with suppress(ValueError, TypeError, AttributeError):  # or tell what is no header
            headers[header_name(name)] = header_text(text)
    return headers


def _untold(error: Exception) -> str:
    return str(error) if isinstance(error, StoreError) else f"where it is could not be told ({type(error).__name__})"


def _broken(error: Exception) -> str:
    return str(error) if isinstance(error, StoreError) else f"the look at it failed ({type(error).__name__})"
