"""PostgreSQL as a store: each look in a read-only snapshot of its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import cast

from psycopg import Error

from guardrail.pictures import Answer
from guardrail.query.proof import Dialect
from guardrail.stores.answers import unanswered
from guardrail.stores.deadlines import adeadline, deadline
from guardrail.stores.looks import Looking, Statement, look
from guardrail.stores.postgres.connections import Async, Either, Sync
from guardrail.stores.postgres.drivers import adrive, drive
from guardrail.stores.postgres.faults import is_away, reason
from guardrail.stores.postgres.grammar import PostgresGrammar, opening
from guardrail.stores.postgres.positions import PostgresPositions
from guardrail.stores.postgres.remarks import remarks
from guardrail.stores.sources import AsyncSource, Lease
from guardrail.stores.store import Question, Remark
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
        try:
            while (answers := self._looked(questions)) is None:
                pass
        except Exception as error:  # noqa: BLE001 - beside psycopg, the user's factory or pool may raise anything
            return self._unanswered(questions, reason(error))
        return answers

    async def alook(self, questions: Sequence[Question]) -> list[Answer]:
        """The same by awaiting; a connection or a pool that blocks is used on a thread."""
        if self._source.is_async is False:
            return cast("list[Answer]", await in_thread(partial(self.look, questions)))
        try:
            while (answers := await self._alooked(questions)) is None:
                pass
        except Exception as error:  # noqa: BLE001 - as above
            return self._unanswered(questions, reason(error))
        return answers

    def for_run(self) -> PostgresStore:
        """The store as one run sees it; see `Store`."""
        source = self._source.for_run()
        return self if source is self._source else PostgresStore(self.name, source, self._timeout)

    def examine(self) -> tuple[Remark, ...]:
        """Whether it can be looked at, what its role may do, which tables hide rows or have no key."""
        return remarks(self)

    def close(self) -> None:
        """Close the connections that are kept."""
        self._source.close()

    def _looked(self, questions: Sequence[Question]) -> list[Answer] | None:
        """The answers; None where a kept connection was lost, so that another is to be tried."""
        with self._source.lease(self._timeout) as lease, deadline(lease.connection.fileno(), self._timeout) as watched:
            try:
                return drive(cast("Sync", lease.connection), *self._look(questions, lease))
            except Error as error:
                if watched.passed:
                    raise TimeoutError from error
                if not (lease.used and is_away(error)):
                    raise
                return None

    async def _alooked(self, questions: Sequence[Question]) -> list[Answer] | None:
        async with self._source.alease(self._timeout) as lease:
            with adeadline(lease.connection.fileno(), self._timeout) as watched:
                try:
                    return await adrive(cast("Async", lease.connection), *self._look(questions, lease))
                except Error as error:
                    if watched.passed:
                        raise TimeoutError from error
                    if not (lease.used and is_away(error)):
                        raise
                    return None

    def _look(
        self, questions: Sequence[Question], lease: Lease[Either]
    ) -> tuple[Sequence[Statement], Callable[[], Looking]]:
        """What a look begins with, and its flow."""
        grammar = PostgresGrammar(lease.connection.info.server_version)
        return opening(self._timeout), partial(look, questions, grammar, self.name)

    def _unanswered(self, questions: Sequence[Question], why: str) -> list[Answer]:
        return [unanswered(self.name, question, why) for question in questions]


_ASYNC = "it was given an asynchronous connection, and the run is not asynchronous: open the run by `async with`"
