"""One watched table while it is verified: its pictures, what changed, and how its columns compare."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from functools import cached_property
from typing import cast

from guardrail.declare.values import Given, Value
from guardrail.pictures import Key, Picture
from guardrail.pointers import MISSING
from guardrail.state.comparison import Comparison, Incomparable
from guardrail.state.contract import Watched
from guardrail.state.differences import Change, comparisons, differences, row_of
from guardrail.state.matching import Cell, Window, meets
from guardrail.state.unknown import UNKNOWN


class Table:
    """A table with the pictures from before (None: there is none) and after the run.

    `changes` holds what differs, by key; it is empty where there is no picture from before. Raises `Incomparable`
    when the two pictures cannot be compared.
    """

    def __init__(self, watched: Watched, before: Picture | None, after: Picture, window: Window | None) -> None:
        self.name = after.table
        self.watched = watched
        self.before = before
        self.after = after
        self.window = window
        self._rows: dict[Key, Mapping[str, object]] = {}
        self._new_by: dict[str, Mapping[object, Sequence[Key]] | None] = {}
        self._indexes: dict[tuple[bool, tuple[str, ...]], Mapping[Key, Sequence[Key]]] = {}
        self.how: Mapping[str, Comparison] = comparisons(after, watched.compare)
        self._looked_at = frozenset(self.how) - watched.ignore
        self.changes: dict[Key, Change] = {self.key_of(change): change for change in self._differences()}

    def _differences(self) -> Iterable[Change]:
        if self.before is None:
            return ()
        return differences(self.before, self.after, ignore=self.watched.ignore, compare=self.watched.compare)

    def key_of(self, change: Change) -> Key:
        """A change's key, in the order of the table's key columns."""
        return tuple(change.key[name] for name in self.after.key)

    def named(self, key: Key) -> dict[str, object]:
        """A key by column."""
        return dict(zip(self.after.key, key, strict=True))

    def exists(self, key: Key) -> bool:
        """Whether the row is there at the end."""
        return key in _keys(self.after)

    def row(self, key: Key) -> Mapping[str, object]:
        """A row at the end, by column; empty where there is none."""
        if key not in self._rows:
            self._rows[key] = row_of(self.after, key) or {}
        return self._rows[key]

    @cached_property
    def new_rows(self) -> tuple[Key, ...]:
        """The keys of the rows that may have been inserted by the run: all, where nothing is known from before."""
        if self.before is None:
            return tuple(self.after.rows)
        return tuple(key for key, change in self.changes.items() if change.kind == "insert")

    def likely(self, values: Mapping[str, Value]) -> Sequence[Key]:
        """The new rows that may hold these values: those with one exact text or number of them, where there is one."""
        found = [self._new_with(column, value.value) for column, value in values.items() if isinstance(value, Given)]
        return min((keys for keys in found if keys is not None), key=len, default=self.new_rows)

    def _new_with(self, column: str, value: object) -> Sequence[Key] | None:
        """The new rows with a value in a column; None where it may be there in another form."""
        how = self.how.get(column)
        if how is None or not how.is_exact or type(value) is not _PLAIN[how.kind]:
            return None
        if column not in self._new_by:
            self._new_by[column] = self._new_rows_by(column)
        known = self._new_by[column]
        return None if known is None else known.get(value, ())

    def _new_rows_by(self, column: str) -> Mapping[object, Sequence[Key]] | None:
        """The new rows by a column's value; None where some hold no plain text or number."""
        found: dict[object, list[Key]] = {}
        for key in self.new_rows:
            value = self.row(key).get(column)
            if value is not None and type(value) is not _PLAIN[self.how[column].kind]:
                return None
            found.setdefault(value, []).append(key)
        return found

    def is_unseen(self, key: Key) -> bool:
        """Whether only the hash of a row is known."""
        return key not in self.after.rows

    def cell(self, key: Key, column: str) -> Cell:
        """The value of a column at the end and before. Raises `Incomparable` where the column is not looked at."""
        _must_be_in(column, self._looked_at)
        return Cell(self.row(key).get(column), self._value_before(key, column), self.how[column], self.window)

    def _value_before(self, key: Key, column: str) -> object:
        if self.before is None:
            return UNKNOWN
        row = row_of(self.before, key)
        return MISSING if row is None else row.get(column, UNKNOWN)

    def changed(self, key: Key, column: str) -> bool:
        """Whether the column of a row changed, as far as is known."""
        change = self.changes.get(key)
        return change is not None and (change.columns is None or column in change.columns or change.kind != "update")

    def meets(self, key: Key, values: Mapping[str, Value]) -> bool:
        """Whether a row holds these values at the end. Raises `Incomparable` where it may and nothing denies it."""
        doubt: Incomparable | None = None
        for column, value in values.items():
            try:
                if not meets(value, self.cell(key, column)):
                    return False
            except Incomparable as error:
                doubt = error
        if doubt is not None:
            raise doubt
        return True

    def find(self, key: Mapping[str, Value]) -> tuple[Key, ...]:
        """The rows that an expectation's key names: before the run, else at its end. Raises `Incomparable`."""
        pictures = [picture for picture in (self.before, self.after) if picture is not None]
        return next((found for picture in pictures if (found := self._find(picture, key))), ())

    def _find(self, picture: Picture, key: Mapping[str, Value]) -> tuple[Key, ...]:
        columns = picture.key if set(key) == set(picture.key) else tuple(key)
        for column in columns:
            _must_be_in(column, picture.columns)
        if columns != picture.key and picture.hashes is not None:
            raise Incomparable(
                f"{self.name} is too large to look for a row by {', '.join(key)}; name it by {', '.join(picture.key)}"
            )
        wanted = _plain(key, columns)
        found = None if wanted is None else self._look_up(picture, columns, wanted)
        if found is not None:
            return found
        return tuple(found for found in _keys(picture) if self.holds(row_of(picture, found) or {}, key))

    def _look_up(self, picture: Picture, columns: tuple[str, ...], wanted: Key) -> tuple[Key, ...] | None:
        """The rows with exactly these values; None where one may have them in another form."""
        index = self._index(picture, columns)
        if wanted in index:
            return (wanted,) if columns == picture.key else tuple(index[wanted])
        is_exact = self.watched.compare.keys().isdisjoint(columns) and _is_of_like(wanted, index)
        return () if is_exact else None

    def _index(self, picture: Picture, columns: tuple[str, ...]) -> Mapping[Key, Sequence[Key]]:
        """The keys of a picture's rows by the values of some columns; made once, as `each` may ask for many."""
        if columns == picture.key:
            return cast("Mapping[Key, Sequence[Key]]", _keys(picture))
        place = (picture is self.before, columns)
        if place not in self._indexes:
            self._indexes[place] = _by_values(picture, columns)
        return self._indexes[place]

    def holds(self, row: Mapping[str, object], values: Mapping[str, Value]) -> bool:
        """Whether a row, given by column, holds these values. Raises `Incomparable`."""
        return all(self._holds(row, column, value) for column, value in values.items())

    def _holds(self, row: Mapping[str, object], column: str, value: Value) -> bool:
        _must_be_in(column, row)
        return meets(value, Cell(row[column], UNKNOWN, self.how.get(column, Comparison()), self.window))


_PLAIN: Mapping[str, type] = {"text": str, "integer": int}
"""The type of what a column holds, where a value of that type equals only itself."""


def _must_be_in(column: str, columns: Container[str]) -> None:
    if column not in columns:
        raise Incomparable(f"{column} is not looked at: the watch ignores it, or there is no such column")


def _keys(picture: Picture) -> Mapping[Key, object]:
    return picture.rows if picture.hashes is None else picture.hashes


def _by_values(picture: Picture, columns: tuple[str, ...]) -> dict[Key, list[Key]]:
    """The keys of rows by the values of columns; rows that hold a document there are left out."""
    places = [picture.columns.index(column) for column in columns]
    found: dict[Key, list[Key]] = {}
    for key, row in picture.rows.items():
        values = tuple(row[place] for place in places)
        if not any(isinstance(value, list | dict) for value in values):
            found.setdefault(values, []).append(key)
    return found


def _plain(key: Mapping[str, Value], columns: tuple[str, ...]) -> Key | None:
    """The key's values in this order, if all are plain and can be looked up."""
    values = [key[name] for name in columns]
    plain = tuple(value.value for value in values if isinstance(value, Given))
    is_plain = len(plain) == len(values) and not any(isinstance(value, list | dict) for value in plain)
    return plain if is_plain else None


def _is_of_like(key: Key, known: Iterable[Key]) -> bool:
    """Whether a key is made of the same types as the known ones, so that it is not there in another form."""
    sample = next(iter(known), None)
    return sample is None or (
        all(type(value) in (int, str) for value in key) and [*map(type, key)] == [*map(type, sample)]
    )
