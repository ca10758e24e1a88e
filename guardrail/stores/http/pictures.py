"""Taking a picture of a resource: rows without a schema, gathered page by page."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from hashlib import blake2b
from typing import Final, TypeAlias, cast

from guardrail.errors import StoreError
from guardrail.pictures import ColumnKind, Key, Picture
from guardrail.pointers import MISSING, follow, pointer
from guardrail.stores.http.api import Resource
from guardrail.stores.http.messages import check_depth
from guardrail.stores.photographs import check_size, check_unique
from guardrail.stores.store import Photograph
from guardrail.stores.structures import packed, plain

MOST_COLUMNS: Final = 1_000
"""How many columns all rows of a picture may have together."""

_Object: TypeAlias = Mapping[str, object]

_KINDS: Final[Mapping[frozenset[type], ColumnKind]] = {
    frozenset({bool}): "boolean",
    frozenset({int}): "integer",
    frozenset({Decimal}): "decimal",
    frozenset({int, Decimal}): "decimal",
    frozenset({str}): "text",
    frozenset({dict}): "json",
    frozenset({list}): "json",
    frozenset({dict, list}): "json",
}
"""How the values of a column compare, by the types of those that are not null."""


def rows_in(page: object, at: tuple[str, ...]) -> list[_Object]:
    """The rows of a page: the list that stands there, or the one object. Raises `StoreError` where neither does."""
    found = follow(page, at)
    where = f"what it answers has at {pointer(at)}" if at else "it answers"
    if found is MISSING:
        raise StoreError(f"{where} nothing, where its rows should be")
    if found is None:
        return []
    rows = cast("list[object]", found) if isinstance(found, list) else [found]
    if not all(isinstance(row, dict) for row in rows):
        raise StoreError(f"{where} no list of objects, nor an object")
    return cast("list[_Object]", rows)


def key_of(row: _Object, key: tuple[str, ...]) -> Key:
    """The key of a row. Raises `StoreError` when it does not have all of it as texts or numbers."""
    values = tuple(row.get(name) for name in key)
    if all(isinstance(value, str | int | Decimal) for value in values):
        return values
    lacking = next(name for name in key if not isinstance(row.get(name), str | int | Decimal))
    raise StoreError(
        f"a row has no text or number as {lacking}, which is its key; name the columns that tell rows apart"
    )


class Gathering:
    """The rows of one picture while its pages come in: whole, and hashed when they become too many for that."""

    def __init__(self, question: Photograph, resource: Resource) -> None:
        """Raises `StoreError` when no key is known, or a part of it is ignored."""
        key = question.key or resource.key
        if not key:
            raise StoreError("nothing tells its rows apart; declare a key")
        if not question.ignore.isdisjoint(key):
            raise StoreError(f"{', '.join(sorted(question.ignore.intersection(key)))} is part of the key, and ignored")
        self._question = question
        self._key = key
        self._pinned = {_text(pinned) for pinned in question.pinned}
        self._whole = question.most_rows if question.hashed is False else question.whole_rows
        self._size = 0
        self._claims = resource.next is None and not resource.whole
        self._claimed = 0
        self._rows: dict[Key, _Object] = {}
        self._hashes: dict[Key, bytes] | None = {} if question.hashed else None
        self._types: dict[str, set[type]] = {}

    def take(self, rows: list[_Object]) -> None:
        """Take the rows of a page, out of the list. Raises `StoreError` for too many, and for keys that do not do."""
        self._size += len(rows)
        check_size(self._size, self._question.most_rows)
        rows.reverse()
        while rows:  # one by one they are given up, too: all at once would hold up other threads
            self._take(rows.pop())
        if self._hashes is None:
            check_unique(self._size, len(self._rows), self._key)
            if self._size > self._whole:
                self._hashes = {key: digest(row) for key, row in self._rows.items()}
                self._rows = {key: row for key, row in self._rows.items() if _text(key) in self._pinned}
        check_unique(self._size, len(self._rows if self._hashes is None else self._hashes), self._key)

    def hear(self, claimed: int) -> None:
        """Take note of how many entries a page says that there are; where pages are followed, that tells nothing."""
        if self._claims:
            self._claimed = max(self._claimed, claimed)

    def _take(self, row: _Object) -> None:
        key, ignored = key_of(row, self._key), self._question.ignore
        if not ignored.isdisjoint(row):
            row = {name: value for name, value in row.items() if name not in ignored}
        for name, value in row.items():
            if value is not None:
                check_depth(value)
                self._types.setdefault(name, set()).add(type(value))
        if len(self._types) > MOST_COLUMNS:
            raise StoreError(
                f"its rows have more than {MOST_COLUMNS:,} different columns; watch a part with fixed names"
            )
        if self._hashes is None or _text(key) in self._pinned:
            self._rows[key] = row
        if self._hashes is not None:
            self._hashes[key] = digest(row)

    def picture(self) -> Picture:
        """The picture of all rows that were taken, which are given up."""
        question = self._question
        named = (name for name in question.named if name not in question.ignore)
        columns = tuple(dict.fromkeys((*self._key, *named, *self._types)))
        kinds: dict[str, ColumnKind] = {
            name: _KINDS.get(frozenset(types), "unknown") for name, types in self._types.items()
        }
        rows = {key: tuple(map(self._rows.pop(key).get, columns)) for key in tuple(self._rows)}
        claimed = self._claimed if self._claimed > self._size else 0
        return Picture(question.name, self._key, columns, kinds, rows, self._hashes, claimed=claimed)


def _text(key: Key) -> tuple[str, ...]:
    """A key as it is written: a contract may name a row by a number whose API has it as a text."""
    return tuple(map(str, key))


def digest(row: _Object) -> bytes:
    """A row's hash: the same whatever the order of names, the form of numbers, and whether nulls are left out."""
    told = sorted((name, plain(value)) for name, value in row.items() if value is not None)
    return blake2b(packed(told), digest_size=16).digest()
