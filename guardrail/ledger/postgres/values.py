"""Statements and values on their way to a PostgreSQL server and back.

The server infers the types of parameters from where they stand, so a statement stays the same whatever its values are.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, TypeAlias

Parameters: TypeAlias = tuple[list[bytes | None], list[int]]
"""The values as they are sent, and which of them are binary (1)."""


class ValueRefused(Exception):
    """A value of a type that no column has."""


@lru_cache(maxsize=256)
def numbered(statement: str) -> bytes:
    """The statement with `$1`, `$2` and so on for its marks."""
    first, *rest = statement.split("?")
    return (first + "".join(f"${number}{part}" for number, part in enumerate(rest, 1))).encode()


def encoded(values: Sequence[object]) -> Parameters:
    """Values as parameters. Raises `ValueRefused`."""
    return [_encoded(value) for value in values], [int(isinstance(value, bytes)) for value in values]


def _encoded(value: object) -> bytes | None:
    match value:
        case str():
            return _text(value)
        case None | bytes():
            return value
        case bool() | int() | float():
            return repr(value).encode()
        case _:
            raise ValueRefused(f"a value of type {type(value).__name__}")


def _text(value: str) -> bytes:
    """A text as it is, but escaped where the server has no form for it: a NUL, and half of a surrogate pair."""
    return value.encode("utf-8", "backslashreplace").replace(b"\0", b"\\x00")


def decoded(value: bytes | None, kind: int) -> Any:
    """What the server sent in the binary form of a type (its OID)."""
    return None if value is None else _FORMS.get(kind, bytes.decode)(value)


def _integer(value: bytes) -> int:
    return int.from_bytes(value, "big", signed=True)


_FORMS: Final[Mapping[int, Callable[[bytes], Any]]] = {
    16: lambda value: value == b"\1",  # boolean
    17: bytes,  # bytea
    20: _integer,
    21: _integer,
    23: _integer,
    701: lambda value: struct.unpack("!d", value)[0],  # double precision
}
"""By type; whatever else is asked for is a text."""
