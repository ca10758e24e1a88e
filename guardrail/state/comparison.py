"""How values compare, by the kind of their column (design, rule 14).

Numbers compare as numbers, exactly, a float through its shortest text; only where a value is a float by its
column or its driver do digits beyond the twelfth not count (SQLite keeps decimals so, and computes with them), and
where a value is held against the one before it, they do. Instants compare with their zone, JSON as documents, everything else exactly. `Loosely` softens this for a
column.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, time, timedelta, tzinfo
from decimal import Context, Decimal, InvalidOperation
from math import isfinite
from typing import Literal, Protocol, TypeAlias, TypeGuard, cast
from uuid import UUID
from zoneinfo import ZoneInfo

from guardrail.declare.contracts import Loosely
from guardrail.declare.values import is_list, is_object
from guardrail.errors import GuardrailError
from guardrail.pictures import ColumnKind
from guardrail.state.unknown import UNKNOWN


class Incomparable(GuardrailError):
    """Two values cannot be compared, so nothing is proved; the text says why and what to declare."""


class Sealed(Protocol):
    """Stands for a value that was not kept: it can only tell whether another one equals it."""

    def matches(self, value: object, /) -> bool:
        """Whether the value that was not kept equals this one."""
        ...


def is_sealed(value: object) -> TypeGuard[Sealed]:
    """Whether the value stands for one that was not kept."""
    return hasattr(type(value), "matches")


@dataclass(frozen=True, slots=True)
class Moment:
    """An instant (`placed`: since the year 1 in UTC) or a local time that is placed in no zone."""

    since: timedelta
    placed: bool


Kind: TypeAlias = ColumnKind | Literal["element"]
"""The kind of a column, or `element`: a value within a JSON document, which compares strictly by its type."""

NOISE = Decimal("1e-12")
"""The share of a float's size that does not count, and the difference from zero that does not."""

_WIDE = Context(prec=60, Emax=999_999, Emin=-999_999, traps=[])


@dataclass(frozen=True, slots=True)
class Comparison:
    """How the values of one column compare.

    `kind` is the column's; `case` and `blanks` tell whether letters' case and runs of blanks count, `ordered`
    whether the order of lists does; `tolerance` is by how much numbers may differ (None: by nothing, floats by
    their noise); `zone` is where instants without an offset lie. `precise` is for a value and the one that was there
    before: a float's noise counts, and an instant and a number differ.
    """

    kind: Kind = "unknown"
    case: bool = True
    blanks: bool = True
    ordered: bool = True
    tolerance: Decimal | None = None
    zone: tzinfo | None = None
    precise: bool = False

    @classmethod
    def of(cls, kind: ColumnKind, loosely: Loosely | None = None) -> Comparison:
        """The comparison of a column of this kind, softened as declared."""
        if loosely is None:
            return cls(kind)
        return cls(
            kind=kind if loosely.kind is None else loosely.kind,
            case=loosely.case == "exact",
            blanks=loosely.blanks == "exact",
            ordered=not loosely.unordered,
            tolerance=None if loosely.tolerance is None else Decimal(str(loosely.tolerance)),
            zone=None if loosely.zone is None else ZoneInfo(loosely.zone),
        )

    @property
    def element(self) -> Comparison:
        """How the values within a document of this column compare."""
        return replace(self, kind="element")

    @property
    def precisely(self) -> Comparison:
        """How a value of this column compares with the one that was there before."""
        return self if self.precise else replace(self, precise=True)

    def same(self, one: object, other: object) -> bool:
        """Whether two live values of the column are the same; symmetric. Raises `Incomparable`."""
        if one is UNKNOWN or other is UNKNOWN:
            raise Incomparable("a value is unknown")
        if is_sealed(one):
            return one.matches(other)
        if is_sealed(other):
            return other.matches(one)
        if one is None or other is None:
            return one is other
        if self.kind == "json" and (is_parsed(one) or is_parsed(other)):
            # The driver reads JSON itself, so a text is a JSON string and not a document.
            return self._compare(one, other)
        return self._compare(self.read(one), self.read(other))

    def equals(self, declared: object, actual: object) -> bool:
        """Whether a live value is the declared one, which may be written in another form. Raises `Incomparable`."""
        if is_sealed(actual):
            return self._is_sealed_in(declared, actual)
        if declared is None or actual is None:
            return declared is actual
        if self.is_exact and type(declared) is type(actual) and isinstance(declared, str | int):
            return declared == actual
        fitting = self._fitting(declared, actual)
        if fitting.kind == "decimal":
            declared = _number(declared, None)
        if fitting.kind == "json":
            return any(fitting._compare(form, fitting.read(actual)) for form in fitting._documents(declared, actual))
        return fitting.same(declared, actual) or fitting.same(_form(fitting.kind, declared), actual)

    def order(self, one: object, other: object) -> int:
        """Less than, equal to or greater than 0 as `one` is less, equal or greater. Raises `Incomparable`."""
        first, second = (self._rank(value) for value in (one, other))
        if isinstance(first, Decimal) and isinstance(second, Decimal):
            return (first > second) - (first < second)
        if isinstance(first, Moment) and isinstance(second, Moment):
            _must_both_be_placed(first, second)
            return (first.since > second.since) - (first.since < second.since)
        raise Incomparable("one of two values is neither a number nor an instant, so they have no order")

    def number(self, value: object) -> Decimal | None:
        """The value as an exact number; None if it is none."""
        number = _number(value, self.zone)
        return number if isinstance(number, Decimal) and number.is_finite() else None

    def moment(self, value: object) -> Moment | None:
        """The value as an instant, or a time of the day as such; None if it is none. A date is its first instant."""
        moment = (_clock if self.kind == "time" else _moment)(value, self.zone)
        return moment if isinstance(moment, Moment) else None

    def document(self, value: object) -> object:
        """The value as a JSON document: a text is parsed, unless it stands in a document already."""
        return value if self.kind == "element" else _document(value, None)

    def read(self, value: object) -> object:
        """The value as it compares: numbers as `Decimal` or float, instants as `Moment`, JSON as a document."""
        return _READERS[self.kind](value, self.zone)

    @property
    def is_exact(self) -> bool:
        """Whether a text of a text column, a whole number of a column of them, equals only itself."""
        return self.kind in ("text", "integer") and self.case and self.blanks and self.tolerance is None

    def _compare(self, one: object, other: object) -> bool:
        try:
            return self._agree(one, other)
        except RecursionError:
            raise Incomparable("the JSON document is nested too deeply") from None

    def _is_sealed_in(self, declared: object, actual: Sealed) -> bool:
        """Whether a value that was not kept is the declared one; another form of it would not be recognised."""
        if actual.matches(declared) or actual.matches(_form(self.kind, declared)):
            return True
        if declared is None or (self.is_exact and type(declared) in (str, int)):
            return False
        raise Incomparable("the value was not kept, and it may be the expected one in another form")

    def _documents(self, declared: object, actual: object) -> tuple[object, ...]:
        """What a declared value of a JSON column may mean: a text is a JSON string, or a document as text."""
        document = self.read(declared)
        if is_parsed(actual) and not (is_object(document) or is_list(document)):
            return (declared,)
        return (declared, document)

    def _rank(self, value: object) -> Decimal | Moment | None:
        if self.kind in ("instant", "date", "time") or isinstance(value, date):
            return self.moment(value)
        number = self.number(value)
        return self.moment(value) if number is None else number

    def _fitting(self, declared: object, actual: object) -> Comparison:
        """The comparison by the driver's type where the column's kind says nothing, or cannot hold the value."""
        kind: Kind = self.kind
        if kind == "unknown":
            kind = _kind_of(actual) or _kind_of(declared) or kind
            if kind in ("integer", "float") and (isinstance(declared, bool) or isinstance(actual, bool)):
                kind = "unknown"
        if kind == "text" and (isinstance(declared, date | time | UUID) or is_object(declared) or is_list(declared)):
            kind = _kind_of(declared) or kind
        return self if kind == self.kind else replace(self, kind=kind)

    def _agree(self, one: object, other: object) -> bool:
        if is_number(one) and is_number(other):
            return self._numbers_agree(one, other)
        if isinstance(one, str) and isinstance(other, str):
            return self._folded(one) == self._folded(other)
        if isinstance(one, Moment) and isinstance(other, Moment):
            _must_both_be_placed(one, other)
            return one == other
        if is_object(one) and is_object(other):
            return one.keys() == other.keys() and all(self._agree(one[name], other[name]) for name in one)
        if is_list(one) and is_list(other):
            return len(one) == len(other) and self._lists_agree(one, other)
        if _is_one_of_each(one, other) and not self.precise:
            raise Incomparable("an instant and a number: declare the column's `kind`, or compare it in SQL")
        return isinstance(one, bool) == isinstance(other, bool) and one == other

    def _numbers_agree(self, one: object, other: object) -> bool:
        first, second = _number(one, None), _number(other, None)
        if first == second:
            return True
        if not (isinstance(first, Decimal) and isinstance(second, Decimal)):
            return False
        if not (first.is_finite() and second.is_finite()):
            return False
        gap = _WIDE.abs(_WIDE.subtract(first, second))
        if self.tolerance is not None:
            return gap <= self.tolerance
        noisy = not self.precise and (isinstance(one, float) or isinstance(other, float))
        return noisy and gap <= max(NOISE, _WIDE.multiply(NOISE, max(abs(first), abs(second))))

    def _folded(self, text: str) -> str:
        text = text if self.case else text.casefold()
        return text if self.blanks else " ".join(text.split())

    def _lists_agree(self, one: Sequence[object], other: Sequence[object]) -> bool:
        if self.ordered:
            return all(self._agree(first, second) for first, second in zip(one, other, strict=True))
        if all(isinstance(item, str) for item in (*one, *other)):
            texts, others = (Counter(self._folded(str(item)) for item in items) for items in (one, other))
            return texts == others
        left = list(other)
        for item in one:
            place = next((place for place, candidate in enumerate(left) if self._agree(item, candidate)), None)
            if place is None:
                return False
            del left[place]
        return True


def is_number(value: object) -> TypeGuard[int | float | Decimal]:
    """Whether the value is a number; true and false are none."""
    return isinstance(value, int | float | Decimal) and not isinstance(value, bool)


def is_parsed(value: object) -> bool:
    """Whether a value of a JSON column was read by the driver already."""
    return not isinstance(value, str | bytes | bytearray | memoryview)


def _must_both_be_placed(one: Moment, other: Moment) -> None:
    if one.placed != other.placed:
        raise Incomparable("one of two times has no zone: declare one (`compare: {column: {zone: Europe/Paris}}`)")


def _is_one_of_each(one: object, other: object) -> bool:
    return (isinstance(one, Moment) and is_number(other)) or (is_number(one) and isinstance(other, Moment))


def _kind_of(value: object) -> ColumnKind | None:
    """The kind that a driver's type tells; None for texts and true and false, which any kind may be written in."""
    if isinstance(value, bool | str):
        return None
    if is_object(value) or is_list(value):
        return "json"
    return next((kind for types, kind in _DRIVER_KINDS if isinstance(value, types)), None)


_DRIVER_KINDS: tuple[tuple[tuple[type, ...], ColumnKind], ...] = (
    ((datetime,), "instant"),
    ((date,), "date"),
    ((time, timedelta), "time"),
    ((Decimal,), "decimal"),
    ((float,), "float"),
    ((int,), "integer"),
    ((UUID,), "uuid"),
    ((bytes, bytearray, memoryview), "bytes"),
)


def _form(kind: Kind, declared: object) -> object:
    """The form that a declared value has in a column of this kind, where a file cannot write it."""
    if kind == "text" and is_number(declared):
        # A text column cannot hold a number; its digits are the one thing that can be meant.
        return float.__repr__(declared) if isinstance(declared, float) else str(declared)
    if kind == "bytes" and isinstance(declared, str):
        return declared.encode()
    if kind == "integer" and isinstance(declared, bool):
        return int(declared)
    return declared


def _plain(value: object, zone: tzinfo | None) -> object:
    if isinstance(value, datetime):
        return _moment(value, zone)
    return _octets(value, zone)


def _number(value: object, _: tzinfo | None) -> object:
    """An exact number; not-a-number as a text of its own, since it does not equal itself; else the value."""
    if isinstance(value, bool):
        return value
    if isinstance(value, float):
        value = float.__repr__(value)
    if not isinstance(value, int | Decimal | str) or (isinstance(value, str) and "_" in value):
        return value
    try:
        number = Decimal(value)
    except InvalidOperation:
        return value
    return "NaN" if number.is_nan() else number


def _exactly(value: object, zone: tzinfo | None) -> object:
    """An exact number; a float that stands in a column of such numbers, for want of a better type, stays one."""
    return value if isinstance(value, float) and isfinite(value) else _number(value, zone)


def _double(value: object, zone: tzinfo | None) -> object:
    number = _number(value, zone)
    return float(number) if isinstance(number, Decimal) else number


def _truth(value: object, _: tzinfo | None) -> object:
    return bool(value) if is_number(value) and _number(value, None) in (0, 1) else value


def _moment(value: object, zone: tzinfo | None) -> object:
    if isinstance(value, str):
        value = _parsed(datetime.fromisoformat, value)
    if isinstance(value, date) and not isinstance(value, datetime):
        value = datetime.combine(value, time())
    if not isinstance(value, datetime):
        return value
    if value.tzinfo is None and zone is not None:
        value = value.replace(tzinfo=zone)
    offset = value.utcoffset()
    # Counted, not converted to UTC: the first and the last day of the calendar cannot be moved.
    return Moment(value.replace(tzinfo=None) - datetime.min - (offset or timedelta()), offset is not None)


def _day(value: object, zone: tzinfo | None) -> object:
    """A date; a local midnight is one too, as some drivers know no dates."""
    if isinstance(value, str):
        value = _parsed(date.fromisoformat, value)
    if isinstance(value, str):
        value = _parsed(datetime.fromisoformat, value)
    if isinstance(value, datetime):
        is_midnight = value.tzinfo is None and value.time() == time()
        return value.date() if is_midnight else _moment(value, zone)
    return value


def _clock(value: object, _: tzinfo | None) -> object:
    if isinstance(value, str):
        value = _parsed(time.fromisoformat, value)
    if isinstance(value, timedelta):
        return Moment(value, placed=False)
    if not isinstance(value, time):
        return value
    since = timedelta(hours=value.hour, minutes=value.minute, seconds=value.second, microseconds=value.microsecond)
    return Moment(since - (value.utcoffset() or timedelta()), value.utcoffset() is not None)


def _document(value: object, _: tzinfo | None) -> object:
    """A JSON document; a text that is none stays a text."""
    value = _octets(value, None)
    if not isinstance(value, str | bytes):
        return value
    try:
        return cast("object", json.loads(value, parse_float=Decimal))
    except (ValueError, InvalidOperation):  # the latter for a number beyond all that Python knows, such as 1e(10**19)
        return value
    except RecursionError:
        raise Incomparable("the JSON document is nested too deeply") from None


def _octets(value: object, _: tzinfo | None) -> object:
    if isinstance(value, memoryview):
        return cast("memoryview[int]", value).tobytes()
    return bytes(value) if isinstance(value, bytearray) else value


def _uuid(value: object, _: tzinfo | None) -> object:
    if isinstance(value, bytes) and len(value) == 16:
        return UUID(bytes=value)
    return _parsed(UUID, value) if isinstance(value, str) else value


def _parsed(parse: Callable[[str], object], text: str) -> object:
    """What the text says; the text itself if it says no such thing."""
    try:
        return parse(text)
    except ValueError:
        return text


_READERS: Mapping[Kind, Callable[[object, tzinfo | None], object]] = {
    "integer": _number,
    "decimal": _exactly,
    "float": _double,
    "boolean": _truth,
    "text": _plain,
    "instant": _moment,
    "date": _day,
    "time": _clock,
    "json": _document,
    "bytes": _octets,
    "uuid": _uuid,
    "unknown": _plain,
    "element": _plain,
}
