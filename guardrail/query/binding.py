"""Binding a query's parameters: values as the dialect's driver takes them, never silently changed."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import date, datetime, time
from decimal import Decimal
from enum import Enum
from math import isfinite, isnan
from typing import Final, cast
from uuid import UUID

from guardrail.errors import StoreError
from guardrail.query.proof import Dialect, Query


def bind(query: Query, values: Mapping[str, object]) -> dict[str, object]:
    """The values of the query's parameters, converted for the driver of its dialect.

    For SQLite: a Decimal becomes the number that reads back as the same decimal, a bool 0 or 1, a date, time or
    UUID its ISO text (an instant with a blank between date and time, as SQLite writes it), a list, tuple
    or mapping JSON text for `json_each`. Raises `StoreError` for a missing value, for a type that has no such
    form, and for a value that SQLite could only keep changed.
    """
    return {name: _bound(name, values, query.dialect) for name in query.parameters}


def bind_value(value: object, dialect: Dialect) -> object:
    """One value, converted for the driver of the dialect; raises `StoreError` as `bind` does."""
    converter = _CONVERTERS.get(dialect)
    if converter is None:
        raise StoreError(f"values cannot be bound for {dialect}: no driver for it is part of this version")
    try:
        return converter(value)
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


def _for_sqlite(value: object) -> object:
    match value:
        case None:
            return None
        case Enum():
            return _for_sqlite(value.value)
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
        case bytes() | bytearray():
            return bytes(value)
        case memoryview():
            return cast("memoryview[int]", value).tobytes()
        case datetime():
            return value.isoformat(sep=" ")
        case date() | time():
            return value.isoformat()
        case UUID():
            return str(value)
        case list() | tuple() | Mapping():
            return json.dumps(value, ensure_ascii=False, allow_nan=False, default=_in_json)
        case _:
            raise TypeError(f"SQLite takes no {type(value).__name__}")


def _integer(value: int) -> int:
    if not -(2**63) <= value < 2**63:
        raise OverflowError(f"{value} does not fit into 64 bits")
    return value


def _float(value: float) -> float:
    if isnan(value):
        raise ValueError("SQLite would make NULL of NaN")
    return value


def _decimal(value: Decimal) -> float | int:
    """A number, not text: text is greater than every number, so that a sum compared with it would be wrong."""
    number = float(value)
    if isfinite(number) and Decimal(repr(number)) == value:
        return number
    if value.is_finite() and value.adjusted() < 19 and value == int(value):
        return _integer(int(value))
    raise ValueError(f"SQLite has no number that is exactly {value}; give it as text")


def _text(value: str) -> str:
    value.encode()  # a lone surrogate has no UTF-8
    return str.__str__(value)


def _in_json(value: object) -> object:
    """What a list or mapping may hold beside JSON's own kinds."""
    if isinstance(value, Mapping):
        return dict(cast("Mapping[object, object]", value))
    if isinstance(value, bytes | bytearray | memoryview):
        raise TypeError("JSON takes no bytes")
    return _for_sqlite(value)


_CONVERTERS: Final[Mapping[Dialect, Callable[[object], object]]] = {"sqlite": _for_sqlite}
