"""What an unquoted text of a YAML file means, by the core schema of version 1.2."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Final

_NULLS: Final = frozenset({"", "~", "null", "Null", "NULL"})
_BOOLEANS: Final = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
_WORDS_OF_1_1: Final = frozenset({"on", "off", "yes", "no"})
_INTEGER: Final = re.compile(r"[-+]?\d+", re.ASCII).fullmatch
_DECIMAL: Final = re.compile(r"[-+]?(?:\.\d+|\d+(?:\.\d*)?)(?:[eE][-+]?\d+)?", re.ASCII).fullmatch
_LEADING_ZERO: Final = re.compile(r"[-+]?0\d", re.ASCII).match
_BASED: Final = re.compile(r"0o[0-7]+|0x[0-9a-fA-F]+", re.ASCII).fullmatch
_NO_NUMBER: Final = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)", re.ASCII).fullmatch
_MOST_DIGITS: Final = 400


def plain(text: str) -> object:
    """What an unquoted text means. Raises ValueError where it means different things to different readers."""
    if text in _NULLS:
        return None
    if text in _BOOLEANS:
        return _BOOLEANS[text]
    if text.lower() in _WORDS_OF_1_1:
        raise ValueError(
            "is true or false to some readers of YAML and a text to others; write true or false, or quote it"
        )
    if _DECIMAL(text):
        return _number(text)
    if _BASED(text):
        raise ValueError("is a hexadecimal or octal number to some readers; quote it, or write it in decimal digits")
    if _NO_NUMBER(text):
        raise ValueError("is no number that anything can be compared with; quote it if it is a text")
    return text


def is_text(text: str) -> bool:
    """Whether an unquoted text means itself."""
    try:
        return isinstance(plain(text), str)
    except ValueError:
        return False


def _number(text: str) -> int | Decimal:
    if _LEADING_ZERO(text):
        raise ValueError("has a leading zero: quote it if it is a text, and leave the zero out if it is a number")
    number = Decimal(text) if len(text) <= _MOST_DIGITS else None
    if number is None or abs(number.adjusted()) > _MOST_DIGITS:
        raise ValueError(f"is a number of more than {_MOST_DIGITS} digits")
    return int(text) if _INTEGER(text) else number
