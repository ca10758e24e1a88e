"""What the ledger needs of a database: short transactions that last, and faults in plain words."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, Protocol, TypeAlias, TypeVar

Row: TypeAlias = tuple[Any, ...]

T = TypeVar("T")


class RowRefused(Exception):
    """The database does not take a row, now or later.

    `why`: `duplicate` (its key is there already), `orphan` (its run is not there), `value` (a value that
    cannot be stored).
    """

    def __init__(self, why: Literal["duplicate", "orphan", "value"], text: str) -> None:
        self.why = why
        super().__init__(text)


class Execute(Protocol):
    """Carries out one statement, with `?` for each value; returns the rows that a SELECT finds.

    A row that the database does not take is a `RowRefused`, either of this call, or the work is carried out again
    and then it is.
    """

    def __call__(self, statement: str, values: Sequence[object] = (), /) -> list[Row]: ...


Purpose: TypeAlias = Literal["look", "group", "durable", "erase"]
"""What a transaction is for.

look: to read from one snapshot. group: to write what is to outlive the process. durable: to write what is to
outlive a power failure, together with all that was written before. erase: to delete durably, so that the
deleted is gone from the medium, as far as the database can see to that, and its space given back.
"""


class Database(Protocol):
    """Where the ledger's tables lie. Its methods are called by one thread at a time."""

    @property
    def name(self) -> str:
        """What a message calls it."""
        ...

    @property
    def is_near(self) -> bool:
        """Whether a transaction waits for nothing but this machine."""
        ...

    @property
    def presence(self) -> int | None:
        """By what the database knows, of a run that this process opens, that the process is there.

        SQL's `present(presence)` then tells it to every process, on whichever host. None: the database cannot know.
        It may change with a transaction's beginning.
        """
        ...

    def transact(self, purpose: Purpose, patience: float, work: Callable[[Execute], T]) -> T:
        """Carry out some work in one transaction: all of it counts when this returns, and nothing when it raises.

        The work may be carried out again, so it must do nothing else. It waits up to `patience` seconds for others.
        Creates the schema or brings it to the present when that is due; but a look at a database that does not exist
        finds nothing, and creates nothing.

        Raises what the work raises, and `LedgerError` (which database, what happened, what to do) when the database
        cannot be had, read or written, or when it did not say whether the work counts.
        """
        ...

    def remarks(self) -> tuple[str, ...]:
        """What the operator should know of it, one sentence each. Raises `LedgerError` if no ledger can be had there."""
        ...

    def before_fork(self) -> None:
        """The process is about to fork."""
        ...

    def after_fork_in_child(self) -> None:
        """The process is a copy of another: leave what is open to that one."""
        ...

    def close(self) -> None:
        """Let go of everything, for good."""
        ...
