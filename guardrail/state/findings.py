"""Findings of a verification, each with its one line for a person on call."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field

from guardrail.calls import Finding, FindingKind
from guardrail.pointers import MISSING
from guardrail.state.comparison import Comparison
from guardrail.state.differences import Change
from guardrail.state.documents import Difference
from guardrail.state.presentation import presented
from guardrail.state.unknown import UNKNOWN
from guardrail.state.wording import REDACTED, redacted, show, show_both, show_row

ASKED = "nobody asked for it"


@dataclass(frozen=True, slots=True)
class Reporter:
    """Words findings; values of the columns in `secret` are never in them, nor in what hangs on them.

    `concealed` are further such columns, each of one table: table and column. `how` the columns of tables compare says
    in which form their values are shown.
    """

    secret: Container[str] = frozenset[str]()
    concealed: frozenset[tuple[str, str]] = frozenset()
    how: Mapping[str, Mapping[str, Comparison]] = field(default_factory=dict[str, Mapping[str, Comparison]])

    def wrong_value(
        self,
        kind: FindingKind,
        table: str,
        key: Mapping[str, object],
        column: str,
        expected: object,
        actual: object,
        places: Sequence[Difference] = (),
    ) -> Finding:
        """A column that does not hold what was expected: wrong, or not changed at all.

        `places` names where in a document actual and expected values differ, for the text.
        """
        wanted, found = (self._value(table, column, value) for value in (expected, actual))
        pointer, is_, should = places[0] if places and wanted != REDACTED else ("", found, wanted)
        more = f" ({len(places) - 1} more in {column})" if len(places) > 1 else ""
        place = f"{column}{pointer}"
        text = f"{self._row(table, key)}: {place} {self._is_but(table, place, is_, should)}{more}"
        shown = None if found is MISSING else found
        return self._finding(kind, table, text, key, column, wanted, shown)

    def _is_but(self, table: str, column: str, actual: object, expected: object) -> str:
        found, wanted = (self._value(table, column, value) for value in (actual, expected))
        if actual is MISSING:
            return f"is missing, expected {show(wanted)}"
        if expected is MISSING:
            return f"is {show(found)}, expected none"
        found_text, wanted_text = show_both(found, wanted)
        return f"is {found_text}, expected {wanted_text}"

    def no_row(self, table: str, key: Mapping[str, object], *, was_deleted: bool) -> Finding:
        """A row that should have been updated is not there."""
        why = "the row was deleted, expected it to be updated" if was_deleted else "there is no such row"
        return self._finding("missing_change", table, f"{self._row(table, key)}: {why}", key)

    def not_deleted(self, table: str, key: Mapping[str, object]) -> Finding:
        """A row that should have been deleted is still there."""
        return self._finding("missing_change", table, f"{self._row(table, key)}: the row was not deleted", key)

    def not_inserted(self, table: str, values: Mapping[str, object], times: int) -> Finding:
        """Rows that should have been inserted, with these values, are not there."""
        telling = {name: self._value(table, name, value) for name, value in values.items()}
        content = f" with {show_row(telling)}" if telling else ""
        what = f"no row{content} was inserted" if times == 1 else f"{times} rows{content} were not inserted"
        return self._finding("missing_change", table, f"{table}: {what}", {}, expected=telling)

    def unrequested(self, change: Change, *, shared: bool, beyond: int | None = None) -> Finding:
        """A row that nobody asked to be inserted, deleted or, in columns not known, updated.

        `beyond` is the number of allowed ones where there were more.
        """
        row = self._shown(change.table, change.after or change.before or {})
        content = {name: value for name, value in row.items() if name not in change.key and value is not UNKNOWN}
        said = f" ({show_row(content)})" if content and change.kind != "update" else ""
        deed = {"insert": "was inserted", "delete": "was deleted", "update": "was changed (old values unknown)"}
        excess = ASKED if beyond is None else f"no more than {beyond} may be"
        text = f"{self._row(change.table, change.key)}: the row {deed[change.kind]}{said}, and {excess}"
        old, new = (None if side is None else self._shown(change.table, side) for side in (change.before, change.after))
        return self._unrequested(change.table, text, change.key, None, old, new, shared)

    def unrequested_column(self, change: Change, difference: Difference, *, shared: bool) -> Finding:
        """A column, or a part of a document (`column/pointer`), that nobody asked to be changed."""
        column, before, after = difference
        old, new = (self._value(change.table, column, None if side is MISSING else side) for side in (before, after))
        old_text, new_text = show_both(old, new)
        what = f"changed from {old_text} to {new_text}"
        if after is MISSING:
            what = f"was removed (it was {show(old)})"
        elif before is MISSING:
            what = f"was added ({show(new)})"
        text = f"{self._row(change.table, change.key)}: {column} {what}, and {ASKED}"
        return self._unrequested(change.table, text, change.key, column, old, new, shared)

    def not_one(self, place: str, names: str) -> Finding:
        """More than one alternative holds."""
        return self._finding("check_failed", place, f"{place}: {names} hold, and exactly one of them must", {})

    def nothing_expected(self, table: str, why: str) -> Finding:
        """An expectation stands for no row, so it is met whatever happened; that may be right."""
        text = f"{table}: {why}, so nothing was expected of it"
        return self._finding("check_error", table, text, {}, warning=True)

    def cannot_tell(self, table: str, why: str, key: Mapping[str, object] | None = None, column: str = "") -> Finding:
        """Something that could not be checked."""
        place = self._row(table, key or {})
        text = f"{place}: {column} cannot be checked: {why}" if column else f"{place}: {why}"
        return self._finding("check_error", table, text, key or {}, column or None)

    def _unrequested(
        self,
        table: str,
        text: str,
        key: Mapping[str, object],
        column: str | None,
        old: object,
        new: object,
        shared: bool,
    ) -> Finding:
        said = f"{text} (others write here too)" if shared else text
        return self._finding("unrequested_change", table, said, key, column, old, new, warning=shared)

    def _finding(
        self,
        kind: FindingKind,
        table: str,
        text: str,
        key: Mapping[str, object],
        column: str | None = None,
        expected: object = None,
        actual: object = None,
        *,
        warning: bool = False,
    ) -> Finding:
        return Finding(kind, table, text, self._shown(table, key), column, expected, actual, warning)

    def _row(self, table: str, key: Mapping[str, object]) -> str:
        return f"{table} {show_row(self._shown(table, key))}" if key else table

    def _shown(self, table: str, row: Mapping[str, object]) -> dict[str, object]:
        return {name: self._value(table, name, value) for name, value in row.items()}

    def _value(self, table: str, column: str, value: object) -> object:
        """A value as it may be shown: `column` may be followed by a pointer into its document."""
        names = column.split("/")
        if (table, names[0]) in self.concealed or any(name in self.secret for name in names):
            return REDACTED
        how = self.how.get(table, {}).get(column)
        return redacted(value if how is None else presented(value, how), self.secret)
