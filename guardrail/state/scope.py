"""What the names of a contract stand for: inputs, rows of `let`, rows found by expectations, `each`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from guardrail.declare.values import (
    Bound,
    ChangedBy,
    Fields,
    Given,
    Json,
    Listing,
    Not,
    OneOf,
    Reference,
    Unordered,
    Value,
    fields_of,
    is_list,
    is_object,
    listing,
)
from guardrail.errors import GuardrailError
from guardrail.pictures import Unanswered, as_spelled
from guardrail.state.unknown import UNKNOWN

Found: TypeAlias = Sequence[Mapping[str, object]]
"""Rows by column."""


class Unresolved(GuardrailError):
    """A name stands for no value, or for none in particular; the text says why."""


@dataclass(frozen=True, slots=True)
class Scope:
    """What the names stand for. `rows` holds the rows that expectations found, by their `as` name."""

    inputs: Mapping[str, object]
    lets: Mapping[str, Found | Unanswered] = field(default_factory=dict[str, "Found | Unanswered"])
    rows: Mapping[str, Found] = field(default_factory=dict[str, Found])
    each: object = UNKNOWN

    def naming(self, name: str, rows: Found) -> Scope:
        """The scope with the rows that an expectation found."""
        return replace(self, rows={**self.rows, name: rows})

    def resolve(self, value: Value) -> Value:
        """The value with every reference replaced by what it stands for. Raises `Unresolved`."""
        match value:
            case Reference():
                return Given(self.look_up(value))
            case Listing(items):
                return listing(tuple(map(self.resolve, items)))
            case Fields(fields):
                return fields_of(self._resolve_all(fields))
            case Json(parts, rest):
                return Json(self._resolve_all(parts), rest)
            case ChangedBy(by, sign):
                return ChangedBy(self.resolve(by), sign)
            case Bound(limit, sign):
                return Bound(self.resolve(limit), sign)
            case OneOf(inner) | Not(inner) | Unordered(inner):
                return type(value)(self.resolve(inner))
            case _:
                return value

    def look_up(self, reference: Reference) -> object:
        """The one value that a reference stands for. Raises `Unresolved`."""
        name = reference.name
        if name == "each" and self.each is not UNKNOWN:
            return _part(reference, self.each)
        if name in self.rows or name in self.lets:
            return _column_of_all(reference, self._rows(name))
        if name in self.inputs:
            return _part(reference, self.inputs[name])
        raise Unresolved(f"{reference} has no value: no input, row or `let` is called {name}")

    def over(self, each: Reference | None) -> Sequence[Scope]:
        """The scope for each item of a list or each row, or the scope itself. Raises `Unresolved`."""
        return [self] if each is None else [replace(self, each=item) for item in self._items(each)]

    def _items(self, reference: Reference) -> Sequence[object]:
        if reference.column is None and (reference.name in self.rows or reference.name in self.lets):
            return self._rows(reference.name)
        value = self.look_up(reference)
        if is_list(value):
            return value
        raise Unresolved(f"{reference} is no list")

    def _rows(self, name: str) -> Found:
        if name in self.rows:
            if not self.rows[name]:
                raise Unresolved(f"no row is known to be ${name}")
            return self.rows[name]
        rows = self.lets[name]
        if isinstance(rows, Unanswered):
            raise Unresolved(f"${name} could not be read: {rows.why}")
        return rows

    def _resolve_all(self, parts: Sequence[tuple[str, Value]]) -> tuple[tuple[str, Value], ...]:
        return tuple((name, self.resolve(part)) for name, part in parts)


def _part(reference: Reference, value: object) -> object:
    if reference.column is None:
        return value
    if is_object(value):
        column = as_spelled(reference.column, [name for name in value if isinstance(name, str)])
        if column in value:
            return value[column]
    raise Unresolved(f"{reference} has no value: there is no {reference.column} in it")


def _column_of_all(reference: Reference, rows: Found) -> object:
    """The value of a column that all rows agree on."""
    if reference.column is None:
        raise Unresolved(f"{reference} is a row; name one of its columns, as in {reference}.id")
    values = [_part(reference, row) for row in rows]
    if not values:
        raise Unresolved(f"{reference} has no value: ${reference.name} has no rows")
    if any(value != values[0] for value in values):
        raise Unresolved(f"{reference} has {len(values)} rows with different values; use `each`")
    return values[0]
