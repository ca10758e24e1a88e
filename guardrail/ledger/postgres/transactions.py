"""One transaction on PostgreSQL, in as few exchanges with the server as its work allows."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import count
from typing import Final, Literal, TypeAlias

import psycopg

from guardrail.ledger.database import Row, RowRefused
from guardrail.ledger.postgres.sessions import Session

Statement: TypeAlias = tuple[str, Sequence[object]]

BEGIN: Final[Statement] = ("BEGIN ISOLATION LEVEL READ COMMITTED", ())
BEGIN_LOOK: Final[Statement] = ("BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY", ())


class PostgresTransaction:
    """Carries out the statements of one transaction (see `Execute`).

    Changes wait until an answer is needed, a SELECT's or the commit's, and then go out together, in one exchange. So a
    row that is refused is known too late to say whose it was: it is an error of the whole transaction. A `careful`
    one carries out each change by itself, under a savepoint, and says it at once.

    `opening`: the statements that begin it. `is_sent`: whether the commit has been sent; if the connection is lost
    then, nobody knows what became of it.
    """

    def __init__(self, session: Session, opening: list[Statement], *, careful: bool) -> None:
        self._session = session
        self._opening = opening
        self._waiting = list(opening)
        self._careful = careful
        self.is_sent = False

    def __call__(self, statement: str, values: Sequence[object] = (), /) -> list[Row]:
        """See `Execute`."""
        if self._careful:
            return self._try((statement, values))
        self._waiting.append((statement, values))
        return self._send().fetchall() if _asks(statement) else []

    def commit(self) -> None:
        """Make all of it count. A single change is a transaction by itself, at the cost of nothing else."""
        if self._waiting[:-1] == self._opening == [BEGIN]:
            del self._waiting[0]
        else:
            self._waiting.append(("COMMIT", ()))
        self.is_sent = True
        self._send()

    def _try(self, statement: Statement) -> list[Row]:
        if self._waiting:
            self._send()
        try:
            with self._session.transaction():  # which is a savepoint inside of one
                cursor = _execute(self._session, statement)
                return cursor.fetchall() if _asks(statement[0]) else []
        except psycopg.Error as error:
            if not is_refusal(error):
                raise
            raise RowRefused(_reason(error), type(error).__name__) from None  # its own text shows the row

    def _send(self) -> psycopg.Cursor[Row]:
        """Send what waits, and wait until all of it is done; the last one's answer."""
        statements, self._waiting = self._waiting, []
        if len(statements) == 1:
            return _execute(self._session, statements[0])
        cursor = self._session.cursor()
        with self._session.pipeline():
            for statement in statements:
                cursor = _execute(self._session, statement)
        return cursor


def _execute(session: Session, statement: Statement) -> psycopg.Cursor[Row]:
    text, values = statement
    try:
        return session.execute(_numbered(text), values)
    except (UnicodeEncodeError, psycopg.DataError) as error:
        if getattr(error, "sqlstate", None) is not None:
            raise
        # A text with a NUL, or with half of a surrogate pair, which JSON may carry and the server has no form for.
        return session.execute(_numbered(text), [_encodable(value) for value in values])


def _asks(statement: str) -> bool:
    return statement.startswith("SELECT")


@lru_cache(maxsize=256)
def _numbered(statement: str) -> bytes:
    """The statement with `$1`, `$2` and so on for its marks."""
    first, *rest = statement.split("?")
    return "".join((first, *(f"${number}{part}" for number, part in zip(count(1), rest, strict=False)))).encode()


def _encodable(value: object) -> object:
    if not isinstance(value, str):
        return value
    return value.encode("utf-8", "backslashreplace").decode().replace("\0", "\\x00")


def is_refusal(error: psycopg.Error) -> bool:
    """Whether the database is well and only does not take a row: of a class of SQLSTATE, or of the driver's own."""
    state = error.sqlstate
    if state is None:
        return isinstance(error, psycopg.ProgrammingError | psycopg.DataError)
    return state[:2] in ("21", "22", "23", "54") or state in ("42804", "42846")


def _reason(error: psycopg.Error) -> Literal["duplicate", "orphan", "value"]:
    match error.sqlstate:
        case "23505":
            return "duplicate"
        case "23502" | "23503":
            return "orphan"
        case _:
            return "value"
