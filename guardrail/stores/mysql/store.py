"""MariaDB or MySQL as a store: each look in a read-only snapshot of its own."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import cast

from pymysql import Error

from guardrail.pictures import Answer
from guardrail.query.proof import Dialect
from guardrail.stores.answers import unanswered
from guardrail.stores.looks import look
from guardrail.stores.mysql.connections import bounded
from guardrail.stores.mysql.drivers import drive
from guardrail.stores.mysql.faults import is_away, reason
from guardrail.stores.mysql.grammar import MysqlGrammar
from guardrail.stores.mysql.positions import MysqlPositions
from guardrail.stores.mysql.remarks import remarks
from guardrail.stores.mysql.settings import Connection, is_mariadb
from guardrail.stores.sources import Source
from guardrail.stores.store import Question, Remark, Trial
from guardrail.threads import in_turns


class MysqlStore:
    """A MariaDB or MySQL database that is only read. `timeout` bounds one look, in seconds.

    PyMySQL blocks, so `alook` spends its time on a thread.
    """

    dialect: Dialect = "mysql"

    def __init__(self, name: str, source: Source[Connection], timeout: float) -> None:
        self.name = name
        self.positions = MysqlPositions()
        self._source = source
        self._timeout = timeout

    def look(self, questions: Sequence[Question]) -> list[Answer]:
        """Answer all questions from one snapshot; see `Store`."""
        try:
            while (answers := self._looked(questions)) is None:
                pass
        except Exception as error:  # noqa: BLE001 - beside PyMySQL, the user's factory may raise anything
            return [unanswered(self.name, question, reason(error)) for question in questions]
        return answers

    async def alook(self, questions: Sequence[Question]) -> list[Answer]:
        """The same without blocking the loop."""
        return cast("list[Answer]", await in_turns(partial(self.look, questions)))

    def for_run(self) -> MysqlStore:
        """The store as one run sees it; see `Store`."""
        source = self._source.for_run()
        return self if source is self._source else MysqlStore(self.name, source, self._timeout)

    def examine(self, trial: Trial | None = None) -> tuple[Remark, ...]:
        """Whether it can be looked at, what its user may do, which tables have no snapshot or no key, whether it lags."""
        return remarks(self)

    def close(self) -> None:
        """Close the connections that are kept."""
        self._source.close()

    def _looked(self, questions: Sequence[Question]) -> list[Answer] | None:
        """The answers; None where a kept connection was lost, so that another is to be tried."""
        with self._source.lease(self._timeout) as lease:
            grammar = MysqlGrammar(is_mariadb(lease.connection))
            try:
                with bounded(lease.connection, self._timeout):
                    return drive(lease.connection, look(questions, grammar, self.name))
            except Error as error:
                if not (lease.used and is_away(error)):
                    raise
                return None
