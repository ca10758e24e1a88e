"""The structure of a JSON document, for a hash: the same however the document is written.

What compares as equal has the same structure, and nothing else has: the order of names, blanks and the digits of a
number say nothing, while true is not 1 and an empty object is not an empty list.
"""

from __future__ import annotations

import json
import marshal
from decimal import MAX_EMAX, MAX_PREC, MIN_EMIN, Context, Decimal
from functools import lru_cache
from typing import Any, Final, TypeAlias, cast

_EXACT: Final = Context(prec=MAX_PREC, Emax=MAX_EMAX, Emin=MIN_EMIN)
_LONGEST: Final = 4_300
"""Up to how many digits Python reads a whole number of a text."""

_Plain: TypeAlias = tuple[str, ...]


def structure(value: object) -> object:
    """What tells a value of a JSON column: of a text that is a document bytes, and of other values what `plain` makes.

    A text that is no document, or is nested too deeply to be compared, tells itself.
    """
    if not isinstance(value, str | bytes):
        return plain(value)
    try:
        return packed(_read(value) if isinstance(value, str) else json.loads(value, **_READING))
    except (ValueError, ArithmeticError, RecursionError):
        return packed(value)


def packed(value: object) -> bytes:
    """Values as bytes that tell them and their types apart, and know nothing of the process.

    Raises `ValueError` for what the second version of the marshal format cannot hold.
    """
    return marshal.dumps(cast("_Plain", value), 2)


def plain(document: object) -> object:
    """A parsed document of values that can be packed: equal ones of equal documents."""
    match document:
        case dict():
            members = cast("dict[str, object]", document)
            return tuple(sorted([(name, plain(member)) for name, member in members.items()]))
        case list():
            return [plain(item) for item in cast("list[object]", document)]
        case Decimal():
            return _number(document)
        case float():
            return _number(Decimal(float.__repr__(document)))
        case _:
            return document


def _number(number: Decimal) -> int | bytes:
    """A whole number as one; of any other the digits that say something, as no text of a document is bytes."""
    exact = _EXACT.normalize(number)
    if exact.is_finite() and exact.adjusted() < _LONGEST and exact == exact.to_integral_value():
        return int(exact)
    return str(exact).encode()


@lru_cache(1_000)
def _short(text: str) -> int | bytes:
    """The number of a text; the same few stand in most documents of a table."""
    return _number(Decimal(text))


def _fraction(text: str) -> int | bytes:
    """The number of a text of any length."""
    return _short(text) if len(text) < _SHORT else _number(Decimal(text))


def _members(members: dict[str, object]) -> object:
    """An object whose members are plain already."""
    return tuple(sorted(members.items()))


_SHORT: Final = 30
_READING: Final[dict[str, Any]] = {
    "object_hook": _members,
    "parse_float": _fraction,
    "parse_constant": str.encode,
}
_read: Final = json.JSONDecoder(**_READING).decode
"""Reads a document and makes it plain in one: that is twice as fast as one after the other."""
