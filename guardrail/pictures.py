"""What a store answers: rows of a query, pictures of tables, which tables there are.

A picture is a table's state in one snapshot. Up to a limit it holds whole rows; above it, the key and
a hash of each row as computed by the server, and whole rows only for the keys that were pinned.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Literal, TypeAlias

ColumnKind: TypeAlias = Literal[
    "integer",
    "decimal",
    "float",
    "boolean",
    "text",
    "instant",
    "date",
    "time",
    "json",
    "bytes",
    "uuid",
    "unknown",
]
"""How values of a column compare."""

Key: TypeAlias = tuple[object, ...]
Row: TypeAlias = tuple[object, ...]


@dataclass(frozen=True, slots=True)
class Exchange:
    """How an HTTP store came by an answer, as telemetry may tell it: names of inputs, never values.

    `host` and `port` are the server's, `template` the path with the names of its inputs, `url` all of it, with the
    values of the query left out. `status` is that of the last response (None: there was none), `resends` how often a
    request was sent again, `error` the class of the error that prevented an answer ("": there is one).
    """

    host: str
    port: int
    url: str
    template: str
    status: int | None = None
    resends: int = 0
    error: str = ""


@dataclass(frozen=True, slots=True)
class Rows:
    """The answer to a query: column names and rows in the order the database gave them.

    The value of an HTTP store is one row of one column, or no row where there is none.
    """

    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    exchange: Exchange | None = field(default=None, compare=False, repr=False)

    @property
    def is_true(self) -> bool:
        """Whether the answer is one row with one true value: true, or a number other than 0; no text is true."""
        if len(self.rows) != 1 or len(self.rows[0]) != 1:
            return False
        value = self.rows[0][0]
        return isinstance(value, (bool, int, float, Decimal)) and bool(value)

    def mappings(self) -> tuple[dict[str, object], ...]:
        """Each row by column name."""
        return tuple(dict(zip(self.columns, row, strict=True)) for row in self.rows)


@dataclass(frozen=True, slots=True)
class Table:
    """A table or view as the schema has it, or a resource of an HTTP store, which has none.

    `key` names the columns that tell its rows apart (None: nothing does), `columns` all columns (empty where they are
    not known), `kinds` how they compare, `generated` those that the database fills by itself. `rows` counts its rows
    up to the asked limit plus one (None: not counted). `hides_rows`: a policy of the database may keep rows from
    whoever looks. `keys` are all sets of columns that are known to tell its rows apart, as they are unique and never
    null. `zoneless` names columns of times that have no zone: by their type, or as the database itself fills them.
    """

    name: str
    key: tuple[str, ...] | None
    columns: tuple[str, ...]
    kinds: Mapping[str, ColumnKind]
    generated: frozenset[str] = frozenset()
    rows: int | None = None
    hides_rows: bool = False
    keys: tuple[tuple[str, ...], ...] = field(default=(), compare=False)
    zoneless: frozenset[str] = field(default=frozenset(), compare=False)


@dataclass(frozen=True, slots=True)
class Tables:
    """The tables of a store by name, without those of the database itself."""

    tables: tuple[Table, ...]


@dataclass(frozen=True, slots=True)
class Picture:
    """A watched table's state in one snapshot.

    `table` is `store.table`; `key` names the key columns; `columns` all looked-at columns in row order,
    key columns first; `kinds` their kinds, by name (none where a store without a schema has only nulls). `rows` holds whole rows by key (all of them when
    `hashes` is None, else the pinned ones); `hashes` a row hash for every key. `generated` names columns the
    database fills by itself (an integer primary key, a default, a generated column). `hides_rows`: a policy of the
    database may keep rows from whoever looked, so that nothing is known of them. `claimed` is how many entries an API
    says that it has, where they are more than the rows that it gave and it may have further pages; else 0.
    """

    table: str
    key: tuple[str, ...]
    columns: tuple[str, ...]
    kinds: Mapping[str, ColumnKind]
    rows: Mapping[Key, Row]
    hashes: Mapping[Key, bytes] | None = None
    generated: frozenset[str] = field(default_factory=frozenset[str])
    hides_rows: bool = field(default=False, compare=False)
    claimed: int = field(default=0, compare=False)
    exchange: Exchange | None = field(default=None, compare=False, repr=False)

    @property
    def size(self) -> int:
        """How many rows the picture covers."""
        return len(self.rows if self.hashes is None else self.hashes)


def joined(one: Picture, other: Picture) -> tuple[Picture, Picture]:
    """Two pictures of a table without a schema, over the columns of both and with kinds that hold for both.

    What a row does not have is null.
    """
    columns = tuple(dict.fromkeys((*one.columns, *other.columns)))
    kinds: dict[str, ColumnKind] = {}
    for name in columns:
        kind = _common(one.kinds.get(name), other.kinds.get(name))
        if kind is not None:
            kinds[name] = kind
    return _over(one, columns, kinds), _over(other, columns, kinds)


def _common(one: ColumnKind | None, other: ColumnKind | None) -> ColumnKind | None:
    if one is None or other is None or one == other:
        return one or other
    return "decimal" if {one, other} == {"integer", "decimal"} else "unknown"


def _over(picture: Picture, columns: tuple[str, ...], kinds: Mapping[str, ColumnKind]) -> Picture:
    if picture.columns == columns:
        return replace(picture, kinds=kinds)
    places = [picture.columns.index(name) if name in picture.columns else None for name in columns]
    rows = {key: tuple(None if place is None else row[place] for place in places) for key, row in picture.rows.items()}
    return replace(picture, columns=columns, kinds=kinds, rows=rows)


def as_spelled(name: str, columns: Collection[str]) -> str:
    """The name as a table spells the column: databases ignore the case of letters. The name itself where none fits."""
    if name in columns:
        return name
    alike = [column for column in columns if column.casefold() == name.casefold()]
    return alike[0] if len(alike) == 1 else name


@dataclass(frozen=True, slots=True)
class Unanswered:
    """A question that could not be answered, and why; never a pass."""

    why: str
    exchange: Exchange | None = field(default=None, compare=False, repr=False)


Answer: TypeAlias = Rows | Picture | Tables | Unanswered
