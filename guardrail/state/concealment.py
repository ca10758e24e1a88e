"""Which columns no finding may show, since their values are held against secrets."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping

from guardrail.declare.values import Reference, Value, mentioned
from guardrail.state.contract import Contract


def concealed(contract: Contract, secret: Container[str]) -> frozenset[tuple[str, str]]:
    """The columns, as table and column, of which a contract says that they hold a secret input's value.

    So do columns that are to hold what a row found before (`as`) has in such a column.
    """
    found: frozenset[tuple[str, str]] = frozenset()
    while True:
        more = frozenset(_concealed(contract, secret, found))
        if more == found:
            return found
        found = more


def _concealed(
    contract: Contract, secret: Container[str], found: frozenset[tuple[str, str]]
) -> Iterator[tuple[str, str]]:
    tables = {said.name: said.table for branch in contract.branches for said in branch.expected if said.name}
    for table, values, each in _said(contract):
        for column, value in values.items():
            for name, part in _origins(value, each):
                if name in secret or (part is not None and part in secret) or (tables.get(name), part) in found:
                    yield table, column


def _said(contract: Contract) -> Iterator[tuple[str, Mapping[str, Value], Reference | None]]:
    """What is said of a table's columns, and the list of which every item is meant."""
    for branch in contract.branches:
        for expected in branch.expected:
            yield expected.table, expected.key, expected.each
            yield expected.table, expected.values, expected.each
        for allowed in branch.allowed:
            yield allowed.table, allowed.key or {}, None
            yield allowed.table, allowed.values, None


def _origins(value: Value, each: Reference | None) -> Iterator[tuple[str, str | None]]:
    """The names that a value comes from, with the part of them; `$each` comes from its list."""
    for reference in mentioned(value):
        yield reference.name, reference.column
        if reference.name == "each" and each is not None:
            yield each.name, each.column or reference.column
