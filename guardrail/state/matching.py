"""Whether a live value is what an expectation says."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from decimal import Context, Decimal

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
from guardrail.pointers import MISSING, follow, resolve
from guardrail.state.comparison import Comparison, Incomparable, Moment, is_sealed
from guardrail.state.documents import Difference, document_differences, put
from guardrail.state.pairing import pair
from guardrail.state.unknown import UNKNOWN


@dataclass(frozen=True, slots=True)
class Window:
    """The time of a run, from its opening to its end; both with a zone."""

    start: datetime
    end: datetime


@dataclass(frozen=True, slots=True)
class Cell:
    """A live value of a column, what it was before, how the column's values compare, and when the run was.

    `actual` and `before` may be `UNKNOWN`; `before` is `MISSING` where the row is new.
    """

    actual: object
    before: object
    how: Comparison
    window: Window | None = None

    def inside(self, actual: object, before: object = UNKNOWN) -> Cell:
        """A value within this one, which is a document or an array of the driver's own values."""
        is_array = self.how.kind == "unknown" and not isinstance(self.actual, str)
        how = self.how if is_array else self.how.element
        return Cell(actual, before, how, self.window)

    @property
    def document(self) -> object:
        """The live value as a JSON document."""
        return self.how.document(self.actual)

    @property
    def document_before(self) -> object:
        """What the document was before; `UNKNOWN` or `MISSING` as `before` is."""
        if is_sealed(self.before):
            return UNKNOWN
        return self.before if self.before is MISSING else self.how.document(self.before)


def meets(value: Value, cell: Cell) -> bool:
    """Whether the live value is what the expectation says. Raises `Incomparable` where nothing can be proved."""
    if isinstance(value, Anything):
        return True
    if cell.actual is UNKNOWN:
        raise Incomparable("the value is unknown, since only a hash of the row was kept")
    if isinstance(value, Not):
        return not meets(value.value, cell)
    if isinstance(value, OneOf):
        return _is_met_by_any(items_of(value.options), cell)
    if isinstance(value, Given):
        return cell.actual is not MISSING and cell.how.equals(value.value, cell.actual)
    if is_sealed(cell.actual) and not isinstance(value, Generated):
        raise Incomparable("the value was not kept")
    return cell.actual is not None and cell.actual is not MISSING and _meets_form(value, cell)


def parts_of(value: Value, cell: Cell) -> Iterator[tuple[str, Value, Cell]]:
    """What is expected apart: each pointer of a document with its value, or the column as a whole (pointer "")."""
    if not isinstance(value, Json) or cell.actual is UNKNOWN or is_sealed(cell.actual):
        yield "", value, cell
        return
    document, before = cell.document, cell.document_before
    for pointer, part in value.parts:
        yield pointer, part, cell.inside(resolve(document, pointer), _within(before, pointer))


def extras(value: Value, cell: Cell) -> tuple[Difference, ...]:
    """What else changed in a document of which `value` names parts and says that the rest is unchanged.

    Raises `Incomparable` where the document before is not known.
    """
    if not isinstance(value, Json) or value.rest == "any" or cell.before is MISSING:
        return ()
    before = cell.document_before
    if before is UNKNOWN or cell.actual is UNKNOWN or is_sealed(cell.actual):
        raise Incomparable("the document before the run is unknown, so whether its rest is unchanged is too")
    document = cell.document
    wanted: object = {} if before is None and is_object(document) else before
    for pointer, _ in value.parts:
        wanted = put(wanted, pointer, resolve(document, pointer))
    return tuple(document_differences(wanted, document, cell.how.precisely.element.same))


def differences_from(value: Value, cell: Cell) -> tuple[Difference, ...]:
    """Where a document differs from the plain one that is expected: pointer, what is there, what should be."""
    if not isinstance(value, Given) or not (is_object(value.value) or is_list(value.value)):
        return ()
    document = cell.document
    if not (is_object(document) or is_list(document)):
        return ()
    return tuple(document_differences(document, value.value, cell.how.element.same))


def items_of(value: Value) -> tuple[Value, ...]:
    """The items of an expected list. Raises `Incomparable` for anything else (a reference may stand for that)."""
    if isinstance(value, Listing):
        return value.items
    if isinstance(value, Given) and is_list(value.value):
        return tuple(map(Given, value.value))
    raise Incomparable("the expected value is no list")


def number_after(value: ChangedBy, cell: Cell) -> Decimal:
    """The number that a relative expectation comes to. Raises `Incomparable`, also when `by` is no plain number."""
    by = cell.how.number(value.by.value) if isinstance(value.by, Given) else None
    if by is None:
        raise Incomparable("by how much it should have changed is no number")
    return _EXACT.add(_number_before(cell), _EXACT.multiply(by, Decimal(value.sign)))


_EXACT = Context(prec=700, Emax=999_999, Emin=-999_999, traps=[])


def _meets_form(value: Value, cell: Cell) -> bool:
    """Whether a value that is there meets a form. (NULL meets none of these.)"""
    match value:
        case During():
            return _is_within(cell)
        case ChangedBy():
            return _is_changed_by(value, cell)
        case Bound(limit, sign):
            return _is_bound_by(limit, sign, cell)
        case Matches(pattern):
            return isinstance(cell.actual, str) and re.fullmatch(pattern, cell.actual) is not None
        case Unordered(items):
            return _is_list_of(items_of(items), cell, ordered=False)
        case Listing(items):
            return _is_list_of(items, cell, ordered=cell.how.ordered)
        case Fields(fields):
            return _is_object_of(fields, cell)
        case Json():
            return all(meets(part, inner) for _, part, inner in parts_of(value, cell)) and not extras(value, cell)
        case Reference():
            raise Incomparable(f"{value} has no value")
        case _:
            return isinstance(value, Generated)


def _is_met_by_any(options: Iterable[Value], cell: Cell) -> bool:
    """Whether one option is met; one that cannot be compared counts only if no other is met."""
    doubt: Incomparable | None = None
    for option in options:
        try:
            if meets(option, cell):
                return True
        except Incomparable as error:
            doubt = error
    if doubt is not None:
        raise doubt
    return False


def _is_changed_by(value: ChangedBy, cell: Cell) -> bool:
    before, actual = _number_before(cell), cell.how.number(cell.actual)
    if actual is None:
        return False
    if isinstance(value.by, Given):
        # Not the difference: where numbers are floats, it is far noisier than they are.
        return cell.how.equals(number_after(value, cell), cell.actual)
    change = _EXACT.multiply(_EXACT.subtract(actual, before), Decimal(value.sign))
    return meets(value.by, replace(cell, actual=change, before=UNKNOWN, how=Comparison("decimal")))


def _number_before(cell: Cell) -> Decimal:
    if cell.before is MISSING:
        raise Incomparable("there was no value before the run that it could have changed from")
    number = None if cell.before is UNKNOWN or is_sealed(cell.before) else cell.how.number(cell.before)
    if number is None:
        raise Incomparable("its value before the run is unknown or no number")
    return number


def _is_bound_by(limit: Value, sign: int, cell: Cell) -> bool:
    if not isinstance(limit, Given):
        raise Incomparable("the limit is no plain value")
    return cell.how.equals(limit.value, cell.actual) or cell.how.order(cell.actual, limit.value) * sign > 0


def _is_within(cell: Cell) -> bool:
    """Whether an instant lies in the run. What holds only whole seconds may have been rounded either way."""
    if cell.window is None:
        raise Incomparable("there is no run during which it could have been")
    moment = cell.how.moment(cell.actual)
    if moment is None:
        return _is_no_instant(cell.actual)
    if not moment.placed or cell.how.kind == "time":
        raise Incomparable("the time has no zone: declare one (`compare: {column: {zone: Europe/Paris}}`)")
    start, end = (_instant(time) for time in (cell.window.start, cell.window.end))
    if cell.how.kind == "date":
        return start - timedelta(days=1) < moment.since <= end
    unit = _unit(moment)
    return start - unit < moment.since < end + unit or start <= moment.since <= end


def _is_no_instant(actual: object) -> bool:
    if isinstance(actual, str):
        return False
    raise Incomparable("the value is no instant; whether it stands for one is not said")


def _unit(moment: Moment) -> timedelta:
    """The finest step that a stored instant seems to have; databases round to it in either direction."""
    steps = (timedelta(seconds=1), timedelta(milliseconds=1))
    return next((step for step in steps if not moment.since % step), timedelta())


def _instant(time: datetime) -> timedelta:
    moment = Comparison("instant").moment(time)
    if moment is None or not moment.placed:
        raise Incomparable("the run's own times have no zone")
    return moment.since


def _is_list_of(items: Sequence[Value], cell: Cell, *, ordered: bool) -> bool:
    actual = cell.document
    if not is_list(actual) or len(actual) != len(items):
        return False
    if ordered:
        return all(meets(item, cell.inside(found)) for item, found in zip(items, actual, strict=True))
    fitting = [[place for place, found in enumerate(actual) if meets(item, cell.inside(found))] for item in items]
    return len(pair(fitting)) == len(items)


def _is_object_of(fields: Sequence[tuple[str, Value]], cell: Cell) -> bool:
    actual, before = cell.document, cell.document_before
    if not is_object(actual) or set(actual) != set[object](name for name, _ in fields):
        return False
    return all(meets(part, cell.inside(actual[name], _within(before, name, is_name=True))) for name, part in fields)


def _within(before: object, place: str, *, is_name: bool = False) -> object:
    """The value within a document from before, which may itself be unknown or missing."""
    if before is UNKNOWN or before is MISSING:
        return before
    return follow(before, [place]) if is_name else resolve(before, place)
