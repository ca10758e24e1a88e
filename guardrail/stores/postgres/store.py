"""PostgreSQL as a store: each look in a read-only snapshot of its own."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from time import monotonic
from typing import cast

from psycopg import Error

from guardrail.pictures import Answer
from guardrail.query.proof import Dialect
from guardrail.stores.answers import unanswered
from guardrail.stores.deadlines import Deadline, adeadline, deadline
from guardrail.stores.looks import look
from guardrail.stores.postgres.attempts import Attempt, attempt
from guardrail.stores.postgres.connections import Async, Either, Sync
from guardrail.stores.postgres.drivers import adrive, drive
from guardrail.stores.postgres.faults import is_away, reason
from guardrail.stores.postgres.grammar import PostgresGrammar, limit, opening
from guardrail.stores.postgres.positions import PostgresPositions
from guardrail.stores.postgres.remarks import remarks
from guardrail.stores.sources import AsyncSource, Lease
from guardrail.stores.store import Question, Remark, Trial
from guardrail.threads import in_thread


class PostgresStore:
    """A PostgreSQL database that is only read. `timeout` bounds one look, in seconds."""

    dialect: Dialect = "postgres"

    def __init__(self, name: str, source: AsyncSource[Either], timeout: float) -> None:
        self.name = name
        self.positions = PostgresPositions()
        self._source = source
        self._timeout = timeout

    def look(self, questions: Sequence[Question]) -> list[Answer]:
        """Answer all questions from one snapshot; see `Store`."""
        if self._source.is_async:
            return self._unanswered(questions, _ASYNC)
        until = monotonic() + self._timeout
        try:
            while (answers := self._looked(questions, until)) is None:
                pass
        except Exception as error:  # noqa: BLE001 - beside psycopg, the user's factory or pool may raise anything
            return self._unanswered(questions, reason(error))
        return answers

    async def alook(self, questions: Sequence[Question]) -> list[Answer]:
        """The same by awaiting; a connection or a pool that blocks is used on a thread."""
        until = monotonic() + self._timeout
        try:
            while (answers := await self._alooked(questions, until)) is None:
                pass
        except Exception as error:  # noqa: BLE001 - as above
            return self._unanswered(questions, reason(error))
        return answers

    def for_run(self) -> PostgresStore:
        """The store as one run sees it; see `Store`."""
        source = self._source.for_run()
        return self if source is self._source else PostgresStore(self.name, source, self._timeout)

    def examine(self, trial: Trial | None = None) -> tuple[Remark, ...]:
        """Whether it can be looked at, what its role may do, which tables hide rows or have no key."""
        return remarks(self)

    def close(self) -> None:
        """Close the connections that are kept."""
        self._source.close()

    def _looked(self, questions: Sequence[Question], until: float) -> list[Answer] | None:
        """The answers; None where a kept connection was lost, so that another is to be tried."""
        with self._source.lease(_left(until)) as lease, deadline(lease.connection.fileno(), _left(until)) as time:
            try:
                return drive(cast("Sync", lease.connection), self._attempt(questions, lease, time))
            except Error as error:
                _mind(error, lease)
                return None

    async def _alooked(self, questions: Sequence[Question], until: float) -> list[Answer] | None:
        source = await self._source.found()
        if source.is_async is False:
            blocking = PostgresStore(self.name, source, _left(until))
            return cast("list[Answer]", await in_thread(partial(blocking.look, questions)))
        async with source.alease(_left(until)) as lease:
            with adeadline(lease.connection.fileno(), _left(until)) as time:
                try:
                    return await adrive(cast("Async", lease.connection), self._attempt(questions, lease, time))
                except Error as error:
                    _mind(error, lease)
                    return None

    def _attempt(self, questions: Sequence[Question], lease: Lease[Either], time: Deadline) -> Attempt:
        """How the questions are asked on a connection."""
        asking = look(questions, PostgresGrammar(), self.name)
        is_direct = lease.own and lease.connection.prepare_threshold is not None
        return attempt(asking, opening(lease.own), limit, time, is_direct=is_direct)

    def _unanswered(self, questions: Sequence[Question], why: str) -> list[Answer]:
        return [unanswered(self.name, question, why) for question in questions]


def _left(until: float) -> float:
    """How many seconds are left. Raises `TimeoutError` when there are none."""
    left = until - monotonic()
    if left <= 0:
        raise TimeoutError
    return left


def _mind(error: Error, lease: Lease[Either]) -> None:
    """Raise an error unless a connection that had been idle was lost, so that another is worth a try."""
    if not (lease.used and is_away(error)):
        raise error


_ASYNC = "it was given an asynchronous connection, and the run is not asynchronous: open the run by `async with`"
