"""What has changed in the shop's database, asked without the guard."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias

TABLES: Final = ("orders", "refunds", "vouchers")

Rows: TypeAlias = Mapping[tuple[str, int], Mapping[str, Any]]
"""Rows by table and id, without the id and without when they were touched."""


@dataclass(frozen=True, slots=True)
class Change:
    """A row that is another one than before: what its columns held and hold now, as far as that differs."""

    table: str
    id: int
    before: Mapping[str, Any] | None
    after: Mapping[str, Any] | None


def rows(database: Path) -> Rows:
    """Every row of the shop."""
    with closing(sqlite3.connect(database)) as opened:
        opened.row_factory = sqlite3.Row
        return {
            (table, row["id"]): {name: row[name] for name in row.keys() if name not in ("id", "updated_at")}  # noqa: SIM118 - iterating over a row gives its values
            for table in TABLES
            for row in opened.execute(f"select * from {table} order by id")
        }


def changes(before: Rows, after: Rows) -> tuple[Change, ...]:
    """What differs, in the order of the tables and ids."""
    places = sorted(before.keys() | after.keys())
    return tuple(
        _change(place, before.get(place), after.get(place)) for place in places if before.get(place) != after.get(place)
    )


def _change(place: tuple[str, int], before: Mapping[str, Any] | None, after: Mapping[str, Any] | None) -> Change:
    if before is None or after is None:
        return Change(*place, before, after)
    differing = [name for name in after if before[name] != after[name]]
    return Change(*place, {name: before[name] for name in differing}, {name: after[name] for name in differing})
