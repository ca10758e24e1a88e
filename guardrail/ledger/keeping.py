"""How a picture is kept: compressed, values with their exact types, redacted columns as digests.

It is stored column by column, because the values of a column are alike: that compresses well, and what is
JSON's own needs no conversion. The stored form is JSON (and the row hashes, which nothing compresses, as they
are), so reading a file can do nothing but give values.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from itertools import accumulate, pairwise
from typing import Any, TypeAlias, cast
from uuid import UUID

from guardrail.digests import Digest, new_key
from guardrail.errors import LedgerError
from guardrail.pictures import Key, Picture

Stored: TypeAlias = Any
"""What JSON can hold. A value that it cannot is an object with one member, which names the type."""

_PLAIN = frozenset({str, int, float, bool, type(None)})
_PORTION = 5_000  # values: about a millisecond
_QUICK = 1  # zlib's level; its default takes four times as long to save a tenth more


def _base64(value: bytes) -> str:
    return base64.b64encode(value).decode()


_Form: TypeAlias = tuple[str, Callable[[Any], Stored], Callable[[Stored], object]]

_TYPES: Mapping[type, _Form] = {
    Decimal: ("decimal", str, Decimal),
    datetime: ("datetime", datetime.isoformat, datetime.fromisoformat),
    date: ("date", date.isoformat, date.fromisoformat),
    time: ("time", time.isoformat, time.fromisoformat),
    timedelta: ("span", lambda v: (v.days, v.seconds, v.microseconds), lambda v: timedelta(*v)),
    UUID: ("uuid", str, UUID),
    bytes: ("bytes", _base64, base64.b64decode),
    Digest: (
        "digest",
        lambda v: (v.key + v.code).hex(),
        lambda v: Digest(bytes.fromhex(v[:32]), bytes.fromhex(v[32:])),
    ),
    list: ("list", lambda v: [_store(item) for item in v], lambda v: [_restore(item) for item in v]),
    tuple: ("tuple", lambda v: [_store(item) for item in v], lambda v: tuple(_restore(item) for item in v)),
    dict: ("dict", lambda v: [_store(pair) for pair in v.items()], lambda v: dict(_restore(pair) for pair in v)),
}
_RESTORE = {name: restore for name, _, restore in _TYPES.values()}


def pack(picture: Picture, redacted: Collection[str] = ()) -> bytes:
    """The stored form of a picture.

    The values of `redacted` columns, also where they are part of the key, become digests under a key of
    this picture. Raises `LedgerError` for a value of a type that cannot be kept.
    """
    store = _Columns(picture, frozenset(redacted))
    apart = any(row[: len(key)] != key for key, row in picture.rows.items())
    form = {
        "table": picture.table,
        "key": picture.key,
        "columns": picture.columns,
        "kinds": dict(picture.kinds),
        "generated": sorted(picture.generated),
        "rows": store(picture.rows.values()),
        "keys": store(picture.rows) if apart else None,
    }
    hashes = picture.hashes
    if hashes is not None:
        form |= {"hashed": store(hashes), "lengths": [len(code) for code in hashes.values()]}
    head = zlib.compress(_written(form).encode(), _QUICK)
    return b"".join((len(head).to_bytes(8), head, *(hashes or {}).values()))


def _written(form: Stored) -> str:
    """JSON text, written in portions: each is one step for Python, in which no other thread goes on."""
    if isinstance(form, dict):
        members = cast("dict[str, Stored]", form).items()
        return f"{{{','.join(f'{json.dumps(name)}:{_written(value)}' for name, value in members)}}}"
    if isinstance(form, list | tuple):
        items = cast("Sequence[Stored]", form)
        if len(items) > _PORTION:
            portions = (_json(items[start : start + _PORTION])[1:-1] for start in range(0, len(items), _PORTION))
            return f"[{','.join(portions)}]"
        if any(isinstance(item, list | tuple | dict) for item in items):
            return f"[{','.join(map(_written, items))}]"
    return _json(form)


def _json(form: Stored) -> str:
    return json.dumps(form, separators=(",", ":"))


def unpack(content: bytes) -> Picture:
    """The picture whose stored form this is; redacted values are `Digest`s."""
    end = 8 + int.from_bytes(content[:8])
    form = json.loads(zlib.decompress(content[8:end]))
    rows = _rows(form["rows"])
    width = len(form["key"])
    keys = [row[:width] for row in rows] if form["keys"] is None else _rows(form["keys"])
    return Picture(
        table=form["table"],
        key=tuple(form["key"]),
        columns=tuple(form["columns"]),
        kinds=form["kinds"],
        rows=dict(zip(keys, rows, strict=True)),
        hashes=_hashes(form, content[end:]) if "lengths" in form else None,
        generated=frozenset(form["generated"]),
    )


def _hashes(form: Stored, codes: bytes) -> dict[Key, bytes]:
    ends = accumulate(form["lengths"], initial=0)
    return dict(zip(_rows(form["hashed"]), (codes[begin:end] for begin, end in pairwise(ends)), strict=True))


class _Columns:
    """Turns the rows, or the keys, of one picture into stored columns."""

    def __init__(self, picture: Picture, redacted: frozenset[str]) -> None:
        self._table = picture.table
        self._names = picture.columns
        self._redacted = redacted
        self._secret = new_key()

    def __call__(self, rows: Iterable[Sequence[object]]) -> list[Stored]:
        columns = zip(*rows, strict=True)
        return [self._column(name, column) for name, column in zip(self._names, columns, strict=False)]

    def _column(self, name: str, values: Sequence[object]) -> Stored:
        try:
            return _encode([Digest.of(v, self._secret) for v in values] if name in self._redacted else values)
        except TypeError as error:
            raise LedgerError(f"the picture of {self._table} cannot be kept: column {name}: {error}") from error


def _rows(columns: Sequence[Stored]) -> list[Key]:
    return list(zip(*map(_decode, columns), strict=True))


def _encode(values: Sequence[object]) -> Stored:
    """A column: as it is when JSON has all its types, under one type when it has one, else value by value."""
    types = set(map(type, values))
    if types <= _PLAIN:
        return values
    only = types - {type(None)}
    if len(only) > 1:
        return {"mixed": [_store(value) for value in values]}
    name, store, _ = _form(only.pop())
    return {name: [None if value is None else store(value) for value in values]}


def _decode(column: Stored) -> Sequence[object]:
    if isinstance(column, list):
        return cast("list[object]", column)
    ((name, values),) = column.items()
    restore = _restore if name == "mixed" else _RESTORE[name]
    return [None if value is None else restore(value) for value in values]


def _store(value: object) -> Stored:
    if type(value) in _PLAIN:
        return value
    name, store, _ = _form(type(value))
    return {name: store(value)}


def _restore(stored: Stored) -> Any:
    if not isinstance(stored, dict):
        return stored
    ((name, value),) = cast("dict[str, Stored]", stored).items()
    return _RESTORE[name](value)


def _form(kind: type) -> _Form:
    if kind not in _TYPES:
        raise TypeError(f"a value of type {kind.__name__} is not one that a picture may hold")
    return _TYPES[kind]
