"""Holds: unresolved failures of a run, what retries one, and what resolves one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from guardrail.calls import Effect, Outcome, ToolCall
from guardrail.decide.arguments import are_lacking, changed, identifiers, is_identifier, is_slip, value_of, without


@dataclass(frozen=True, slots=True)
class Hold:
    """One unresolved failure: the failed call, what it came to, and how often it was tried again.

    `looked_for` tells that it failed because something was not found; then the identifier may be what
    was wrong. `series` holds the arguments of the tool's last success before the failure. `idempotent`
    tells that its tool may do a write in doubt again.
    """

    call: int
    tool: str
    effect: Effect
    outcome: Outcome
    args: Mapping[str, object]
    detail: str = ""
    looked_for: bool = False
    retries: int = 0
    series: Mapping[str, object] | None = None
    idempotent: bool = False


def is_retry(hold: Hold, call: ToolCall) -> bool:
    """Whether a call tries a failed one again: the same tool with at most one argument changed.

    After "not found" the changed argument may be the identifier, unless the call is the next item of a
    series; after a rejection or a failed precondition the call must be about the same entity. A call that could not be
    made as it was given may be completed by any number of arguments that it lacked. A write in doubt is tried again
    only by the identical call of an idempotent tool.
    """
    if hold.tool != call.name:
        return False
    names = changed(hold.args, call.args)
    if hold.outcome == "in_doubt":
        return hold.idempotent and not names
    if len(names) != 1:
        return not names or (hold.outcome in ("error", "precondition_failed") and are_lacking(hold.args, names))
    name = names[0]
    if hold.series is not None and changed(hold.series, hold.args) == [name]:
        # The tool walks along this argument: another value is the next item, unless it is a slip mended.
        return is_slip(value_of(hold.args, name), value_of(call.args, name))
    if hold.looked_for or hold.outcome not in ("rejected", "precondition_failed"):
        return True
    return _is_same_entity(call.args, but=name)


def resolves(hold: Hold, call: ToolCall, effect: Effect) -> bool:
    """Whether a call that came out well resolves a hold: its retry, or a read that finds the same entity.

    A look at the entity says nothing about whether a write in doubt happened.
    """
    if is_retry(hold, call):
        return True
    if effect != "read" or hold.outcome == "in_doubt":
        return False
    return not identifiers(hold.args).isdisjoint(identifiers(call.args))


def _is_same_entity(args: Mapping[str, object], *, but: str) -> bool:
    """Whether a call is about the same entity although this argument changed.

    It is when the argument identifies nothing, or when others that identify something stayed: another article
    for the same order of the same customer.
    """
    return not is_identifier(but) or bool(identifiers(without(args, but)))
