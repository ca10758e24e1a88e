"""How PyMySQL gives the values of a look: exactly, or as the text that the server writes."""

from __future__ import annotations

import struct
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Final

from pymysql import converters
from pymysql.constants import FIELD_TYPE

SINGLE: Final = "guardrail.single"
"""The name under which a FLOAT is read, as the double that it is exactly."""

_FORM: Final = struct.Struct("f")


def _whole(bits: bytes) -> int:
    return int.from_bytes(bits, "big")


def _instant(text: str) -> object:
    """A TIMESTAMP, which is in UTC as the session is; the text if Python knows no such day."""
    moment = converters.convert_datetime(text)
    return moment.replace(tzinfo=UTC) if isinstance(moment, datetime) else moment


CONVERSIONS: Final[dict[Any, Callable[..., Any]]] = {
    **converters.conversions,
    FIELD_TYPE.BIT: _whole,
    FIELD_TYPE.TIMESTAMP: _instant,
}
"""What a connection converts by: types of Python on the way there, types of fields on the way back."""


def single(value: float) -> float | None:
    """The nearest number of four bytes, exactly; None where there is none."""
    try:
        return float(_FORM.unpack(_FORM.pack(value))[0])
    except OverflowError:
        return None


def shortest(value: object) -> object:
    """A number of four bytes as the shortest decimal that stands for it, such as 0.1; any other value as it is."""
    if not isinstance(value, float):
        return value
    forms = (float(f"{value:.{digits}g}") for digits in range(1, 10))
    return next((form for form in forms if single(form) == value), value)
