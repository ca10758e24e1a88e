"""Taking a picture of a SQLite table: whole rows, or key and hash of each row."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b
from itertools import chain
from typing import Final

from guardrail.pictures import ColumnKind, Key, Picture, Row
from guardrail.query.binding import bind, bind_value
from guardrail.stores.photographs import by_key, check_pinned, check_size, check_unique, fitted, keys
from guardrail.stores.sqlite.schema import read_table
from guardrail.stores.sqlite.sessions import Session, quoted
from guardrail.stores.store import Photograph
from guardrail.stores.structures import packed, structure

_BATCH: Final = 1_000


def photograph(session: Session, question: Photograph) -> Picture:
    """The picture of a table or view. Raises `StoreError` and `sqlite3.Error`.

    The rows are hashed here and not by a function within SQLite: both run in this process and cost the
    same, but so one pass over the table decides its form, hashes it and needs no function allowed.
    """
    table = read_table(session, question.table)
    key, columns = fitted(question, table)
    wholly = question.most_rows if question.hashed is False else question.whole_rows
    cursor = _select(session, question, columns)
    first: list[Row] = cursor.fetchmany(min(wholly, question.most_rows) + 1)
    hashes: Mapping[Key, bytes] | None = None
    kinds: dict[str, ColumnKind] = {name: table.kinds[name] for name in columns}
    if len(first) > wholly or question.hashed:
        batches = chain([first], iter(lambda: cursor.fetchmany(_BATCH), []))
        documents = [place for place, kind in enumerate(kinds.values()) if kind == "json"]
        hashes = _hashes(batches, key, documents, question.most_rows)
        rows = _pinned(session, question, columns, key)
    else:
        check_size(len(first), question.most_rows)
        rows = by_key(first, key)
    return Picture(question.name, key, columns, kinds, rows, hashes, table.generated.intersection(columns))


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
    check_pinned(question, key)
    for pinned in question.pinned:
        rows += _select(session, question, columns, dict(zip(key, pinned, strict=True))).fetchall()
    return dict(zip(keys(rows, len(key)), rows, strict=True))


def _hashes(
    batches: Iterable[list[Row]], key: tuple[str, ...], documents: Sequence[int], most: int
) -> dict[Key, bytes]:
    """The hash of each row by its key; `documents` are the places of the JSON columns."""
    total = 0
    hashes: dict[Key, bytes] = {}
    for batch in batches:
        total += len(batch)
        check_size(total, most)
        told = [_structured(row, documents) for row in batch] if documents else batch
        hashes.update(zip(keys(batch, len(key)), _digests(told), strict=True))
    check_unique(total, len(hashes), key)
    return hashes


def _structured(row: Row, documents: Sequence[int]) -> Row:
    """The row with its JSON documents told by their structure, as they compare in a picture of whole rows."""
    told = list(row)
    for place in documents:
        told[place] = structure(row[place])
    return tuple(told)


def digest(row: Row) -> bytes:
    """A row's hash: the same in every process and on every machine, for the ledger keeps it.

    What cannot be packed comes from a converter of the user's, and is hashed by its `repr`.
    """
    try:
        told = packed(row)
    except ValueError:
        told = repr(row).encode(errors="surrogatepass")
    return blake2b(told, digest_size=16).digest()


def _digests(rows: list[Row]) -> list[bytes]:
    """The same for many rows, at half the cost where every row can be packed."""
    try:
        return [blake2b(packed(row), digest_size=16).digest() for row in rows]
    except ValueError:
        return [digest(row) for row in rows]
