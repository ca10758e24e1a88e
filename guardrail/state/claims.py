"""Which of the found changes somebody asked for, and which are left."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

from guardrail.pictures import Key
from guardrail.state.differences import Change
from guardrail.state.tables import Table


@dataclass(frozen=True, slots=True)
class Rest:
    """A change that nobody asked for, or the columns of an update that nobody asked for (None: not known which).

    `is_partly_asked`: some column was asked for, and it is not known whether others changed too. `beyond`: so many
    changes of this kind are allowed, and this is one more. `doubt`: why it cannot be told whether it is allowed.
    """

    table: Table
    key: Key
    change: Change
    columns: frozenset[str] | None = frozenset()
    is_partly_asked: bool = False
    beyond: int | None = None
    doubt: str = ""


class Claims:
    """The rows and columns that expectations ask for, whether or not they came out right."""

    def __init__(self) -> None:
        self._rows: set[tuple[str, Key]] = set()
        self._columns: dict[tuple[str, Key], set[str]] = {}

    def row(self, table: Table, key: Key) -> None:
        """Somebody asked for this row to be inserted or deleted."""
        self._rows.add((table.name, key))

    def columns(self, table: Table, key: Key, columns: Collection[str]) -> None:
        """Somebody asked for these columns of a row to be updated."""
        self._columns.setdefault((table.name, key), set()).update(columns)

    def has_row(self, table: Table, key: Key) -> bool:
        """Whether somebody asked for this row."""
        return (table.name, key) in self._rows

    def left(self, tables: Iterable[Table]) -> list[Rest]:
        """What nobody asked for; what is known to be done by others is left out."""
        return [
            rest
            for table in tables
            for key, change in table.changes.items()
            if change.attribution != "by_other" and not self.has_row(table, key)
            for rest in self._rest(table, key, change)
        ]

    def _rest(self, table: Table, key: Key, change: Change) -> Iterator[Rest]:
        asked = self._columns.get((table.name, key), set[str]())
        if change.kind != "update":
            yield Rest(table, key, change)
        elif change.columns is None:
            yield Rest(table, key, change, None, is_partly_asked=bool(asked))
        elif columns := frozenset(change.columns) - asked:
            yield Rest(table, key, change, columns)
