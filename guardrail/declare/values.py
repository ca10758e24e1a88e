"""What an expectation's value may be, and how it is read from the form in which it is written.

    amount: 19.90                                a plain value; lists and mappings are JSON
    amount: $amount      id: $payment.id         a reference to an input, a row of `let` or `as`, or `$each`
    note: $$5 off                                a literal text that begins with a dollar
    id: {generated: true}                        any value but NULL
    note: {any: true}                            any value, NULL too
    paid_at: {during: run}                       an instant between the run's opening and its end
    balance: {decreased_by: $amount}             (`increased_by`) against the value before the run
    stock: {at_least: 0}                         (`at_most`)
    status: {in: [paid, refunded]}               one of these
    status: {not: open}                          anything else, NULL too
    reference: {matches: 'R-[0-9]+'}             a text that the regular expression covers as a whole
    tags: {unordered: [a, b]}                    a list whose order does not matter
    meta: {json: {/state: paid}, rest: any}      parts of a document; the rest is `unchanged` (default) or `any`
    meta: {equals: {any: true}}                  exactly this, whatever it looks like

Forms may stand inside each other and inside lists and mappings.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal, InvalidOperation
from itertools import takewhile
from typing import Literal, TypeAlias, TypeGuard
from uuid import UUID


@dataclass(frozen=True, slots=True)
class Given:
    """A plain value: a scalar, or a list or mapping of plain values, compared as JSON."""

    value: object


@dataclass(frozen=True, slots=True)
class Reference:
    """`$name` or `$name.column`: a value that is known when the state is verified."""

    name: str
    column: str | None = None

    def __str__(self) -> str:
        """The reference as it is written."""
        return f"${self.name}" if self.column is None else f"${self.name}.{self.column}"


@dataclass(frozen=True, slots=True)
class Listing:
    """A list in which references or forms stand."""

    items: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class Fields:
    """A JSON object in which references or forms stand; no other names may be in it."""

    fields: tuple[tuple[str, Value], ...]


@dataclass(frozen=True, slots=True)
class Anything:
    """Any value, NULL too."""


@dataclass(frozen=True, slots=True)
class Generated:
    """Any value but NULL: the database or the application makes it."""


@dataclass(frozen=True, slots=True)
class During:
    """An instant within the run."""


@dataclass(frozen=True, slots=True)
class ChangedBy:
    """A number that was increased (`sign` 1) or decreased (`sign` -1) by `by` during the run."""

    by: Value
    sign: Literal[1, -1]


@dataclass(frozen=True, slots=True)
class Bound:
    """A number, instant or date of at least (`sign` 1) or at most (`sign` -1) `limit`."""

    limit: Value
    sign: Literal[1, -1]


@dataclass(frozen=True, slots=True)
class OneOf:
    """One of the values of a list."""

    options: Value


@dataclass(frozen=True, slots=True)
class Not:
    """Anything but this value; NULL is not equal to any other value, so it meets `not: 5`."""

    value: Value


@dataclass(frozen=True, slots=True)
class Matches:
    """A text that the regular expression covers from its first to its last character."""

    pattern: str


@dataclass(frozen=True, slots=True)
class Unordered:
    """A list with these items in any order."""

    items: Value


@dataclass(frozen=True, slots=True)
class Json:
    """Parts of a JSON document by pointer (RFC 6901); `rest` says whether the others may have changed."""

    parts: tuple[tuple[str, Value], ...]
    rest: Literal["unchanged", "any"] = "unchanged"


Value: TypeAlias = (
    Given
    | Reference
    | Listing
    | Fields
    | Anything
    | Generated
    | During
    | ChangedBy
    | Bound
    | OneOf
    | Not
    | Matches
    | Unordered
    | Json
)
"""What a column is expected to hold."""


def read(raw: object) -> Value:
    """The value that is written as `raw` (see the module's text).

    ValueError: a form is misspelt or has a wrong argument, a text begins with one dollar and is no reference, a
    name of a mapping is no text, or a Python object is none that a database holds.
    """
    try:
        return _value(raw)
    except RecursionError:
        raise ValueError("the value is nested too deeply, or contains itself") from None


def references(value: Value) -> tuple[str, ...]:
    """The names that the value refers to, each once: inputs, `let` and `as` names, `each`."""
    return tuple(dict.fromkeys(reference.name for reference in mentioned(value)))


def mentioned(value: Value) -> Iterator[Reference]:
    """Every reference in the value, in the order they are written."""
    if isinstance(value, Reference):
        yield value
    for part in _parts(value):
        yield from mentioned(part)


def listing(items: Sequence[Value]) -> Given | Listing:
    """A list of values; a plain one where all of them are plain."""
    plain = [item.value for item in items if isinstance(item, Given)]
    return Given(plain) if len(plain) == len(items) else Listing(tuple(items))


def fields_of(fields: Sequence[tuple[str, Value]]) -> Given | Fields:
    """A JSON object of values by name; a plain one where all of them are plain."""
    plain = {name: item.value for name, item in fields if isinstance(item, Given)}
    return Given(plain) if len(plain) == len(fields) else Fields(tuple(fields))


def is_object(value: object) -> TypeGuard[Mapping[object, object]]:
    """Whether the value is a mapping, that is a JSON object."""
    return isinstance(value, Mapping)


def is_list(value: object) -> TypeGuard[Sequence[object]]:
    """Whether the value is a list or tuple, that is a JSON array."""
    return isinstance(value, list | tuple)


def _parts(value: Value) -> tuple[Value, ...]:
    match value:
        case Listing(items):
            return items
        case Fields(parts) | Json(parts):
            return tuple(part for _, part in parts)
        case ChangedBy(part) | Bound(part) | OneOf(part) | Not(part) | Unordered(part):
            return (part,)
        case _:
            return ()


_SCALARS = (bool, int, float, Decimal, bytes, datetime, date, time, timedelta, UUID)


def _value(raw: object) -> Value:
    if isinstance(raw, str):
        return _text(raw)
    if is_object(raw):
        return _mapping(raw)
    if is_list(raw):
        return listing([_value(item) for item in raw])
    if raw is None or isinstance(raw, _SCALARS):
        return Given(raw)
    raise ValueError(
        f"a value of type {type(raw).__name__} cannot be compared with one of a database; "
        "write a text, a number, a date, a list or a mapping"
    )


_REFERENCE = re.compile(r"\$([A-Za-z_]\w*)(?:\.(\w+))?")


def _text(raw: str) -> Given | Reference:
    if raw.startswith("$$"):
        return Given(raw[1:])
    if not raw.startswith("$"):
        return Given(raw)
    found = _REFERENCE.fullmatch(raw)
    if found is None:
        raise ValueError(f"{raw!r} is no reference ($name or $name.column); write {'$' + raw!r} for a literal dollar")
    return Reference(found[1], found[2])


def _mapping(raw: Mapping[object, object]) -> Value:
    names = [_name(name) for name in raw]
    form = _form_of(names, raw)
    if form is not None:
        return _FORMS[form](raw[form])
    if set(names) == {"json", "rest"}:
        return Json(_pointers(raw["json"]), _rest(raw["rest"]))
    return fields_of([(name, _value(item)) for name, item in zip(names, raw.values(), strict=True)])


def _name(name: object) -> str:
    if isinstance(name, str):
        return name
    raise ValueError(f"the name {name!r} of a mapping is no text; put it in quotes")


def _form_of(names: Sequence[str], raw: Mapping[object, object]) -> str | None:
    """The form that a mapping is; ValueError if it is nearly one, so that a slip is not taken for JSON."""
    if len(names) == 2 and "rest" not in names and _holds_pointers(raw.get("json")):
        other = next(name for name in names if name != "json")
        raise ValueError(f"unknown key {other!r} beside 'json'; did you mean 'rest'? {_LITERALLY}")
    if len(names) != 1:
        return None
    if names[0] in _FORMS:
        return names[0]
    near = next((form for form in _FORMS if _nearly(names[0], form)), None)
    if near is None:
        return None
    raise ValueError(f"unknown form {names[0]!r}; did you mean {near!r}? {_LITERALLY}")


def _holds_pointers(raw: object) -> bool:
    return is_object(raw) and bool(raw) and all(str(name).startswith("/") for name in raw)


_LITERALLY = "(A mapping that is meant literally is written {equals: {...}}.)"


def _nearly(name: str, form: str) -> bool:
    """Whether a name is a form in other letters' case, or one slip away; short forms look like too many words."""
    name, form = (re.sub(r"[\W_]", "", text).lower() for text in (name, form))
    return name == form or (len(form) > 4 and _one_slip_apart(name, form))


def _one_slip_apart(one: str, other: str) -> bool:
    """Whether one letter was left out, added or replaced, or two neighbours swapped."""
    start = _shared_start(one, other)
    one, other = one[start:], other[start:]
    end = _shared_start(one[::-1], other[::-1])
    one, other = one[: len(one) - end], other[: len(other) - end]
    return max(len(one), len(other)) <= 1 or (len(one) == 2 and one == other[::-1])


def _shared_start(one: str, other: str) -> int:
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))


def _true(form: str, value: Value) -> Callable[[object], Value]:
    def read_form(raw: object) -> Value:
        if raw is not True:
            raise ValueError(f"'{form}' takes only true. {_LITERALLY}")
        return value

    return read_form


def _during(raw: object) -> During:
    if raw != "run":
        raise ValueError(f"'during' takes only 'run'. {_LITERALLY}")
    return During()


def _changed_by(form: str, sign: Literal[1, -1]) -> Callable[[object], ChangedBy]:
    def read_form(raw: object) -> ChangedBy:
        by = _value(raw)
        if isinstance(by, Given) and not _is_number(by.value):
            raise ValueError(f"'{form}' takes a number or a reference, not {raw!r}. {_LITERALLY}")
        return ChangedBy(by, sign)

    return read_form


def _is_number(value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal | str):
        return False
    try:
        return Decimal(str(value)).is_finite()
    except InvalidOperation:
        return False


def _bound(form: str, sign: Literal[1, -1]) -> Callable[[object], Bound]:
    def read_form(raw: object) -> Bound:
        limit = _value(raw)
        if isinstance(limit, Given) and (limit.value is None or isinstance(limit.value, bool | list | dict)):
            raise ValueError(f"'{form}' takes a number, an instant, a date or a reference, not {raw!r}. {_LITERALLY}")
        return Bound(limit, sign)

    return read_form


def _one_of(raw: object) -> OneOf:
    return OneOf(_list_for("in", raw))


def _unordered(raw: object) -> Unordered:
    return Unordered(_list_for("unordered", raw))


def _list_for(form: str, raw: object) -> Value:
    value = _value(raw)
    if isinstance(value, Listing | Reference) or (isinstance(value, Given) and is_list(value.value)):
        return value
    raise ValueError(f"'{form}' takes a list or a reference to one, not {raw!r}. {_LITERALLY}")


def _matches(raw: object) -> Matches:
    if not isinstance(raw, str):
        raise ValueError(f"'matches' takes a regular expression, not {raw!r}. {_LITERALLY}")
    try:
        re.compile(raw)
    except (re.error, OverflowError, RecursionError) as error:
        raise ValueError(f"'matches' takes a regular expression; {raw!r} is none: {error}") from None
    return Matches(raw)


def _json(raw: object) -> Json:
    return Json(_pointers(raw))


def _rest(raw: object) -> Literal["unchanged", "any"]:
    if raw == "unchanged":
        return "unchanged"
    if raw == "any":
        return "any"
    raise ValueError(f"'rest' is 'unchanged' or 'any', not {raw!r}")


_POINTER = re.compile(r"(?:/(?:[^~/]|~[01])*)+")


def _pointers(raw: object) -> tuple[tuple[str, Value], ...]:
    if not is_object(raw) or not raw:
        raise ValueError(f"'json' takes parts by pointer, such as {{json: {{/state: paid}}}}. {_LITERALLY}")
    parts = tuple((_name(pointer), _value(part)) for pointer, part in raw.items())
    for pointer, _ in parts:
        if not _POINTER.fullmatch(pointer):
            raise ValueError(f"{pointer!r} is no JSON pointer; write it as /name or /name/0 (~1 for / in a name)")
        if any(pointer.startswith(f"{other}/") for other, _ in parts):
            raise ValueError(f"the JSON pointer {pointer!r} lies inside another one that is given too")
    return parts


_FORMS: Mapping[str, Callable[[object], Value]] = {
    "generated": _true("generated", Generated()),
    "any": _true("any", Anything()),
    "during": _during,
    "decreased_by": _changed_by("decreased_by", -1),
    "increased_by": _changed_by("increased_by", 1),
    "at_least": _bound("at_least", 1),
    "at_most": _bound("at_most", -1),
    "in": _one_of,
    "not": lambda raw: Not(_value(raw)),
    "matches": _matches,
    "unordered": _unordered,
    "json": _json,
    "equals": Given,
}
