"""Binding a query's parameters: values as the dialect's driver takes them, never silently changed."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Generator, Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from math import isfinite, isnan
from typing import Final, TypeAlias, cast
from uuid import UUID

from guardrail.errors import StoreError
from guardrail.query.proof import Dialect, Query


def bind(query: Query, values: Mapping[str, object]) -> dict[str, object]:
    """The values of the query's parameters, converted for the driver of its dialect.

    For all: an Enum is its value; in what becomes JSON, a Decimal is the number that reads back as the same
    decimal, a date, time or UUID its ISO text.
    SQLite: a Decimal becomes the number that reads back as the same decimal, a bool 0 or 1, a date, time or UUID its
    ISO text (an instant with a blank between date and time, as SQLite writes it), a list, tuple or mapping JSON text
    for `json_each`.
    PostgreSQL (psycopg): numbers, bool, bytes, UUID, dates, times, instants and timedelta as they are, a list or tuple
    an array of one type, for `= ANY(:name)`, a mapping `jsonb`.
    MySQL (PyMySQL): a number an exact literal, a bool 0 or 1, a UUID, date or time its ISO text. An instant with a zone
    is written in UTC: MySQL's types keep no zone, and the sessions of stores are in UTC. A list, tuple or mapping is
    JSON text.

    Raises `StoreError` for a missing value, for a type that has no such form, and for a value that the database could
    only keep changed.
    """
    return {name: _bound(name, values, query.dialect) for name in query.parameters}


def bind_in_order(query: Query, values: Mapping[str, object]) -> list[object]:
    """The same in the order of the query's parameters, as `$1`, `$2` of PostgreSQL take them."""
    return [*bind(query, values).values()]


def bind_value(value: object, dialect: Dialect) -> object:
    """One value, converted for the driver of the dialect; raises `StoreError` as `bind` does."""
    try:
        return _CONVERTERS[dialect](_plain(value))
    except (TypeError, ValueError, ArithmeticError, RecursionError) as error:
        raise StoreError(f"the value cannot be bound: {error}") from error


def _bound(name: str, values: Mapping[str, object], dialect: Dialect) -> object:
    if name not in values:
        known = ", ".join(f":{other}" for other in sorted(values)) or "none"
        raise StoreError(f"the parameter :{name} has no value (there is {known})")
    try:
        return bind_value(values[name], dialect)
    except StoreError as error:
        raise StoreError(f"the parameter :{name}: {error}") from error


def _plain(value: object) -> object:
    """The value of an Enum, and the bytes of what holds them."""
    match value:
        case Enum():
            return _plain(value.value)
        case bytearray():
            return bytes(value)
        case memoryview():
            return cast("memoryview[int]", value).tobytes()
        case _:
            return value


def _for_sqlite(value: object) -> object:
    match value:
        case None:
            return None
        case bool():
            return int(value)
        case int():
            return _integer(int(value))
        case float():
            return _float(float(value))
        case Decimal():
            return _decimal(value)
        case str():
            return _text(value)
        case bytes():
            return bytes(value)
        case date() | time() | UUID():
            return _written(value)
        case list() | tuple() | Mapping():
            return _json(cast("_Parts", value))
        case _:
            raise TypeError(f"SQLite takes no {type(value).__name__}")


def _for_postgres(value: object) -> object:
    match value:
        case None | bool() | date() | time() | timedelta() | UUID():
            return value
        case float():
            return float(value)
        case int():
            return _whole(int(value), 1000)
        case Decimal():
            return _numeric(value)
        case str():
            return _without_nul(_text(value))
        case bytes():
            return bytes(value)
        case list() | tuple():
            return _array([_for_postgres(_plain(part)) for part in cast("Sequence[object]", value)])
        case Mapping():
            return _jsonb(cast("_Parts", value))
        case _:
            raise TypeError(f"PostgreSQL takes no {type(value).__name__}")


def _for_mysql(value: object) -> object:
    match value:
        case None:
            return None
        case bool():
            return int(value)
        case int():
            return _whole(int(value), 65)
        case float():
            return _finite(float(value))
        case Decimal():
            return _exact(value)
        case str():
            return _text(value)
        case bytes():
            return bytes(value)
        case date() | time() | UUID():
            return _written(_without_zone(value))
        case list() | tuple() | Mapping():
            return _json(cast("_Parts", value))
        case _:
            raise TypeError(f"MySQL takes no {type(value).__name__}")


_Parts: TypeAlias = list[object] | tuple[object, ...] | Mapping[object, object]
"""What becomes JSON."""


def _integer(value: int) -> int:
    if not -(2**63) <= value < 2**63:
        raise OverflowError(f"{value} does not fit into 64 bits")
    return value


def _whole(value: int, digits: int) -> int:
    if abs(value) >= 10**digits:
        raise OverflowError(f"it has more than {digits} digits")
    return value


def _float(value: float) -> float:
    if isnan(value):
        raise ValueError("SQLite would make NULL of NaN")
    return value


def _finite(value: float) -> float:
    if not isfinite(value):
        raise ValueError(f"MySQL has no number that is {value}")
    return value


def _decimal(value: Decimal) -> float | int:
    """A number, not text: text is greater than every number, so that a sum compared with it would be wrong."""
    number = float(value)
    if isfinite(number) and Decimal(repr(number)) == value:
        return number
    if value.is_finite() and value.adjusted() < 19 and value == int(value):
        return _integer(int(value))
    raise ValueError(f"there is no number of 64 bits that is exactly {value}; give it as text")


def _numeric(value: Decimal) -> Decimal:
    """A decimal that `numeric` keeps; it may be NaN or infinite."""
    if value.is_snan():
        raise ValueError("PostgreSQL has no signaling NaN")
    if value.is_finite() and (_scale(value) > 16_383 or value.adjusted() >= 131_072):
        raise OverflowError("it has more digits than numeric has")
    return Decimal(value)


def _exact(value: Decimal) -> Decimal:
    """A decimal that a literal can hold; what is longer MySQL rounds, or makes a floating-point number of."""
    if not value.is_finite():
        raise ValueError(f"MySQL has no number that is {value}")
    if _scale(value) > 30 or max(value.adjusted() + 1, 1) + _scale(value) > 65:
        raise OverflowError("it has more than 65 digits, or more than 30 after the point")
    return Decimal(value)


def _scale(value: Decimal) -> int:
    exponent = value.as_tuple().exponent
    return max(-exponent, 0) if isinstance(exponent, int) else 0


def _text(value: str) -> str:
    value.encode()  # a lone surrogate has no UTF-8
    return str.__str__(value)


def _without_nul(text: str) -> str:
    if "\0" in text:
        raise ValueError("PostgreSQL takes no text with a NUL character")
    return text


def _written(value: date | time | UUID) -> str:
    match value:
        case datetime():
            return value.isoformat(sep=" ")
        case date() | time():
            return value.isoformat()
        case UUID():
            return str(value)


def _without_zone(value: date | time | UUID) -> date | time | UUID:
    match value:
        case datetime() if value.tzinfo:
            return value.astimezone(UTC).replace(tzinfo=None)
        case time() if value.tzinfo:
            raise ValueError("MySQL has no time of day with a zone")
        case _:
            return value


def _array(parts: list[object]) -> list[object]:
    """The parts of an array, which PostgreSQL wants of one type and in even rows."""
    leaves = [leaf for leaf in _leaves(parts) if leaf is not None]
    kinds = {_kind(leaf) for leaf in leaves}
    if len(kinds) > 1:
        raise TypeError(f"PostgreSQL takes lists of one type; this one holds {' and '.join(sorted(kinds))}")
    rows = [cast("list[object]", part) for part in parts if isinstance(part, list)]
    lengths = {len(row) for row in rows}
    if rows and (len(rows) != len(parts) or len(lengths) > 1 or lengths == {0}):
        raise ValueError("PostgreSQL takes lists of lists only where all are of one length, and not empty")
    return parts


def _leaves(parts: list[object]) -> Generator[object]:
    for part in parts:
        yield from _leaves(cast("list[object]", part)) if isinstance(part, list) else (part,)


def _kind(value: object) -> str:
    """The type of an array's part by name; an instant without a zone would be given that of the session."""
    zoned = isinstance(value, datetime) and value.tzinfo is not None
    return f"{type(value).__name__} with a zone" if zoned else type(value).__name__


def _jsonb(value: _Parts) -> object:
    from psycopg.types.json import Jsonb  # an optional extra, which whoever has PostgreSQL has

    text = _json(value)
    if _NUL_IN_JSON.search(text):
        raise ValueError("PostgreSQL takes no JSON text with a NUL character")
    return Jsonb(text, dumps=str)


_NUL_IN_JSON: Final = re.compile(r"(?<!\\)(?:\\\\)*\\u0000")


def _json(value: _Parts) -> str:
    return _text(json.dumps(value, ensure_ascii=False, allow_nan=False, default=_in_json))


def _in_json(value: object) -> object:
    """What a list or mapping may hold beside JSON's own kinds."""
    match value:
        case Mapping():
            return dict(cast("Mapping[object, object]", value))
        case Enum():
            return _plain(value)
        case Decimal():
            return _decimal(value)
        case date() | time() | UUID():
            return _written(value)
        case _:
            raise TypeError(f"JSON takes no {type(value).__name__}")


_CONVERTERS: Final[Mapping[Dialect, Callable[[object], object]]] = {
    "sqlite": _for_sqlite,
    "postgres": _for_postgres,
    "mysql": _for_mysql,
}
