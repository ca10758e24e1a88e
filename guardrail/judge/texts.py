"""Texts of results: JSON that is text, and documents that announce a failure."""

from __future__ import annotations

import json
import re
from enum import Enum
from typing import Final, cast

LONGEST_JSON: Final = 1 << 24
"""Characters up to which a text is parsed. A lower bound would let a result's verdict depend on its length, and
parsing costs some 10 ms a million characters, so even the longest text stays within a fifth of a second."""

_DEEPEST: Final = 100
_LONGEST_DEEP: Final = 1 << 20
_BLANK: Final = " \t\r\n\ufeff"
_LITERALS: Final[dict[str, object]] = {"null": None, "true": True, "false": False}
_NUMBER: Final = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?", re.ASCII)
_LONGEST_NUMBER: Final = 400
_PYTHON: Final = ("{'", "[{'", "['")
_TOKEN: Final = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|[\[\]{}]|[^"\[\]{}]+|"', re.DOTALL)
_decode: Final = json.JSONDecoder().raw_decode

_FAULT: Final = re.compile(
    r"\s*(?:<\?[^>]*\?>\s*)?<(?:[\w.-]+:)?Envelope\b.*?<(?:[\w.-]+:)?Body\b[^>]*>\s*<(?:[\w.-]+:)?Fault\b", re.DOTALL
)
_FAULT_WORDS: Final = re.compile(r"<(?:[\w.-]+:)?(?:faultstring|Text|Message|message)\b[^>]*>([^<]*)<")
_ERROR_ROOT: Final = re.compile(r"\s*(?:<\?[^>]*\?>\s*)?<(?:[\w.-]+:)?(?:Error|ErrorResponse|ExceptionReport)[\s>]")
_TRACEBACK: Final = "Traceback (most recent call last):"


class Unparsed(Enum):
    """Why a text has no value of its own."""

    NOT_JSON = "not_json"
    TOO_LONG = "too_long"


def parse(text: str) -> object | Unparsed:
    """The value of a JSON text; NOT_JSON for any other text, TOO_LONG for one beyond LONGEST_JSON.

    Never raises. What lies deeper than the parser reaches is cut off (of texts up to a million characters), so
    that depth decides nothing.
    """
    first = text[:1]
    if first in _BLANK:
        text = text.strip(_BLANK)
        first = text[:1]
    if first in ("{", "[", '"'):
        return _document(text)
    if first in ("n", "t", "f"):
        return _literal(text)
    return _number(text) if first == "-" or first.isdigit() else Unparsed.NOT_JSON


def announced_failure(text: str) -> tuple[str, str] | None:
    """The sign and the words of a document that is nothing but a failure: a SOAP fault, an XML error, a traceback."""
    if _FAULT.match(text):
        return "soap_fault", _fault_words(text)
    if _ERROR_ROOT.match(text):
        return "xml_error", _fault_words(text)
    if text.startswith(_TRACEBACK):
        return "traceback", text[-2_000:].strip().rpartition("\n")[2]
    return None


def _document(text: str) -> object | Unparsed:
    if len(text) > LONGEST_JSON:
        return Unparsed.TOO_LONG
    if text.startswith(_PYTHON):  # Python's own notation, common enough to spare the cost of a failed parse
        return Unparsed.NOT_JSON
    try:
        return _decoded(text)
    except RecursionError:
        return _decoded(_shallow(text)) if len(text) <= _LONGEST_DEEP else Unparsed.TOO_LONG


def _decoded(text: str) -> object | Unparsed:
    try:
        value, end = _decode(text)
    except ValueError:
        return Unparsed.NOT_JSON
    return value if end == len(text) or not text[end:].strip(_BLANK) else Unparsed.NOT_JSON


def _literal(text: str) -> object | Unparsed:
    return _LITERALS.get(text.rstrip(_BLANK) if len(text) < 20 else text, Unparsed.NOT_JSON)


def _number(text: str) -> object | Unparsed:
    if len(text) > _LONGEST_NUMBER or not _NUMBER.fullmatch(text.rstrip(_BLANK)):
        return Unparsed.NOT_JSON
    return cast("float", json.loads(text))


def _shallow(text: str) -> str:
    """The same document with everything below a depth replaced by null."""
    kept: list[str] = []
    depth = 0
    for match in _TOKEN.finditer(text):
        token = match.group()
        if token in ("[", "{"):
            kept += [token] if depth < _DEEPEST else ["null"] if depth == _DEEPEST else []
            depth += 1
        elif token in ("]", "}"):
            depth -= 1
            kept += [token] if depth < _DEEPEST else []
        elif depth <= _DEEPEST:
            kept.append(token)
    return "".join(kept)


def _fault_words(text: str) -> str:
    words = _FAULT_WORDS.search(text)
    return words.group(1).strip() if words else ""
