"""Typed matchers: what a value must be. Numbers are compared as decimals, so money stays exact."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sized
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from functools import cached_property
from math import isfinite
from operator import ge, gt, le, lt
from typing import Annotated, Any, Final, Literal, Self, TypeAlias, cast

from pydantic import Field, model_validator

from guardrail.declare.choices import BY_FORM, ITEMS, KEYS, PLAIN, single
from guardrail.declare.model import Count, Declaration, Flag
from guardrail.declare.texts import Pattern

Scalar: TypeAlias = Annotated[
    str | int | Decimal | float | bool | None,
    single(str, int, Decimal, float, bool, type(None), what="a single value: a text, a number, true, false or null"),
]
"""A plain value. A number with a fraction is read from a file as a `Decimal`, so it stays exact."""

Bound: TypeAlias = Annotated[str | int | Decimal | float, single(str, int, Decimal, float, what="a number, or a text")]
"""An end of a range: a number, or the text of a number, a date or an instant."""

TypeName = Literal["any", "text", "integer", "decimal", "number", "boolean", "date", "instant", "list", "object"]
"""The types that arguments and inputs can have."""


class Conditions(Declaration):
    """What a value must be; every given condition must hold.

    `type` checks the value's type (`decimal` takes a number, or a text that is one; `number` and
    `integer` take numbers only; `date` and `instant` also take their ISO text, an instant with its
    offset). `above`, `below`, `at_least`, `at_most` compare as decimals (dates and instants as such).
    `is_in` (`in` in a file) and `is_not` (`not`) list allowed and forbidden values, `equals` names one;
    they compare numbers by value, and never a number with a text or with true. `matches` is a regular
    expression for the whole text. `longest` bounds the length of a text or a list. `optional` lets an
    argument be missing. Without `type`, a range reads like `decimal` and `matches` like `text`.
    """

    type: TypeName = "any"
    equals: Scalar = None
    above: Bound | None = None
    below: Bound | None = None
    at_least: Bound | None = None
    at_most: Bound | None = None
    is_in: tuple[Scalar, ...] | None = Field(
        default=None, validation_alias="in", serialization_alias="in", min_length=1
    )
    is_not: Annotated[Annotated[Scalar, PLAIN] | Annotated[tuple[Scalar, ...], ITEMS], BY_FORM] = Field(
        default=None, validation_alias="not", serialization_alias="not"
    )
    matches: Pattern | None = None
    longest: Count | None = None
    optional: Flag = False

    @cached_property
    def compiled(self) -> Compiled:
        """The conditions, compiled once. Raises ValueError where they contradict each other."""
        return Compiled.of(self)

    @model_validator(mode="after")
    def _hold_together(self) -> Self:
        Compiled.of(self)
        return self


Matcher: TypeAlias = Annotated[Annotated[Conditions, KEYS] | Annotated[Scalar, PLAIN], BY_FORM]
"""Conditions, or a plain value that the checked value must equal."""

LONGEST_MATCHED: Final = 10_000
"""The longest text that a regular expression is tried on; a longer one does not match."""


def check(matcher: Matcher, value: object, *, shown: bool = True) -> str | None:
    """What is wrong with a value, in words that follow its name ("must be above 0, is -1"); None: it fits.

    The words are bounded; with `shown=False` they do not hold the value (for what is redacted).
    """
    if isinstance(matcher, Conditions):
        return matcher.compiled.misfit(value, shown)
    return None if _equal(value, matcher) else _must(f"be {_words(matcher)}", value, shown)


class _Wrong:
    """What reading a value gives when it is not of the type."""

    __slots__ = ()


_WRONG: Final = _Wrong()
_MOST_DIGITS: Final = 400
_MOST_BITS: Final = 1328
_NUMBER: Final = re.compile(r"[+-]?\d{1,400}(?:\.\d{1,400})?(?:[eE][+-]?\d{1,3})?", re.ASCII).fullmatch
_DATE: Final = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII).fullmatch
_INSTANT: Final = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d[0-9:.,]{0,16}(?:Z|[+-]\d\d:?\d\d)", re.ASCII).fullmatch


def _any(value: object) -> object:
    return value


def _text(value: object) -> object:
    return value if isinstance(value, str) else _WRONG


def _decimal(value: object) -> object:
    if isinstance(value, str):
        return Decimal(value) if _NUMBER(value) else _WRONG
    return _number(value)


def _number(value: object) -> object:
    if isinstance(value, float):
        # The shortest text that means this float is the number that was written: 19.9, not 19.8999….
        return Decimal(float.__repr__(value)) if isfinite(value) else _WRONG
    if isinstance(value, int):
        return _WRONG if isinstance(value, bool) or value.bit_length() > _MOST_BITS else value
    if isinstance(value, Decimal):
        return value if value.is_finite() and abs(value.adjusted()) < _MOST_DIGITS else _WRONG
    return _WRONG


def _integer(value: object) -> object:
    number = _number(value)
    if isinstance(number, Decimal):
        return number if number == number.to_integral_value() else _WRONG
    return number


def _boolean(value: object) -> object:
    return value if isinstance(value, bool) else _WRONG


def _date(value: object) -> object:
    if isinstance(value, str):
        return _iso(date, value) if _DATE(value) else _WRONG
    return value if isinstance(value, date) and not isinstance(value, datetime) else _WRONG


def _instant(value: object) -> object:
    if isinstance(value, str):
        return _iso(datetime, value) if _INSTANT(value) else _WRONG
    return value if isinstance(value, datetime) and value.tzinfo is not None else _WRONG


def _iso(kind: type[date], text: str) -> object:
    try:
        return kind.fromisoformat(text)
    except ValueError:  # The thirtieth of February has the form of a date.
        return _WRONG


def _list(value: object) -> object:
    return cast("object", value) if isinstance(value, (list, tuple)) else _WRONG


def _object(value: object) -> object:
    return cast("object", value) if isinstance(value, Mapping) else _WRONG


_Reading: TypeAlias = Callable[[object], object]
_READINGS: Final[Mapping[TypeName, tuple[_Reading, str]]] = {
    "any": (_any, "a value"),
    "text": (_text, "a text"),
    "integer": (_integer, "a whole number"),
    "decimal": (_decimal, "a decimal number"),
    "number": (_number, "a number"),
    "boolean": (_boolean, "true or false"),
    "date": (_date, "a date (YYYY-MM-DD)"),
    "instant": (_instant, "an instant with its offset (YYYY-MM-DDThh:mm:ssZ)"),
    "list": (_list, "a list"),
    "object": (_object, "an object"),
}
_ORDERED: Final = frozenset({"integer", "decimal", "number", "date", "instant"})


def _equal(value: object, expected: object) -> bool:
    if isinstance(value, bool) or isinstance(expected, bool) or value is None or expected is None:
        return value is expected
    number = _number(expected)
    if number is _WRONG:
        return isinstance(value, type(expected)) and value == expected
    return _number(value) == number


def _one_of(value: object, allowed: tuple[object, ...]) -> bool:
    return any(_equal(value, item) for item in allowed)


def _none_of(value: object, refused: tuple[object, ...]) -> bool:
    return not _one_of(value, refused)


def _matches(value: str, fullmatch: Callable[[str], object]) -> bool:
    return len(value) <= LONGEST_MATCHED and fullmatch(value) is not None


def _at_most_long(value: object, longest: int) -> bool:
    return isinstance(value, (str, list, tuple)) and len(cast("Sized", value)) <= longest


_BOUNDS: Final[Mapping[str, tuple[Callable[[Any, Any], object], str]]] = {
    "above": (gt, "above"),
    "below": (lt, "below"),
    "at_least": (ge, "at least"),
    "at_most": (le, "at most"),
}

_Condition: TypeAlias = tuple[Callable[[Any, Any], object], object, str]


@dataclass(frozen=True, slots=True)
class Compiled:
    """Conditions, compiled: how a value is read, and what must hold between what was read and an operand."""

    read: _Reading
    kind: str
    conditions: tuple[_Condition, ...]

    @classmethod
    def of(cls, given: Conditions) -> Compiled:
        """Compile conditions. Raises ValueError where they contradict their type or each other."""
        read, kind = _READINGS[_type(given)]
        _check_range(given, read, kind)
        return cls(read, kind, (*_values(given, read, kind), *_bounds(given, read, kind), *_texts(given)))

    def misfit(self, value: object, shown: bool) -> str | None:
        """What is wrong with a value; None: it fits. See `check`."""
        found = self.read(value)
        if found is _WRONG:
            return _must(f"be {self.kind}", value, shown)
        for holds, operand, phrase in self.conditions:
            if not holds(found, operand):
                return _must(phrase, value, shown)
        return None


def _type(given: Conditions) -> TypeName:
    """The type that values are read by; raises ValueError when a condition does not fit the declared one."""
    ranged = [key for key in _BOUNDS if getattr(given, key) is not None]
    if ranged and given.type != "any" and given.type not in _ORDERED:
        raise ValueError(f"`{ranged[0]}` fits numbers, dates and instants, not `type: {given.type}`")
    if given.matches is not None and (ranged or given.type not in ("any", "text")):
        raise ValueError("`matches` fits a text, and neither another type nor a range")
    if given.longest is not None and (ranged or given.type not in ("any", "text", "list")):
        raise ValueError("`longest` fits a text or a list, and neither another type nor a range")
    if given.type == "any":
        return "decimal" if ranged else "text" if given.matches is not None else "any"
    return given.type


def _operand(key: str, value: object, read: _Reading, kind: str) -> object:
    operand = read(value)
    if operand is _WRONG:
        raise ValueError(f"`{key}` must be {kind}, like what it is compared with, and is {_words(value)}")
    return operand


def _values(given: Conditions, read: _Reading, kind: str) -> list[_Condition]:
    conditions: list[_Condition] = []
    if "equals" in given.model_fields_set:
        conditions.append((_equal, _operand("equals", given.equals, read, kind), f"be {_words(given.equals)}"))
    if given.is_in is not None:
        allowed = tuple(_operand("in", item, read, kind) for item in given.is_in)
        conditions.append((_one_of, allowed, f"be one of {_listed(given.is_in)}"))
    if "is_not" in given.model_fields_set:
        items = given.is_not if isinstance(given.is_not, tuple) else (given.is_not,)
        refused = tuple(_operand("not", item, read, kind) for item in items)
        conditions.append((_none_of, refused, f"not be {_listed(items)}"))
    return conditions


def _bounds(given: Conditions, read: _Reading, kind: str) -> list[_Condition]:
    bounds = [(key, holds, words, getattr(given, key)) for key, (holds, words) in _BOUNDS.items()]
    return [
        (holds, _operand(key, bound, read, kind), f"be {words} {bound}")
        for key, holds, words, bound in bounds
        if bound is not None
    ]


def _texts(given: Conditions) -> list[_Condition]:
    conditions: list[_Condition] = []
    if given.matches is not None:
        conditions.append((_matches, re.compile(given.matches).fullmatch, f"match {given.matches[:80]}"))
    if given.longest is not None:
        conditions.append((_at_most_long, given.longest, f"be a text or a list of length {given.longest} at most"))
    return conditions


def _check_range(given: Conditions, read: _Reading, kind: str) -> None:
    """Refuse a range that nothing can lie in."""
    for low in ("above", "at_least"):
        for high in ("below", "at_most"):
            least, most = getattr(given, low), getattr(given, high)
            if least is None or most is None:
                continue
            span: Any = (_operand(low, least, read, kind), _operand(high, most, read, kind))
            if span[0] > span[1] or (span[0] == span[1] and (low, high) != ("at_least", "at_most")):
                raise ValueError(f"nothing is {_BOUNDS[low][1]} {least} and {_BOUNDS[high][1]} {most}")


def _must(phrase: str, value: object, shown: bool) -> str:
    return f"must {phrase}, is {_words(value)}" if shown else f"must {phrase}"


def _listed(values: tuple[object, ...]) -> str:
    words = ", ".join(_words(value) for value in values[:8])
    return f"{words}, …" if len(values) > 8 else words


def _words(value: object) -> str:
    """A value in a few words: short ones as they are, long ones by their size."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, str):
        return repr(value) if len(value) <= 40 else f"a text of {len(value)} characters"
    if isinstance(value, (list, tuple)):
        return f"a list of {len(cast('Sized', value))}"
    if isinstance(value, Mapping):
        return "an object"
    if isinstance(value, int) and value.bit_length() > 256:
        return "a very large number"
    return str(value)[:40] if isinstance(value, (int, float, Decimal, date)) else f"a {type(value).__name__}"
