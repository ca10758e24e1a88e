"""A connection to PostgreSQL on which nothing is waited for without end."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Generator
from contextlib import suppress
from typing import Any, Final, TypeAlias, TypeVar

import psycopg
from psycopg.pq import TransactionStatus

from guardrail.ledger.database import Row

V = TypeVar("V")

Waits: TypeAlias = Generator[Any, Any, V]
"""psycopg's own form of an exchange with the server: it yields what it waits for, and is sent what has come."""

_GRACE: Final = 1.0  # seconds a server has to say what became of what it was told to give up


class NoAnswer(psycopg.OperationalError):
    """The server did not answer in time, not even to being told to give up."""


class Session(psycopg.Connection[Row]):
    """A connection whose exchanges end at a `deadline` (of the monotonic clock).

    When it has passed the server is told to give up what it does, and mostly answers that it has; then that is raised
    as any of its errors.
    """

    deadline: float = math.inf

    def wait(self, gen: Waits[V], *options: Any, **named: Any) -> V:
        """See `psycopg.Connection`. Raises `NoAnswer`, after which the connection can only be closed."""
        answer: V = super().wait(self._until_the_deadline(gen), *options, **named)
        return answer

    def _until_the_deadline(self, gen: Waits[V]) -> Waits[V]:
        deadline, is_last = self.deadline, False
        sent: Any = None
        while True:
            try:
                awaited = gen.send(sent)
            except StopIteration as end:
                answer: V = end.value
                return answer
            sent = yield awaited  # psycopg sends something false a few times a second when nothing has come
            if not sent and time.monotonic() > deadline:
                if is_last:
                    raise NoAnswer("no answer came")
                with suppress(psycopg.Error):
                    self.cancel_safe(timeout=_GRACE)
                deadline, is_last = time.monotonic() + _GRACE, True

    def is_lost(self) -> bool:
        """Whether the server, or somebody between, has ended the connection while it was at rest.

        The server says why before it ends a connection, so the end may stand behind something to be read.
        """
        if self.closed:
            return True
        try:
            for _ in range(2):
                self.pgconn.consume_input()
                self.pgconn.is_busy()
        except psycopg.Error:
            return True
        return False

    def is_at_rest(self) -> bool:
        """Whether a transaction can begin; one that is still open is rolled back for that."""
        status = self.pgconn.transaction_status
        if status in (TransactionStatus.INTRANS, TransactionStatus.INERROR):
            with suppress(psycopg.Error):
                self.execute("ROLLBACK")
        return self.pgconn.transaction_status == TransactionStatus.IDLE

    def abandon(self) -> None:
        """Let go of a connection that belongs to the process that this one was forked from: the server hears nothing."""
        with open(os.devnull, "rb") as nowhere:
            os.dup2(nowhere.fileno(), self.fileno(), inheritable=False)
        self.close()
