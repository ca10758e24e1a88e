"""Taking a picture of a SQLite table: whole rows, or key and hash of each row."""

from __future__ import annotations

import marshal
import sqlite3
from collections.abc import Iterable, Mapping
from dataclasses import replace
from hashlib import blake2b
from itertools import chain
from operator import itemgetter
from typing import Final, TypeAlias, cast

from guardrail.errors import StoreError
from guardrail.pictures import ColumnKind, Key, Picture, Row, as_spelled
from guardrail.query.binding import bind, bind_value
from guardrail.stores.sqlite_schema import read_table
from guardrail.stores.sqlite_sessions import Session, quoted
from guardrail.stores.store import Photograph, Table

_BATCH: Final = 1_000
_Plain: TypeAlias = tuple[str, ...]


def photograph(session: Session, question: Photograph) -> Picture:
    """The picture of a table or view. Raises `StoreError` and `sqlite3.Error`.

    The rows are hashed here and not by a function within SQLite: both run in this process and cost the
    same, but so one pass over the table decides its form, hashes it and needs no function allowed.
    """
    table = read_table(session, question.table)
    question = _spelled(question, table)
    key = _key(question, table)
    columns = _columns(question, table, key)
    wholly = question.most_rows if question.hashed is False else question.whole_rows
    cursor = _select(session, question, columns)
    first: list[Row] = cursor.fetchmany(min(wholly, question.most_rows) + 1)
    hashes: Mapping[Key, bytes] | None = None
    if len(first) > wholly or question.hashed:
        batches = chain([first], iter(lambda: cursor.fetchmany(_BATCH), []))
        hashes = _hashes(batches, key, question.most_rows)
        rows = _pinned(session, question, columns, key)
    else:
        rows = _by_key(first, key, question.most_rows)
    kinds: dict[str, ColumnKind] = {name: table.kinds[name] for name in columns}
    return Picture(question.name, key, columns, kinds, rows, hashes, table.generated.intersection(columns))


def _spelled(question: Photograph, table: Table) -> Photograph:
    """The question with the names of columns as the schema spells them."""
    known = dict.fromkeys((*table.columns, *(table.key or ())))
    key = question.key and tuple(as_spelled(name, known) for name in question.key)
    return replace(question, key=key, ignore=frozenset(as_spelled(name, known) for name in question.ignore))


def _key(question: Photograph, table: Table) -> tuple[str, ...]:
    key = question.key or table.key
    if not key:
        raise StoreError("nothing tells its rows apart; declare a key")
    _check_known(question.key or (), table, "the key")
    _check_known(sorted(question.ignore), table, "`ignore`")
    ignored = question.ignore.intersection(key)
    if ignored:
        raise StoreError(f"{', '.join(sorted(ignored))} is part of the key and cannot be ignored")
    return key


def _check_known(names: Iterable[str], table: Table, where: str) -> None:
    unknown = [name for name in names if name not in table.columns and name not in (table.key or ())]
    if unknown:
        raise StoreError(f"{where} names {', '.join(unknown)}; its columns are {', '.join(table.columns)}")


def _columns(question: Photograph, table: Table, key: tuple[str, ...]) -> tuple[str, ...]:
    return (*key, *(name for name in table.columns if name not in key and name not in question.ignore))


def _select(
    session: Session, question: Photograph, columns: tuple[str, ...], named: Mapping[str, object] | None = None
) -> sqlite3.Cursor:
    """The rows in scope; with `named`, those of one key."""
    conditions: list[str] = []
    values: dict[str, object] = {}
    if question.where is not None:
        conditions.append(f"({question.where.rendered})")
        values.update(bind(question.where, question.values))
    for number, (name, value) in enumerate((named or {}).items()):
        conditions.append(f"{quoted(name)} IS :guardrail_key_{number}")
        values[f"guardrail_key_{number}"] = bind_value(value, "sqlite")
    sql = f"SELECT {', '.join(map(quoted, columns))} FROM main.{quoted(question.table)}"
    if conditions:
        sql += f" WHERE {' AND '.join(conditions)}"
    return session.run(sql, values, question.where.functions if question.where else frozenset())


def _pinned(session: Session, question: Photograph, columns: tuple[str, ...], key: tuple[str, ...]) -> dict[Key, Row]:
    """Whole rows of the pinned keys; SQLite compares, so that a key may come in another type than it is stored."""
    rows: list[Row] = []
    for pinned in question.pinned:
        if len(pinned) != len(key):
            raise StoreError(f"the pinned key {pinned!r} does not fit the key ({', '.join(key)})")
        rows += _select(session, question, columns, dict(zip(key, pinned, strict=True))).fetchall()
    return dict(zip(_keys(rows, key), rows, strict=True))


def _by_key(rows: list[Row], key: tuple[str, ...], most: int) -> dict[Key, Row]:
    _check_size(len(rows), most)
    kept = dict(zip(_keys(rows, key), rows, strict=True))
    _check_unique(len(rows), len(kept), key)
    return kept


def _hashes(batches: Iterable[list[Row]], key: tuple[str, ...], most: int) -> dict[Key, bytes]:
    total = 0
    hashes: dict[Key, bytes] = {}
    for batch in batches:
        total += len(batch)
        _check_size(total, most)
        hashes.update(zip(_keys(batch, key), _digests(batch), strict=True))
    _check_unique(total, len(hashes), key)
    return hashes


def _keys(rows: list[Row], key: tuple[str, ...]) -> Iterable[Key]:
    """The first values of each row; a fifth of the time that slicing takes."""
    return zip(*(map(itemgetter(column), rows) for column in range(len(key))), strict=True)


def digest(row: Row) -> bytes:
    """A row's hash: the same in every process and on every machine, for the ledger keeps it.

    The second version of the marshal format tells values and types apart and knows nothing of the process. What
    it cannot hold comes from a converter of the user's, and is hashed by its `repr`.
    """
    try:
        plain = marshal.dumps(cast("_Plain", row), 2)
    except ValueError:
        plain = repr(row).encode(errors="surrogatepass")
    return blake2b(plain, digest_size=16).digest()


def _digests(rows: list[Row]) -> list[bytes]:
    """The same for many rows, at half the cost where every row can be marshalled."""
    try:
        return [blake2b(marshal.dumps(row, 2), digest_size=16).digest() for row in cast("list[_Plain]", rows)]
    except ValueError:
        return [digest(row) for row in rows]


def _check_size(rows: int, most: int) -> None:
    if rows > most:
        raise StoreError(f"it has more than {most:,} rows in scope; narrow it with `where`, or raise `most_rows`")


def _check_unique(rows: int, keys: int, key: tuple[str, ...]) -> None:
    if keys < rows:
        doubled = rows - keys
        raise StoreError(
            f"the key ({', '.join(key)}) is not unique: {doubled} of {rows} rows have the key of another; declare "
            "all columns that tell rows apart"
        )
