"""What a column, by its type, can never hold, and what can never be told of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Final
from uuid import UUID

from guardrail.declare.contracts import Input
from guardrail.declare.values import Bound, ChangedBy, During, Given, Not, OneOf, Value
from guardrail.pictures import ColumnKind, Table
from guardrail.state.comparison import Comparison, Incomparable, is_number
from guardrail.state.contract import Watched
from guardrail.state.matching import Cell, Window, items_of, meets
from guardrail.state.scope import Scope, Unresolved

_NOW: Final = datetime(2025, 1, 1, 12, tzinfo=UTC)
_LOCAL: Final = _NOW.replace(tzinfo=None)

_SPECIMENS: Final[Mapping[ColumnKind, object]] = {
    "integer": 1,
    "decimal": Decimal(1),
    "float": 1.0,
    "boolean": True,
    "instant": _NOW,
    "date": _NOW.date(),
    "uuid": UUID(int=1),
}
"""A value of each kind all of whose values are alike in what can be told of them."""

_INPUTS: Final[Mapping[str, object]] = {
    "integer": 1,
    "decimal": Decimal(1),
    "number": 1,
    "boolean": True,
    "date": _NOW.date(),
    "instant": _NOW,
}
"""A value of each type of an input; a text may be anything."""

_UNBOUNDED: Final = frozenset({"nan", "inf", "infinity"})


@dataclass(frozen=True, slots=True)
class Column:
    """A column as its table has it: how its values compare, and whether these have no zone (None: some may).

    `strict`: it holds nothing but values of its type, which columns of SQLite need not.
    """

    name: str
    how: Comparison
    zoneless: bool | None
    strict: bool

    @classmethod
    def of(cls, name: str, table: Table, watched: Watched, *, strict: bool) -> Column:
        """The column of a table that is watched so; one that is compared as another kind may hold anything."""
        loosely = watched.compare.get(name)
        kind = table.kinds.get(name, "unknown") if loosely is None or loosely.kind is None else "unknown"
        counts_up = table.key == (name,) and name in table.generated and kind == "integer"
        how = replace(Comparison.of(kind, loosely), kind=kind)
        zoneless = name in table.zoneless
        return cls(name, how, True if zoneless else False if strict else None, strict or counts_up)

    def doubt(self, value: Value, inputs: Mapping[str, str | Input]) -> str:
        """Why the column never has this value, or why that can never be told; empty where neither is known."""
        types = {name: said if isinstance(said, str) else said.type for name, said in inputs.items()}
        known = {name: _INPUTS[kind] for name, kind in types.items() if kind in _INPUTS}
        try:
            supposed = Scope(known).resolve(value)
        except Unresolved:
            return ""  # a text, or a row that is found later
        why = self._untold(supposed, self.how)
        if why and self.how.zone is None and not self._untold(supposed, replace(self.how, zone=UTC)):
            return self._unzoned()
        if why:
            return f"never tells whether it is as the contract has it: {why}"
        if self._is_never(supposed):
            return f"is of the kind {self.how.kind}, and never holds what the contract has there"
        return ""

    def _unzoned(self) -> str:
        who = "has no zone" if self.zoneless or self.how.kind != "instant" else "is compared with a time without a zone"
        return (
            f"{who}, so whether it is as the contract has it cannot be told: declare `compare: {{{self.name}: "
            "{zone: UTC}}` where it is watched, with the zone that is meant"
        )

    def _untold(self, value: Value, how: Comparison) -> str:
        """Why it can never be told whether the column has a value; empty where it can be."""
        if how.kind == "time" and isinstance(value, During):
            return "it holds times of the day, and not on which day"
        specimen = self._specimen
        if specimen is None or not isinstance(value, Given | During | ChangedBy | Bound | Not | OneOf):
            return ""
        if isinstance(value, Not):
            return self._untold(value.value, how)
        try:
            if isinstance(value, OneOf):
                doubts = [self._untold(option, how) for option in items_of(value.options)]
                return doubts[0] if doubts and all(doubts) else ""
            meets(value, Cell(specimen, specimen, how, Window(_NOW, _NOW)))
        except Incomparable as error:
            return str(error)
        return ""

    @property
    def _specimen(self) -> object | None:
        if self.how.kind == "instant" and self.zoneless is not False:
            return _LOCAL if self.zoneless else None
        return _SPECIMENS.get(self.how.kind) if self.how.kind != "element" else None

    def _is_never(self, value: Value) -> bool:
        """Whether no value of the column is this one."""
        match value:
            case OneOf(options):
                items = items_of(options)
                return bool(items) and all(map(self._is_never, items))
            case Given(plain):
                return plain is not None and not self._may_hold(plain)
            case _:
                return False

    def _may_hold(self, plain: object) -> bool:
        match self.how.kind:
            case "integer":
                number = self.how.number(int(plain) if isinstance(plain, bool) else plain)
                return number is not None and (number == number.to_integral_value() or self.how.tolerance is not None)
            case "decimal" | "float":
                unbounded = isinstance(plain, str) and plain.strip().lower().lstrip("+-") in _UNBOUNDED
                return unbounded or self.how.number(plain) is not None
            case "boolean" if self.strict:
                return isinstance(plain, bool) or (is_number(plain) and plain in (0, 1))
            case "instant" | "date" if self.strict:
                # Some servers know days that are none, and times without end.
                return self.how.moment(plain) is not None or _is_like_a_time(plain)
            case "uuid" if self.strict:
                return isinstance(self.how.read(plain), UUID)
            case _:
                return True


def _is_like_a_time(plain: object) -> bool:
    if isinstance(plain, str):
        return plain.strip().lstrip("+-").lower() in _UNBOUNDED or any(map(str.isdigit, plain))
    return isinstance(plain, date | time)
