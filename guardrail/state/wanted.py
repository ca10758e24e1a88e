"""One expected change with its names resolved, and how a row of the state differs from it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from guardrail.calls import Finding, FindingKind
from guardrail.declare.values import Anything, Generated, Value
from guardrail.pictures import Key
from guardrail.pointers import MISSING
from guardrail.state.comparison import Incomparable
from guardrail.state.contract import Expected
from guardrail.state.differences import Change, is_changed
from guardrail.state.documents import Difference
from guardrail.state.findings import Reporter
from guardrail.state.matching import Cell, differences_from, extras, meets, parts_of
from guardrail.state.tables import Table
from guardrail.state.unknown import UNKNOWN
from guardrail.state.wording import describe


@dataclass(frozen=True, slots=True)
class Wanted:
    """One expected change with every name resolved. `content` tells it from others, in whatever order written."""

    expected: Expected
    table: Table
    key: Mapping[str, Value]
    values: Mapping[str, Value]
    content: tuple[str, str]

    @classmethod
    def of(cls, expected: Expected, table: Table, key: Mapping[str, Value], values: Mapping[str, Value]) -> Wanted:
        """The expected change in this table."""
        content = table.name, repr(sorted(values.items(), key=lambda item: item[0]))
        return cls(expected, table, key, values, content)

    @property
    def telling(self) -> dict[str, Value]:
        """The values that not every row holds."""
        return {name: value for name, value in self.values.items() if not isinstance(value, Anything | Generated)}


def shortcomings(wanted: Wanted, key: Key, report: Reporter) -> Iterator[Finding]:
    """How a row differs from what is wanted of it: wrong and missing values, and what cannot be told."""
    if wanted.table.is_unseen(key):
        yield report.cannot_tell(wanted.table.name, "the values of the row are unknown", wanted.table.named(key))
        return
    for column, value in wanted.values.items():
        yield from _column_shortcomings(wanted.table, key, column, value, report)


def _column_shortcomings(table: Table, key: Key, column: str, value: Value, report: Reporter) -> Iterator[Finding]:
    """How a column differs; a document is judged pointer by pointer, and its rest after that."""
    try:
        cell = table.cell(key, column)
        parts = [*parts_of(value, cell)]
    except Incomparable as error:
        yield report.cannot_tell(table.name, str(error), table.named(key), column)
        return
    for pointer, part, inner in parts:
        kind: FindingKind = "wrong_value" if _has_changed(table, key, column, pointer, inner) else "missing_change"
        yield from _part_shortcomings(table, key, f"{column}{pointer}", part, inner, kind, report)
    yield from _extra_changes(table, key, column, value, cell, report)


def _has_changed(table: Table, key: Key, column: str, pointer: str, cell: Cell) -> bool:
    """Whether a column, or the part of a document, was changed by the run as far as is known."""
    if not pointer or cell.before is UNKNOWN or cell.actual is UNKNOWN:
        return table.changed(key, column)
    if cell.before is MISSING or cell.actual is MISSING:
        return cell.before is not cell.actual
    return is_changed(cell.before, cell.actual, cell.how)


def _part_shortcomings(
    table: Table, key: Key, column: str, value: Value, cell: Cell, kind: FindingKind, report: Reporter
) -> Iterator[Finding]:
    try:
        if not meets(value, cell):
            expected, places = describe(value, report.secret, cell), differences_from(value, cell)
            yield report.wrong_value(kind, table.name, table.named(key), column, expected, cell.actual, places)
    except Incomparable as error:
        yield report.cannot_tell(table.name, str(error), table.named(key), column)


def _extra_changes(
    table: Table, key: Key, column: str, value: Value, cell: Cell, report: Reporter
) -> Iterator[Finding]:
    try:
        found = extras(value, cell)
    except Incomparable as error:
        yield report.cannot_tell(table.name, str(error), table.named(key), column)
        return
    change = table.changes.get(key)
    if change is not None and change.attribution != "by_other":
        for difference in found:
            yield report.unrequested_column(change, in_column(column, difference), shared=is_shared(table, change))


def in_column(column: str, difference: Difference) -> Difference:
    """A difference of a document, named by its column and pointer, as in `meta/b`."""
    pointer, old, new = difference
    return f"{column}{pointer}", old, new


def is_shared(table: Table, change: Change) -> bool:
    """Whether a change may be the work of others who write to the table too (design, rule 13)."""
    return table.watched.shared and change.attribution == "unattributed"
