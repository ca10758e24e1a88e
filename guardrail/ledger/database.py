"""What the ledger needs of a database: short transactions that last, and faults in plain words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, Protocol, TypeAlias

Row: TypeAlias = tuple[Any, ...]


class RowRefused(Exception):
    """The database does not take a row, now or later.

    `why`: `duplicate` (its key is there already), `orphan` (its run is not there), `value` (a value that
    cannot be stored).
    """

    def __init__(self, why: Literal["duplicate", "orphan", "value"], text: str) -> None:
        self.why = why
        super().__init__(text)


class Execute(Protocol):
    """Carries out one statement, with `?` for each value; returns the rows it gave. Raises `RowRefused`."""

    def __call__(self, statement: str, values: Sequence[object] = (), /) -> list[Row]: ...


Purpose: TypeAlias = Literal["look", "group", "durable", "erase"]
"""What a transaction is for.

look: to read from one snapshot. group: to write what is to outlive the process. durable: to write what is to
outlive a power failure, together with all that was written before. erase: to delete durably, so that the
deleted is gone from the medium and its space given back.
"""


class Database(Protocol):
    """Where the ledger's tables lie. Its methods are called by one thread at a time.

    `begin`, what it returns, and `commit` raise `LedgerError` (which database, what happened, what to do)
    when the database cannot be had, read or written. Nothing has changed then, once `roll_back` was called.
    """

    @property
    def name(self) -> str:
        """What a message calls it."""
        ...

    def begin(self, purpose: Purpose, patience: float) -> Execute:
        """Begin a transaction; waits up to `patience` seconds for others.

        Creates the schema or brings it to the present when that is due; but a look at a database that does
        not exist finds nothing, and creates nothing.
        """
        ...

    def commit(self) -> None:
        """End the transaction: all of it counts."""
        ...

    def roll_back(self) -> None:
        """End the transaction, if there still is one: nothing of it counts. Raises nothing."""
        ...

    def remarks(self) -> tuple[str, ...]:
        """What the operator should know of it, one sentence each."""
        ...

    def leave(self) -> None:
        """Let go of every connection; the next transaction opens a new one."""
        ...

    def close(self) -> None:
        """Let go of everything, for good."""
        ...
