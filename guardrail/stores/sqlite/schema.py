"""What a SQLite database says about its tables: columns, how they compare, and what names a row."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from guardrail.errors import StoreError
from guardrail.pictures import ColumnKind, Table
from guardrail.stores.answers import missing
from guardrail.stores.sqlite.sessions import Session, quoted

_INTEGER: Final = re.compile(r"\b(?:TINY|SMALL|MEDIUM|BIG)?INT(?:EGER|\d+)?\b")
_ZONELESS: Final = re.compile(r"CURRENT_TIMESTAMP\b|datetime\s*\(", re.IGNORECASE)
"""Defaults that fill a column with a time that has no zone."""

_KINDS: Final[tuple[tuple[str, ColumnKind], ...]] = (
    ("BOOL", "boolean"),
    ("DATETIME", "instant"),
    ("TIMESTAMP", "instant"),
    ("DATE", "date"),
    ("TIME", "time"),
    ("JSON", "json"),
    ("UUID", "uuid"),
    ("BLOB", "bytes"),
    ("BINARY", "bytes"),
    ("CHAR", "text"),
    ("CLOB", "text"),
    ("TEXT", "text"),
    ("NUMERIC", "decimal"),
    ("DECIMAL", "decimal"),
    ("MONEY", "decimal"),
    ("REAL", "float"),
    ("FLOA", "float"),
    ("DOUB", "float"),
)
"""Kinds by a part of the declared type's name; the first that fits."""

_SHADOWS: Final = (
    *("data", "idx", "content", "docsize", "config"),
    *("segments", "segdir", "stat", "node", "rowid", "parent"),
)
"""How the tables end in which SQLite's full-text and r-tree tables keep their contents."""

_ROWIDS: Final = ("rowid", "_rowid_", "oid")


@dataclass(frozen=True, slots=True)
class _Column:
    name: str
    declared: str
    required: bool
    default: str | None
    in_key: int
    hidden: int


def kind_of(declared: str) -> ColumnKind:
    """How values of a column compare, by its declared type."""
    name = declared.upper()
    if _INTEGER.search(name):
        return "integer"
    for part, kind in _KINDS:
        if part in name:
            return kind
    return "unknown"


def table_names(session: Session) -> tuple[str, ...]:
    """The tables of the database by name, without SQLite's own and without those that a virtual table lives in."""
    found = session.run("SELECT name, sql FROM main.sqlite_master WHERE type = 'table' ORDER BY name").fetchall()
    virtual = [name for name, sql in found if str(sql).upper().startswith("CREATE VIRTUAL")]
    shadows = {f"{name}_{ending}" for name in virtual for ending in _SHADOWS}
    return tuple(name for name, _ in found if name not in shadows and not name.lower().startswith("sqlite_"))


def read_table(session: Session, name: str) -> Table:
    """The table or view of this name. Raises `StoreError` when there is none."""
    found = session.run(f"PRAGMA main.table_xinfo({quoted(name)})").fetchall()
    columns = [_Column(str(row[1]), str(row[2]), bool(row[3]), row[4], row[5], row[6]) for row in found]
    if not columns:
        raise StoreError(missing(name, table_names(session)))
    indexes = session.run(f"PRAGMA main.index_list({quoted(name)})").fetchall()
    primary = [column.name for column in sorted(columns, key=lambda c: c.in_key) if column.in_key]
    counts_up = len(primary) == 1 and not any(origin == "pk" for _, _, _, origin, _ in indexes)
    unique = _unique(session, columns, indexes)
    key = tuple(primary) or next(iter(unique), ()) or _rowid(session, name, columns)
    visible = [column for column in columns if column.hidden != 1]
    kinds: dict[str, ColumnKind] = {column.name: kind_of(column.declared) for column in visible}
    generated = {column.name for column in visible if column.hidden or column.default is not None}
    generated.update(primary if counts_up else ())
    if key and key[0] not in kinds:
        kinds[key[0]] = "integer"
        generated.add(key[0])
    keys = tuple(dict.fromkeys((*((key,) if key else ()), *unique)))
    zoneless = frozenset(column.name for column in visible if _ZONELESS.match(column.default or ""))
    names = tuple(column.name for column in visible)
    return Table(name, key, names, kinds, frozenset(generated), keys=keys, zoneless=zoneless)


def _unique(session: Session, columns: Sequence[_Column], indexes: Sequence[Any]) -> list[tuple[str, ...]]:
    """The unique indexes over columns that are never null, the shortest first."""
    required = {column.name for column in columns if column.required}
    candidates = [_indexed(session, name) for _, name, unique, _, partial in indexes if unique and not partial]
    return sorted((names for names in candidates if names and required.issuperset(names)), key=_length)


def _length(names: tuple[str, ...]) -> tuple[int, tuple[str, ...]]:
    return len(names), names


def _indexed(session: Session, index: str) -> tuple[str, ...]:
    """The columns of an index; empty when it indexes an expression."""
    parts = session.run(f"PRAGMA main.index_xinfo({quoted(index)})").fetchall()
    names = [name for _, _, name, _, _, in_key in parts if in_key]
    return () if None in names else tuple(names)


def _rowid(session: Session, table: str, columns: Sequence[_Column]) -> tuple[str, ...] | None:
    """The hidden number of a row: a key for want of a better one, as VACUUM may give out new numbers."""
    is_table = "SELECT 1 FROM main.sqlite_master WHERE type = 'table' AND name = :name COLLATE NOCASE"
    if session.run(is_table, {"name": table}).fetchone() is None:
        return None
    taken = {column.name.lower() for column in columns}
    return next(((name,) for name in _ROWIDS if name not in taken), None)
