"""Pictures of small tables, and what a contract makes of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from guardrail.calls import Finding
from guardrail.declare.contracts import Task
from guardrail.pictures import ColumnKind, Picture, Unanswered
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


Pictures = Sequence[Picture] | Mapping[str, Picture | Unanswered]


def verified(task: Mapping[str, Any], before: Pictures, after: Pictures, **more: Any) -> Verified:
    """What a contract, written as in a file, makes of the pictures before and after."""
    contract = Contract.of(Task.model_validate(task), "task")
    return verify(contract, Evidence(before=_by_table(before), after=_by_table(after), **more))


def _by_table(pictures: Pictures) -> Mapping[str, Picture | Unanswered]:
    return pictures if isinstance(pictures, Mapping) else {picture.table: picture for picture in pictures}


def told(findings: Sequence[Finding]) -> list[str]:
    """The findings with their kind, one line each."""
    return [f"{finding.kind}{' (warning)' if finding.warning else ''}: {finding}" for finding in findings]
