"""What a value is made of, read without running its code: the one way in which values are looked into."""

from __future__ import annotations

import dataclasses
from collections import deque
from collections.abc import Iterable, Mapping, Sequence, Sized
from contextlib import suppress
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from ipaddress import IPv4Address, IPv6Address
from itertools import islice
from pathlib import PurePath
from types import MappingProxyType
from typing import Final, NamedTuple, cast
from uuid import UUID

_Dict = dict[object, object]
MOST_OF_A_MAPPING: Final = 100_000
"""So many members of a mapping that is no dictionary are taken, if no bound is given: it may have no end."""
_EXACT: Final = frozenset({str, int, float, bool, type(None), dict, list, tuple, set, frozenset, bytes})


class Members(NamedTuple):
    """A container opened: the names of its members (None for a sequence), the members, and how many there are.

    `unordered` tells that the order means nothing (a set). `hidden` are names that the value's own
    declaration keeps out of its repr.
    """

    names: Sequence[object] | None
    values: Sequence[object]
    size: int
    unordered: bool = False
    hidden: frozenset[str] = frozenset()


_PRINTED: Final = (
    date,
    datetime,
    time,
    timedelta,
    Decimal,
    Fraction,
    UUID,
    PurePath,
    IPv4Address,
    IPv6Address,
    complex,
    range,
)


def printed(value: object) -> str | None:
    """The text of a plain value that is none of JSON's (a date, a decimal, a path...), or None; never raises."""
    kind = type(value)
    with suppress(Exception):  # a subclass of the user's, or its time zone, may raise anything
        if issubclass(kind, (datetime, date, time)):
            return cast("datetime | date | time", value).isoformat()
        return str(value) if issubclass(kind, _PRINTED) else None
    return None


def exact(value: object) -> object:
    """An enumeration's value, and a subclass of text or number as the plain value it is; else the value itself."""
    kind = type(value)
    if kind in _EXACT:
        return value
    if issubclass(kind, Enum):
        return exact(getattr(value, "_value_", None))
    if issubclass(kind, str):
        return str.__str__(cast("str", value))
    if issubclass(kind, int) and kind is not bool:
        return int.__add__(cast("int", value), 0)
    if issubclass(kind, float):
        return float.__add__(cast("float", value), 0.0)
    return value


def members(value: object, most: int | None = None) -> Members | None:
    """What a container holds, at most the first `most` members; None for anything that is not one.

    Opened are dictionaries and other mappings, lists, tuples, sets, deques, named tuples, dataclasses,
    pydantic models and attrs classes, by their stored fields. Everything else (a file, a generator, a lock, a
    client, an iterator) is not touched. Never raises.
    """
    with suppress(Exception):  # a mapping, a descriptor or a metaclass of the user's may raise anything
        return _opened(value, type(value), most)
    return None


def _opened(value: object, kind: type, most: int | None) -> Members | None:
    if _is(kind, dict):
        # Called on the class, so that a subclass's own method is not run.
        return _mapping(_Dict.items(cast("_Dict", value)), most)
    if _is(kind, tuple) and hasattr(kind, "_fields"):
        names = cast("Iterable[object]", getattr(kind, "_fields", ()))
        return _mapping(list(zip(names, cast("tuple[object, ...]", value), strict=False)), most)
    if _is(kind, list, tuple, deque):
        return _sequence(cast("list[object]", value), most)
    if _is(kind, set, frozenset):
        return _sequence(cast("set[object]", value), most)._replace(unordered=True)
    if _is(kind, MappingProxyType, Mapping):
        return _mapping(cast("Mapping[object, object]", value).items(), MOST_OF_A_MAPPING if most is None else most)
    return _fields(value, kind)


def _is(kind: type, *bases: type) -> bool:
    return issubclass(kind, bases)


def _mapping(pairs: Iterable[tuple[object, object]], most: int | None) -> Members:
    # One call in C takes the pairs, so that another thread cannot change the dictionary meanwhile.
    taken = list(islice(pairs, most))
    size = len(cast("Sized", pairs))
    return Members([name for name, _ in taken], [item for _, item in taken], size)


def _sequence(items: Iterable[object], most: int | None) -> Members:
    return Members(None, list(islice(items, most)), len(cast("Sized", items)))


def _fields(value: object, kind: type) -> Members | None:
    """The stored fields of a dataclass, a pydantic model or an attrs instance."""
    if hasattr(kind, "__dataclass_fields__"):
        declared = dataclasses.fields(kind)
        hidden = frozenset(field.name for field in declared if not field.repr)
        return _stored(value, [field.name for field in declared], hidden)
    model: object = getattr(kind, "__pydantic_fields__", None)
    if isinstance(model, dict):
        return _model(value, cast("dict[str, object]", model))
    attributes: object = getattr(kind, "__attrs_attrs__", None)
    if isinstance(attributes, tuple):
        declared = cast("tuple[dataclasses.Field[object], ...]", attributes)
        return _stored(value, [attribute.name for attribute in declared], frozenset())
    return None


def _model(value: object, declared: Mapping[str, object]) -> Members:
    hidden = frozenset(name for name, field in declared.items() if not getattr(field, "repr", True))
    extra = cast("Mapping[str, object] | None", getattr(value, "__pydantic_extra__", None)) or {}
    stored: dict[str, object] = {**vars(value), **extra}
    return Members(list(stored), list(stored.values()), len(stored), hidden=hidden)


def _stored(value: object, names: list[str], hidden: frozenset[str]) -> Members:
    values = [getattr(value, name, None) for name in names]
    return Members(names, values, len(names), hidden=hidden)


def type_name(value: object) -> str:
    """What stands for a value that is not looked into: its class, as in `<TextIOWrapper>`."""
    with suppress(Exception):  # a metaclass of the user's
        return f"<{type(value).__name__}>"
    return "<object>"
