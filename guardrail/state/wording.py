"""How values are shown to a person: on one line, bounded, with types where they would look alike."""

from __future__ import annotations

import json
import re
from collections.abc import Container, Mapping, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from uuid import UUID

from guardrail.declare.values import (
    Anything,
    Bound,
    ChangedBy,
    During,
    Fields,
    Generated,
    Given,
    Json,
    Listing,
    Matches,
    Not,
    OneOf,
    Reference,
    Unordered,
    Value,
    is_list,
    is_object,
)
from guardrail.state.comparison import Incomparable, is_sealed
from guardrail.state.matching import Cell, number_after
from guardrail.state.unknown import UNKNOWN

LONGEST = 80
"""How many characters of a value are shown."""

DEEPEST = 20
"""How many levels of a document are shown."""

REDACTED = "[redacted]"


def redacted(value: object, names: Container[str]) -> object:
    """The value without what stands under these names of its documents, and without what was not kept."""
    if is_object(value):
        return {name: REDACTED if str(name) in names else redacted(item, names) for name, item in value.items()}
    if is_list(value):
        return [redacted(item, names) for item in value]
    if isinstance(value, str) and value[:1] in ("{", "["):
        return _redacted_text(value, names)
    return REDACTED if is_sealed(value) else value


def _redacted_text(text: str, names: Container[str]) -> object:
    """The document that a text is, if something in it is left out; else the text."""
    try:
        document: object = json.loads(text)
        left = redacted(document, names)
        return text if left == document else left
    except (ValueError, RecursionError):
        return REDACTED if any(word in names for word in re.findall(r"\w+", text)) else text


def show(value: object) -> str:
    """The value in one bounded line."""
    return _shortened(_whole(value))


def show_both(one: object, other: object) -> tuple[str, str]:
    """Two values so that their difference is seen: by their types if they look alike, else where they differ."""
    first, second = _whole(one), _whole(other)
    if first == second == REDACTED:
        return first, second
    if first.strip("'\"") == second.strip("'\""):
        return f"{_shortened(first)} ({_type(one)})", f"{_shortened(second)} ({_type(other)})"
    shown = _shortened(first), _shortened(second)
    return shown if shown[0] != shown[1] else _from_the_difference(first, second)


def show_row(row: Mapping[str, object]) -> str:
    """The columns of a row, as `id=17, status='paid'`; the first eight."""
    shown = [f"{column}={show(value)}" for column, value in list(row.items())[:8]]
    more = len(row) - len(shown)
    return ", ".join([*shown, f"and {more} more"] if more > 0 else shown)


def describe(value: Value, names: Container[str], cell: Cell | None = None) -> object:
    """What is expected: the plain value, the number a relative expectation comes to, or words for a form.

    What stands under `names` is left out.
    """
    if isinstance(value, Given):
        return redacted(value.value, names)
    try:
        return (
            number_after(value, cell)
            if cell is not None and isinstance(value, ChangedBy)
            else Words(_words(value, names))
        )
    except Incomparable:
        return Words(_words(value, names))


class Words(str):
    """Words about a value, which are shown as they are and not as a text value."""

    __slots__ = ()


def _words(value: Value, names: Container[str]) -> str:
    match value:
        case Given(plain):
            return show(redacted(plain, names))
        case Reference():
            return str(value)
        case Anything():
            return "anything"
        case Generated():
            return "any value but NULL"
        case During():
            return "an instant of the run"
        case ChangedBy(by, sign):
            return f"{'increased' if sign > 0 else 'decreased'} by {_words(by, names)}"
        case Bound(limit, sign):
            return f"{'at least' if sign > 0 else 'at most'} {_words(limit, names)}"
        case OneOf(options):
            return f"one of {_words(options, names)}"
        case Not(inner):
            return f"anything but {_words(inner, names)}"
        case Matches(pattern):
            return f"a text that matches {_whole(pattern)}"
        case Unordered(items):
            return f"{_words(items, names)} in any order"
        case Listing(items):
            return f"[{', '.join(_words(item, names) for item in items)}]"
        case Fields(parts):
            return f"{{{_named(parts, names)}}}"
        case Json(parts, rest):
            return f"a document with {_named(parts, names)}" + (
                " and the rest unchanged" if rest == "unchanged" else ""
            )


def _named(parts: Sequence[tuple[str, Value]], names: Container[str]) -> str:
    """The parts of a document by name or pointer."""
    return ", ".join(
        f"{name}: {REDACTED if any(part in names for part in name.split('/')) else _words(value, names)}"
        for name, value in parts
    )


def _whole(value: object) -> str:
    """The value in one line, as long as it is."""
    match value:
        case None:
            return "NULL"
        case bool():
            return "true" if value else "false"
        case Words():
            return value
        case str():
            return REDACTED if value == REDACTED else repr(value)
        case datetime() | date() | time():
            return value.isoformat()
        case bytes():
            return f"0x{value.hex()}"
        case Decimal() if value.is_finite() and abs(value.adjusted()) < LONGEST:
            return f"{value:f}"
        case int() | float() | Decimal() | UUID() | timedelta():
            return str(value)
        case _ if is_object(value) or is_list(value):
            return _document(value)
        case _:
            return repr(value).replace("\n", " ")


def _document(value: object, depth: int = 0) -> str:
    """A document as JSON, its names in order."""
    if depth > DEEPEST:
        return "…"
    if is_object(value):
        inner = (f"{_document(name)}: {_document(value[name], depth + 1)}" for name in sorted(value, key=str))
        return f"{{{', '.join(inner)}}}"
    if is_list(value):
        return f"[{', '.join(_document(item, depth + 1) for item in value)}]"
    return json.dumps(value, ensure_ascii=False) if value is None or type(value) is str else _whole(value)


def _type(value: object) -> str:
    """The word for a value's type."""
    if value is None or value is UNKNOWN:
        return "no value"
    if isinstance(value, datetime):
        return "instant" if value.tzinfo else "time without a zone"
    names = ((bool, "boolean"), (int, "integer"), (float, "float"), (Decimal, "decimal"), (str, "text"))
    return next((word for kind, word in names if isinstance(value, kind)), type(value).__name__)


def _shortened(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 20]}… ({len(text)} characters)"


def _from_the_difference(first: str, second: str) -> tuple[str, str]:
    """Two long texts from shortly before the place where they part."""
    pairs = zip(first, second, strict=False)
    parting = next((place for place, (a, b) in enumerate(pairs) if a != b), min(len(first), len(second)))
    start = max(0, parting - 20)
    return f"…{_shortened(first[start:])}", f"…{_shortened(second[start:])}"
