"""One transaction on PostgreSQL, in as few exchanges with the server as its work allows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal

from guardrail.ledger.database import Row, RowRefused
from guardrail.ledger.postgres.sessions import ServerError, Session, Statement

BEGIN: Final[Statement] = ("BEGIN ISOLATION LEVEL READ COMMITTED", ())
BEGIN_LOOK: Final[Statement] = ("BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY", ())
_COMMIT: Final[Statement] = ("COMMIT", ())
_SAVE: Final[Statement] = ("SAVEPOINT here", ())
_RELEASE: Final[Statement] = ("RELEASE SAVEPOINT here", ())
_BACK: Final[Statement] = ("ROLLBACK TO SAVEPOINT here", ())


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
        self._waiting.append((statement, values))
        if statement.startswith("SELECT"):
            return self._send()
        if self._careful:
            self._try()
        return []

    def commit(self) -> None:
        """Make all of it count. A single change is a transaction by itself, at the cost of nothing else."""
        if self._waiting[:-1] == self._opening == [BEGIN]:
            del self._waiting[0]
        else:
            self._waiting.append(_COMMIT)
        self.is_sent = True
        self._send()

    def _try(self) -> None:
        """Carry out the change that waits; nothing of it stays when it is refused."""
        *opening, change = self._waiting
        self._waiting = [*opening, _SAVE, change, _RELEASE]
        try:
            self._send()
        except ServerError as error:
            if not is_refusal(error):
                raise
            self._session.exchange([_BACK])
            raise RowRefused(_reason(error), str(error)) from None

    def _send(self) -> list[Row]:
        statements, self._waiting = self._waiting, []
        return self._session.exchange(statements)


def is_refusal(error: ServerError) -> bool:
    """Whether the database is well, and only does not take a row; by the class of the SQLSTATE, and two of another."""
    return error.state[:2] in ("21", "22", "23", "54") or error.state in ("42804", "42846")


def _reason(error: ServerError) -> Literal["duplicate", "orphan", "value"]:
    match error.state:
        case "23505":
            return "duplicate"
        case "23502" | "23503":
            return "orphan"
        case _:
            return "value"
