"""MariaDB or MySQL as a store: each look in a read-only snapshot of its own."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeVar, cast

from pymysql import Error

from guardrail.errors import StoreError
from guardrail.pictures import Answer
from guardrail.query.proof import Dialect
from guardrail.stores.answers import unanswered
from guardrail.stores.deadlines import deadline
from guardrail.stores.looks import look
from guardrail.stores.mysql.drivers import drive
from guardrail.stores.mysql.faults import is_away, reason
from guardrail.stores.mysql.grammar import MysqlGrammar
from guardrail.stores.mysql.positions import has_reached, position
from guardrail.stores.mysql.remarks import remarks
from guardrail.stores.mysql.settings import Connection, is_mariadb
from guardrail.stores.sources import Source
from guardrail.stores.store import Question, Remark
from guardrail.threads import in_thread

T = TypeVar("T")


class MysqlStore:
    """A MariaDB or MySQL database that is only read. `timeout` bounds one look, in seconds.

    PyMySQL blocks, so the asynchronous methods spend their time on a thread.
    """

    dialect: Dialect = "mysql"

    def __init__(self, name: str, source: Source[Connection], timeout: float) -> None:
        self.name = name
        self._source = source
        self._timeout = timeout

    def look(self, questions: Sequence[Question]) -> list[Answer]:
        """Answer all questions from one snapshot; see `Store`."""
        try:
            return self._with_connection(partial(self._looked, questions))
        except Exception as error:  # noqa: BLE001 - beside PyMySQL, the user's factory may raise anything
            return [unanswered(self.name, question, reason(error)) for question in questions]

    async def alook(self, questions: Sequence[Question]) -> list[Answer]:
        """The same without blocking the loop."""
        return cast("list[Answer]", await in_thread(partial(self.look, questions)))

    def position(self) -> str:
        """What a primary has committed until now, for `wait_for` of its replica. Raises `StoreError`."""
        return self._told(position)

    async def aposition(self) -> str:
        """The same without blocking the loop."""
        return cast("str", await in_thread(self.position))

    def wait_for(self, position: str, seconds: float) -> bool:
        """Wait until a replica has what its primary had at this position; whether it does after so many seconds.

        Raises `StoreError` when it cannot say.
        """
        end = time.monotonic() + seconds
        while True:
            # In parts that fit into the time of one statement; to MySQL, 0 means for ever.
            part = max(0.001, min(end - time.monotonic(), self._timeout / 2))
            if self._told(partial(has_reached, position=position, seconds=part)):
                return True
            if time.monotonic() >= end:
                return False

    async def await_for(self, position: str, seconds: float) -> bool:
        """The same without blocking the loop."""
        return cast("bool", await in_thread(partial(self.wait_for, position, seconds)))

    def for_run(self) -> MysqlStore:
        """The store as one run sees it; see `Store`."""
        source = self._source.for_run()
        return self if source is self._source else MysqlStore(self.name, source, self._timeout)

    def examine(self) -> tuple[Remark, ...]:
        """Whether it can be looked at, what its user may do, which tables have no snapshot or no key, whether it lags."""
        return remarks(self)

    def close(self) -> None:
        """Close the connections that are kept."""
        self._source.close()

    def _looked(self, questions: Sequence[Question], connection: Connection) -> list[Answer]:
        return drive(connection, look(questions, MysqlGrammar(is_mariadb(connection)), self.name))

    def _told(self, tell: Callable[[Connection], T]) -> T:
        """What a connection tells outside of a look. Raises `StoreError`."""
        try:
            return self._with_connection(tell)
        except Exception as error:
            raise StoreError(f"the store {self.name} could not be asked: {reason(error)}") from error

    def _with_connection(self, use: Callable[[Connection], T]) -> T:
        """Use a connection; another one where it was a kept one that turns out to be lost."""
        while True:
            with self._source.lease(self._timeout) as lease:
                descriptor = cast("Any", lease.connection)._sock.fileno()
                with deadline(descriptor, self._timeout) as watched:
                    try:
                        return use(lease.connection)
                    except Error as error:
                        if watched.passed:
                            raise TimeoutError from error
                        if not (lease.used and is_away(error)):
                            raise
