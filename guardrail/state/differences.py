"""What changed in a table between two pictures of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from math import isnan
from typing import Any, Literal, TypeAlias

from guardrail.declare.contracts import Loosely
from guardrail.pictures import Key, Picture, Row
from guardrail.state.comparison import Comparison, Incomparable
from guardrail.state.unknown import UNKNOWN

Attribution: TypeAlias = Literal["by_run", "by_other", "unattributed"]
"""Who made a change (design, rule 13)."""


@dataclass(frozen=True, slots=True)
class Change:
    """One row that differs between two pictures of a table.

    `table` is `store.table`, `key` the row's key by column. `before` and `after` hold the row by column (None: there was
    none, there is none); a value that no picture holds is `UNKNOWN`. `columns` names what an update
    changed; None if that is not known. `attribution` says who made the change.
    """

    table: str
    kind: Literal["insert", "update", "delete"]
    key: Mapping[str, object]
    before: Mapping[str, object] | None
    after: Mapping[str, object] | None
    columns: tuple[str, ...] | None = ()
    attribution: Attribution = "unattributed"


def differences(
    before: Picture,
    after: Picture,
    *,
    ignore: frozenset[str] = frozenset(),
    compare: Mapping[str, Loosely] | None = None,
) -> tuple[Change, ...]:
    """Every row that was inserted, updated or deleted between two pictures of the same table, in the order of the keys.

    Columns in `ignore` are left out. Values compare by the kind of their column, softened by `compare`; values that
    cannot be compared count as changed. Raises `Incomparable` when the pictures have other keys or forms, or
    hashes of other columns.
    """
    _refuse_other_forms(before, after)
    how = {name: how.precisely for name, how in comparisons(after, compare or {}).items()}
    view = _View(before, after, ignore, how)
    changed = {key: change for key in _candidates(before, after) if (change := view.change(key)) is not None}
    changed |= {key: view.deletion(key) for key in _gone(before, after)}
    return tuple(changed[key] for key in sorted(changed, key=_order))


def comparisons(picture: Picture, compare: Mapping[str, Loosely]) -> dict[str, Comparison]:
    """How each column of a picture compares."""
    return {name: Comparison.of(picture.kinds.get(name, "unknown"), compare.get(name)) for name in picture.columns}


def unseen(before: Picture, after: Picture) -> tuple[Key, ...]:
    """The keys of new and changed rows that `after` holds only as hashes; pin them to know what is in them."""
    if after.hashes is None:
        return ()
    return tuple(key for key in _candidates(before, after) if key not in after.rows)


def row_of(picture: Picture, key: Key) -> dict[str, object] | None:
    """A row by column: `UNKNOWN` where the picture holds only its hash, None where there is no such row."""
    row = picture.rows.get(key)
    if row is not None:
        return dict(zip(picture.columns, row, strict=True))
    if picture.hashes is None or key not in picture.hashes:
        return None
    return {**dict.fromkeys(picture.columns, UNKNOWN), **dict(zip(picture.key, key, strict=True))}


def is_changed(one: object, other: object, how: Comparison) -> bool:
    """Whether a column's values before and after differ, or cannot be compared."""
    try:
        return not how.precisely.same(one, other)
    except Incomparable:
        return True


@dataclass(frozen=True, slots=True)
class _View:
    """Two pictures of a table and how to compare them."""

    before: Picture
    after: Picture
    ignore: frozenset[str]
    how: Mapping[str, Comparison]

    def change(self, key: Key) -> Change | None:
        old, new = self._row(self.before, key), self._row(self.after, key)
        if old is None:
            return Change(self.after.table, "insert", self._named(key), None, new)
        if key in self.before.rows and key in self.after.rows:
            columns = tuple(self._changed_columns(old, new or {}))
            return Change(self.after.table, "update", self._named(key), old, new, columns) if columns else None
        return Change(self.after.table, "update", self._named(key), old, new, None)

    def deletion(self, key: Key) -> Change:
        return Change(self.after.table, "delete", self._named(key), self._row(self.before, key), None)

    def _changed_columns(self, old: Mapping[str, object], new: Mapping[str, object]) -> Iterator[str]:
        for name, value in new.items():
            if name in old and is_changed(old[name], value, self.how[name]):
                yield name

    def _row(self, picture: Picture, key: Key) -> dict[str, object] | None:
        row = row_of(picture, key)
        return None if row is None else {name: value for name, value in row.items() if name not in self.ignore}

    def _named(self, key: Key) -> dict[str, object]:
        return dict(zip(self.after.key, key, strict=True))


def _order(key: Key) -> list[tuple[int, Any, str]]:
    """Where a key stands: databases give rows in any order. Numbers go by size, texts by their letters."""
    return list(map(_rank, key))


def _rank(value: object) -> tuple[int, Any, str]:
    """What tells where a value stands; values of any types have an order."""
    match value:
        case int():
            return 0, value, ""
        case float() | Decimal() if not isnan(value):
            return 0, value, ""
        case str():
            return 1, value, ""
        case bytes():
            return 2, value, ""
        case _:
            return 3, type(value).__name__, str(value)


def _refuse_other_forms(before: Picture, after: Picture) -> None:
    if before.key != after.key:
        raise Incomparable(f"the key of {after.table} changed from {before.key} to {after.key} during the run")
    if (before.hashes is None) != (after.hashes is None):
        raise Incomparable(f"one picture of {after.table} holds whole rows and the other hashes; take both alike")
    if after.hashes is not None and before.columns != after.columns:
        raise Incomparable(f"the columns of {after.table} changed during the run, and only hashes of its rows are kept")


def _candidates(before: Picture, after: Picture) -> list[Key]:
    """The keys of rows that are new or look different. One pass: pictures have up to a million rows."""
    if after.hashes is not None and before.hashes is not None:
        known = before.hashes.get
        return [key for key, digest in after.hashes.items() if known(key) != digest]
    if before.columns != after.columns:
        return list(after.rows)
    old = before.rows.get
    documents = [place for place, name in enumerate(after.columns) if after.kinds.get(name) in ("json", "unknown")]
    if not documents:
        return [key for key, row in after.rows.items() if old(key) != row]
    return [
        key
        for key, row in after.rows.items()
        if (was := old(key)) != row or (was is not None and _differ_inside(was, row, documents))
    ]


def _differ_inside(one: Row, other: Row, documents: list[int]) -> bool:
    """Whether documents that Python takes for equal may differ: to it, true equals 1."""
    return any(
        type(one[place]) is not str and one[place] is not None and repr(one[place]) != repr(other[place])
        for place in documents
    )


def _gone(before: Picture, after: Picture) -> list[Key]:
    old, new = (picture.rows if picture.hashes is None else picture.hashes for picture in (before, after))
    return [key for key in old if key not in new]
