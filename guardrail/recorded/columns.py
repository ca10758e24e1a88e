"""The columns of recorded tables: what is kept in each, told by the values that stand in it anywhere in the recording."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Literal, TypeAlias

from guardrail.recorded.format import RowChange, Tables

ColumnType: TypeAlias = Literal["boolean", "integer", "float", "number", "text", "json"]
"""What is kept in a column; `number` is integers and floats, `json` what is nested or mixed, as JSON text."""

Columns: TypeAlias = Mapping[str, Mapping[str, ColumnType]]
"""The columns of each table."""


def columns(tables: Tables, changes: Iterable[RowChange]) -> Columns:
    """The columns of all tables, so that every recorded value fits and nothing is converted."""
    seen: dict[str, dict[str, set[ColumnType]]] = {}
    for table, row in _rows(tables, changes):
        types = seen.setdefault(table, {})
        for column, value in row.items():
            types.setdefault(column, set()).update(_types(value))
    return {table: {column: _one(types) for column, types in found.items()} for table, found in seen.items()}


def _rows(tables: Tables, changes: Iterable[RowChange]) -> Iterator[tuple[str, Mapping[str, object]]]:
    for name, table in tables.items():
        yield name, dict.fromkeys(table.key)
        for row in table.rows:
            yield name, row
    for change in changes:
        key = tables[change.table].key if change.table in tables else ()
        yield change.table, dict(zip(key, change.key, strict=False))
        yield change.table, change.after


def _types(value: object) -> set[ColumnType]:
    match value:
        case None:
            return set()
        case bool():
            return {"boolean"}
        case int():
            return {"integer"}
        case float():
            return {"float"}
        case str():
            return {"text"}
        case _:
            return {"json"}


def _one(types: set[ColumnType]) -> ColumnType:
    if types == {"integer", "float"}:
        return "number"
    if len(types) == 1:
        return next(iter(types))
    return "json" if types else "text"
