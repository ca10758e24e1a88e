"""Pictures of small tables, and what a contract makes of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from guardrail.calls import Finding
from guardrail.declare.contracts import Task
from guardrail.pictures import ColumnKind, Picture
from guardrail.state import Contract, Evidence, Verified, verify

Rows = Sequence[Mapping[str, Any]]


def picture(
    table: str,
    rows: Rows,
    kinds: Mapping[str, ColumnKind],
    key: tuple[str, ...] = ("id",),
    *,
    hashed: bool = False,
    pinned: Sequence[tuple[Any, ...]] = (),
) -> Picture:
    """A picture of a table's rows; `hashed` keeps whole rows only for the `pinned` keys."""
    whole = {tuple(row[name] for name in key): tuple(row.get(name) for name in kinds) for row in rows}
    if not hashed:
        return Picture(table, key, tuple(kinds), kinds, whole)
    hashes = {found: repr(row).encode() for found, row in whole.items()}
    return Picture(table, key, tuple(kinds), kinds, {found: whole[found] for found in pinned if found in whole}, hashes)


def verified(task: Mapping[str, Any], before: Sequence[Picture], after: Sequence[Picture], **more: Any) -> Verified:
    """What a contract, written as in a file, makes of the pictures before and after."""
    contract = Contract.of(Task.model_validate(task), "task")
    pictures = {"before": {p.table: p for p in before}, "after": {p.table: p for p in after}}
    return verify(contract, Evidence(**{**pictures, **more}))


def told(findings: Sequence[Finding]) -> list[str]:
    """The findings with their kind, one line each."""
    return [f"{finding.kind}{' (warning)' if finding.warning else ''}: {finding}" for finding in findings]
