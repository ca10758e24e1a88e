"""A session on a PostgreSQL server: statements go out together, and nothing is waited for without end.

It uses libpq's pipeline mode by psycopg's wrapper of libpq. With psycopg's cursors, a transaction of four statements
costs as much time again as its commit.
"""

from __future__ import annotations

import math
import os
import selectors
import time
from collections.abc import Sequence
from contextlib import suppress
from itertools import count
from typing import Final, TypeAlias

import psycopg
from psycopg.pq import ConnStatus, DiagnosticField, ExecStatus, TransactionStatus
from psycopg.pq.abc import PGresult

from guardrail.ledger.database import Row
from guardrail.ledger.postgres.values import Parameters, ValueRefused, decoded, encoded, numbered

Statement: TypeAlias = tuple[str, Sequence[object]]
"""A statement with `?` for each value, and the values."""

_GRACE: Final = 1.0  # seconds a server has to say what became of what it was told to give up
_MOST_PREPARED: Final = 256
_ABOUT_VALUES: Final = "22"  # the class of errors whose words quote a value
_READ: Final = selectors.EVENT_READ
_Selector: Final[type[selectors.BaseSelector]] = getattr(selectors, "PollSelector", selectors.SelectSelector)


class ServerError(Exception):
    """What the server has against a statement, or the driver against a value or a connection. It shows no values.

    `state` is the SQLSTATE; "" when there is no connection (any more), or no answer.
    """

    def __init__(self, state: str, words: str) -> None:
        self.state = state
        super().__init__(words)


class Session:
    """A connection that is waited for until `deadline` (of the monotonic clock) at the longest, and a moment.

    When that has passed, the server is told to give up what it does, and mostly answers that it has. Every operation
    raises `ServerError`.
    """

    def __init__(self, conninfo: str, deadline: float) -> None:
        """Connect; each address is tried for at least two seconds."""
        try:
            psycopg.capabilities.has_pipeline(check=True)
            self._connection = psycopg.Connection.connect(
                conninfo,
                connect_timeout=math.ceil(max(deadline - time.monotonic(), 1)),
                client_encoding="utf8",
                fallback_application_name="guardrail",
            )
        except psycopg.Error as error:
            raise _lost(error) from None
        self.deadline = deadline
        self.prepares = True  # whether the server keeps statements, so that it need not plan them again
        self._prepared: dict[str, bytes] = {}
        self._numbers = count()
        self._has_given_up = False
        self._pgconn = self._connection.pgconn
        self._pgconn.nonblocking = 1
        self._pgconn.enter_pipeline_mode()
        self._selector = _Selector()
        self._selector.register(self._pgconn.socket, _READ)

    @property
    def process(self) -> int:
        """The server's process, as it was told when connecting."""
        return self._pgconn.backend_pid

    def ask(self, text: str, *values: object) -> list[Row]:
        """Carry out one statement that will hardly come again; the rows that it found."""
        return self._exchange([(text, values)], prepares=False)

    def exchange(self, statements: Sequence[Statement]) -> list[Row]:
        """Carry out statements in one exchange, each only if those before did well; the rows that the last one found."""
        return self._exchange(statements, prepares=self.prepares)

    def is_lost(self) -> bool:
        """Whether the server, or somebody between, has ended the connection while it was at rest.

        The server says why before it ends a connection, so the end may stand behind something to be read.
        """
        try:
            for _ in range(2):
                self._pgconn.consume_input()
                self._pgconn.is_busy()
        except psycopg.Error:
            return True
        return self._pgconn.status != ConnStatus.OK

    def is_at_rest(self) -> bool:
        """Whether a transaction can begin; one that is still open is rolled back for that. Raises nothing."""
        if self._pgconn.transaction_status in (TransactionStatus.INTRANS, TransactionStatus.INERROR):
            with suppress(ServerError):
                self.ask("ROLLBACK")
        return self._pgconn.transaction_status == TransactionStatus.IDLE

    def close(self) -> None:
        """End the session."""
        self._selector.close()
        self._connection.close()

    def abandon(self) -> None:
        """Let go of a session that belongs to the process that this one was forked from: the server hears nothing."""
        with open(os.devnull, "rb") as nowhere:
            os.dup2(nowhere.fileno(), self._pgconn.socket, inheritable=False)
        self.close()

    def _exchange(self, statements: Sequence[Statement], *, prepares: bool) -> list[Row]:
        try:
            parameters = [encoded(values) for _, values in statements]
        except ValueRefused as error:
            raise ServerError("22000", str(error)) from None
        self._has_given_up = False
        try:
            texts = [text for text, _ in statements]
            kept = [
                mark for text, own in zip(texts, parameters, strict=True) for mark in self._send(text, own, prepares)
            ]
            self._pgconn.pipeline_sync()
            while self._pgconn.flush():
                self._wait(_READ | selectors.EVENT_WRITE)
                self._pgconn.consume_input()
            answers = self._answers()
        except psycopg.Error as error:
            raise _lost(error) from None
        return self._settled(kept, answers)

    def _send(self, text: str, parameters: Parameters, prepares: bool) -> list[str]:
        """Send one statement; for each answer to come, which text the server will keep by it, or ""."""
        values, formats = parameters
        name = self._prepared.get(text)
        if name is None and (not prepares or len(self._prepared) == _MOST_PREPARED):
            self._pgconn.send_query_params(numbered(text), values, None, formats, 1)
            return [""]
        kept = [""]
        if name is None:
            name = self._prepared[text] = b"g%d" % next(self._numbers)
            self._pgconn.send_prepare(name, numbered(text))
            kept = [text, ""]
        self._pgconn.send_query_prepared(name, values, formats, 1)
        return kept

    def _answers(self) -> list[PGresult]:
        """The answers to all that was sent; fewer when the connection ends, the last of which may say why."""
        answers: list[PGresult] = []
        try:
            while True:
                while self._pgconn.is_busy():
                    self._wait(_READ)
                    self._pgconn.consume_input()
                answer = self._pgconn.get_result()
                if answer is not None and answer.status == ExecStatus.PIPELINE_SYNC:
                    return answers
                if answer is not None:
                    answers.append(answer)
                elif self._pgconn.status != ConnStatus.OK:
                    return answers
        except psycopg.Error:
            if not any(answer.status == ExecStatus.FATAL_ERROR for answer in answers):
                raise
            return answers

    def _settled(self, kept: Sequence[str], answers: Sequence[PGresult]) -> list[Row]:
        """The last statement's rows, or the first one's error."""
        for text, answer in zip(kept, answers, strict=False):
            if text and answer.status != ExecStatus.COMMAND_OK:
                del self._prepared[text]
        for answer in answers:
            if answer.status == ExecStatus.FATAL_ERROR:
                raise _error(answer)
        if len(answers) < len(kept):
            raise ServerError("", "the connection was closed")
        last = answers[-1]
        kinds = [last.ftype(column) for column in range(last.nfields)]
        return [
            tuple(decoded(last.get_value(row, column), kind) for column, kind in enumerate(kinds))
            for row in range(last.ntuples)
        ]

    def _wait(self, events: int) -> None:
        if self._selector.get_key(self._pgconn.socket).events != events:
            self._selector.modify(self._pgconn.socket, events)
        while not self._selector.select(max(self.deadline - time.monotonic(), 0)):
            if self._has_given_up:
                raise ServerError("", "no answer came")
            self._has_given_up = True
            with suppress(psycopg.Error):
                self._connection.cancel_safe(timeout=_GRACE)
            self.deadline = time.monotonic() + _GRACE


def _error(answer: PGresult) -> ServerError:
    state = (answer.error_field(DiagnosticField.SQLSTATE) or b"").decode()
    if state[:2] == _ABOUT_VALUES:
        return ServerError(state, f"a value does not fit, SQLSTATE {state}")
    words = answer.error_field(DiagnosticField.MESSAGE_PRIMARY) or answer.error_message
    return ServerError(state, " ".join(words.decode("utf-8", "replace").split()))


def _lost(error: psycopg.Error) -> ServerError:
    return ServerError("", " ".join(str(error).split()))
