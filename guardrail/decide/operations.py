"""Operations: what makes two writes the same, and what a repeat may do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from guardrail.calls import Outcome

OperationState: TypeAlias = Literal["running", "done", "in_doubt"]
Repeat: TypeAlias = Literal["duplicate", "conflict", "in_doubt", "running", "equal"]


@dataclass(frozen=True, slots=True)
class Operation:
    """One write of a run: its key, the digest of its arguments, and what is known of it.

    `declared` tells that the tool names the operation by `once_per`; otherwise the key is the
    tool with all its arguments.
    """

    key: str
    digest: str
    declared: bool
    state: OperationState
    call: int


def repeat(digest: str, earlier: Operation) -> Repeat | None:
    """What a write is in the light of an earlier one with the same key; None: nothing to say.

    In doubt: it may have happened, so nobody may do it again before a look at the store. Running: a call beside
    it does the same right now. A duplicate
    has the same arguments, a conflict others; `equal` is a clean repeat under no declared key, which is
    let through and flagged.
    """
    if earlier.state == "in_doubt":
        return "in_doubt"
    if not earlier.declared:
        return "equal" if earlier.state == "done" else None
    if earlier.state == "running":
        return "running"
    return "duplicate" if earlier.digest == digest else "conflict"


_KNOWN: Mapping[Outcome, OperationState] = {
    "ok": "done", "empty": "done", "incomplete": "done", "partial": "in_doubt", "in_doubt": "in_doubt",
}  # fmt: skip


def after(operation: Operation, outcome: Outcome) -> Operation | None:
    """What is known of an operation when its call has ended; None: it did not happen."""
    state = _KNOWN.get(outcome)
    return None if state is None else replace(operation, state=state)
