"""One look at an HTTP API: its questions answered by a flow of requests, which knows neither sockets nor loops."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC
from email.utils import parsedate_to_datetime
from functools import partial
from typing import Final, TypeAlias, TypeVar, cast

from guardrail.continuations import total
from guardrail.errors import StoreError
from guardrail.pictures import Answer, Exchange, Picture, Rows, Table, Tables
from guardrail.pointers import MISSING, follow, tokens
from guardrail.query.requests import Request
from guardrail.query.urls import Url
from guardrail.stores.answers import missing, unanswered
from guardrail.stores.http.api import Api, Place, Resource
from guardrail.stores.http.connections import Send
from guardrail.stores.http.keeping import Kept
from guardrail.stores.http.messages import Message, check_depth, document
from guardrail.stores.http.network import Away, Deadline, Late
from guardrail.stores.http.pages import MOST_PAGES, following, of_same_origin
from guardrail.stores.http.pictures import Gathering, rows_in
from guardrail.stores.store import Ask, Fetch, Photograph, Question, Survey

T = TypeVar("T")

MOST_REDIRECTS: Final = 5
FIRST_PAUSE: Final = 0.1
"""How many seconds lie before the second try; before each further one twice as many, and a little less by chance."""

_OWN: Final = {"Accept": "application/json", "User-Agent": "guardrail", "Cache-Control": "no-cache"}
"""What is sent unless it is declared otherwise: an answer is asked of the server itself, not of a cache before it."""

_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
_ANOTHER_TIME: Final = frozenset({429, 502, 503, 504})


@dataclass(frozen=True, slots=True)
class Rest:
    """Wait some seconds."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Compute:
    """Do a piece of work that takes the processor's time."""

    do: Callable[[], object]


Step: TypeAlias = Send | Rest | Compute
"""What a flow needs done: it is sent a `Message`, nothing, or what the work gave."""

Flow: TypeAlias = Generator[Step, object, T]


@dataclass(slots=True)
class _Trail:
    """What a question has led to so far: the last status, and how often a request was sent again."""

    status: int | None = None
    resends: int = 0


class Visit:
    """One look at an API: everything is asked at one place and within one deadline."""

    def __init__(
        self, store: str, api: Api, place: Place, deadline: Deadline, kept: Kept | None, context: Mapping[str, str]
    ) -> None:
        """Of `kept`, answers are taken that have not changed; `context` are headers that tell the trace."""
        self._store = store
        self._api = api
        self._place = place
        self._deadline = deadline
        self._kept = kept
        declared = {name.lower() for name in place.headers}
        own = {name: text for name, text in {**context, **_OWN}.items() if name.lower() not in declared}
        self._headers = {**own, **place.headers}
        self._values: dict[str, tuple[object, _Trail]] = {}
        self._trail = _Trail()

    def answers(self, questions: Sequence[Question]) -> Flow[list[Answer]]:
        """The answers to all questions, one after the other."""
        answers: list[Answer] = []
        for question in questions:
            self._trail = _Trail()
            try:
                answers.append((yield from self._answer(question)))
            except StoreError as error:
                told = self._exchange(question, error)
                answers.append(replace(unanswered(self._store, question, str(error)), exchange=told))
        return answers

    def first_pages(self, resource: Resource, values: Mapping[str, object]) -> Flow[list[Mapping[str, object]] | None]:
        """The rows on the first page of a resource, and on the next one if there is one.

        None where there are none by its status. Raises `StoreError`.
        """
        first = self._url(resource.request, values)
        here, message = yield from self._got(first)
        if self._is_absent(message, resource.absent):
            return None
        rows, after = yield from self._read(message, resource, first, here)
        if after is not None:
            _check_page(after, {first.target, here.target})
            here, message = yield from self._got(after)
            if self._is_absent(message, resource.absent):
                raise _broken_off(message)
            more, _ = yield from self._read(message, resource, first, here)
            rows += more
        return rows

    def _read(
        self, message: Message, resource: Resource, first: Url, here: Url
    ) -> Flow[tuple[list[Mapping[str, object]], Url | None]]:
        """The rows of a page, and where the next one is."""
        read = yield Compute(partial(_page, message, resource, first, here))
        return cast("tuple[list[Mapping[str, object]], Url | None]", read)

    def home(self) -> Flow[int]:
        """The status that the API's own URL answers with."""
        _, message = yield from self._got(self._place.url)
        return message.status

    def _answer(self, question: Question) -> Flow[Answer]:
        match question:
            case Fetch():
                return (yield from self._value(question))
            case Photograph():
                return (yield from self._picture(question))
            case Survey():
                found = self._api.resources.values()
                return Tables(tuple(Table(resource.name, resource.key, (), {}) for resource in found))
            case Ask():
                raise StoreError("it is an HTTP store, which takes no SQL")

    def _value(self, question: Fetch) -> Flow[Rows]:
        steps = tokens(question.at)
        page = yield from self._page(self._url(question.request, question.values))
        value = follow(page, steps)
        check_depth(value)
        rows = () if value is MISSING else ((value,),)
        return Rows((steps[-1] if steps else "value",), rows, self._exchange(question))

    def _page(self, url: Url) -> Flow[object]:
        """The document that a URL answers, `MISSING` where there is none; asked once in a look."""
        if url.target not in self._values:
            _, message = yield from self._got(url)
            absent = self._is_absent(message, self._api.absent)
            page = MISSING if absent else (yield Compute(partial(document, message)))
            self._values[url.target] = page, self._trail
        page, self._trail = self._values[url.target]
        return page

    def _picture(self, question: Photograph) -> Flow[Answer]:
        resource = self._api.resources.get(question.table)
        if resource is None:
            raise StoreError(missing(question.table, tuple(self._api.resources)))
        if question.where is not None:
            raise StoreError("it is an HTTP store, which takes no SQL")
        gathering = Gathering(question, resource)
        first = self._url(resource.request, question.values)
        here: Url | None = first
        seen: set[str] = set()
        while here is not None:
            _check_page(here, seen)
            here, message = yield from self._got(here)
            if self._is_absent(message, resource.absent):
                if len(seen) > 1:
                    raise _broken_off(message)
                break
            taken = partial(_taken, gathering, message, resource, first, here)
            here = cast("Url | None", (yield Compute(taken)))
        picture = yield Compute(gathering.picture)
        return replace(cast("Picture", picture), exchange=self._exchange(question))

    def _is_absent(self, message: Message, absent: frozenset[int]) -> bool:
        """Whether a status says that there is none. Raises `StoreError` for one that says neither that nor that there is."""
        if message.status in absent:
            return True
        if message.status == 200:
            return False
        raise StoreError(f"it answered {message.status}{_MEANINGS.get(message.status, '')}")

    def _got(self, url: Url) -> Flow[tuple[Url, Message]]:
        """What a URL answers, and where, after redirects to the same server. Raises `StoreError`."""
        for _ in range(MOST_REDIRECTS + 1):
            message = yield from self._tried(url)
            if message.status not in _REDIRECTS:
                return url, message
            url = self._redirected(url, message)
        raise StoreError(f"it redirects more than {MOST_REDIRECTS} times")

    def _redirected(self, url: Url, message: Message) -> Url:
        reference = message.headers.get("location")
        if reference is None:
            raise StoreError(f"it answered {message.status}, and does not say where to")
        try:
            target = url.at(reference)
        except ValueError as error:
            raise StoreError(f"the URL that it redirects to {error}") from error
        return of_same_origin(url, target, "it redirects to")

    def _tried(self, url: Url) -> Flow[Message]:
        """What a URL answers, tried again while the server is busy or away and there is time.

        What an earlier try came to says more than that the last one took too long.
        """
        pause = FIRST_PAUSE
        found: Message | StoreError | None = None
        while True:
            wait = pause * random.uniform(0.5, 1)
            try:
                found = yield from self._sent(url)
            except Away as error:
                found = error
            except Late as error:
                return _given(found or error)
            else:
                wait = max(wait, _asked_to_wait(found))
                if found.status not in _ANOTHER_TIME:
                    return found
            if not self._deadline.allows(wait):
                return _given(found)
            yield Rest(wait)
            self._trail.resends += 1
            pause *= 2

    def _sent(self, url: Url) -> Flow[Message]:
        """What a URL answers; where that has not changed since it was last read in this run, the answer of then."""
        former = self._kept.get(url.target) if self._kept is not None else None
        headers = dict(self._headers)
        if former is not None and former.tag is not None:
            headers["If-None-Match"] = former.tag
        message = cast("Message", (yield Send(url, tuple(headers.items()))))
        self._trail.status = message.status
        if message.status == 304 and former is not None:
            return former
        if message.status == 200 and self._kept is not None:
            self._kept.put(url.target, message)
        return message

    def _url(self, request: Request, values: Mapping[str, object]) -> Url:
        base = self._place.url
        return Url(base.origin, base.path.rstrip("/") + request.target(values))

    def _exchange(self, question: Question, error: StoreError | None = None) -> Exchange | None:
        """What telemetry may tell of a question's requests."""
        request = self._request(question)
        if request is None:
            return None
        base = self._place.url
        template = base.path.rstrip("/") + request.template
        query = "&".join(f"{name}=REDACTED" for name, _ in request.query)
        url = f"{base.origin}{template}" + (f"?{query}" if query else "")
        status = self._trail.status
        origin = base.origin
        return Exchange(origin.host, origin.port, url, template, status, self._trail.resends, _kind(error, status))

    def _request(self, question: Question) -> Request | None:
        match question:
            case Fetch(request):
                return request
            case Photograph(table=table) if table in self._api.resources:
                return self._api.resources[table].request
            case _:
                return None


def _given(found: Message | StoreError) -> Message:
    """What a try came to: its answer, or its error, which is raised."""
    if isinstance(found, StoreError):
        raise found
    return found


def _check_page(here: Url, seen: set[str]) -> None:
    """Refuse a page that was read already, and one too many. Raises `StoreError`."""
    if here.target in seen:
        raise StoreError("the next page of one of its pages is one that was read before")
    if len(seen) == MOST_PAGES:
        raise StoreError(f"it has more than {MOST_PAGES:,} pages; ask for larger ones, or narrow the request")
    seen.add(here.target)


def _broken_off(message: Message) -> StoreError:
    return StoreError(f"a page that it named as the next one answered {message.status}")


def _page(message: Message, resource: Resource, first: Url, here: Url) -> tuple[list[Mapping[str, object]], Url | None]:
    """The rows of a page, and where the next one is."""
    page = document(message)
    rows = rows_in(page, resource.rows)
    return rows, following(resource, first, here, page, message.headers.get("link", ""))


def _taken(gathering: Gathering, message: Message, resource: Resource, first: Url, here: Url) -> Url | None:
    """Take the rows of a page, and say where the next one is."""
    page = document(message)
    gathering.hear(total(page, resource.rows))
    gathering.take(rows_in(page, resource.rows))
    return following(resource, first, here, page, message.headers.get("link", ""))


_MEANINGS: Final = {
    304: ", though nothing of it is known",
    401: ": it does not accept the credentials, or there are none",
    403: ": these credentials may not read it",
    429: ": it is asked too often",
    **dict.fromkeys((502, 503, 504), ": it is away"),
}


def _kind(error: StoreError | None, status: int | None) -> str:
    """The kind of an error, in the words of the conventions: the status, or what happened."""
    if error is None:
        return ""
    if isinstance(error, Late):
        return "timeout"
    if status is not None and status != 200:
        return str(status)
    return "connection_error" if isinstance(error, Away) else "guardrail.check_error"


def _asked_to_wait(message: Message) -> float:
    """How many seconds an answer asks to wait before the next try."""
    text = message.headers.get("retry-after", "").strip()
    if text.isdecimal() and text.isascii():
        return float(text[:9])
    try:
        moment = parsedate_to_datetime(text)
    except (TypeError, ValueError):
        return 0.0
    placed = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return placed.timestamp() - time.time()
