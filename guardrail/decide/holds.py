"""Holds: unresolved failures of a run, what retries one, and what resolves one."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from guardrail.calls import Effect, Outcome, ToolCall

# Names of arguments that say which entity is meant: `id`, `order_id`, `orderId`, `sku`, `email`, ...
_IDENTIFIER = re.compile(
    r"(?:^|_)(?:id|ids|key|keys|number|no|code|sku|ref|reference|email|uuid|guid|name|identifier|slug)$"
)
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


@dataclass(frozen=True, slots=True)
class Hold:
    """One unresolved failure: the failed call, what it came to, and how often it was tried again.

    `looked_for` tells that it failed because something was not found; then the identifier may be what
    was wrong. `series` holds the arguments of the tool's last success before the failure.
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


def is_identifier(name: str) -> bool:
    """Whether an argument of this name says which entity is meant."""
    return _IDENTIFIER.search(_CAMEL.sub("_", name).lower()) is not None


def identifiers(args: Mapping[str, object]) -> frozenset[str]:
    """The values that say which entity a call is about."""
    return frozenset(
        str(value)
        for name, value in args.items()
        if isinstance(value, (str, int)) and not isinstance(value, bool) and value != "" and is_identifier(name)
    )


def is_retry(hold: Hold, call: ToolCall) -> bool:
    """Whether a call tries a failed one again: the same tool with at most one argument changed.

    After "not found" the changed argument may be the identifier, unless the call is the next item of a
    series; after a rejection the call must be about the same entity.
    """
    if hold.tool != call.name:
        return False
    names = changed(hold.args, call.args)
    if len(names) != 1:
        return not names
    name = names[0]
    if hold.series is not None and changed(hold.series, hold.args) == [name]:
        # The tool walks along this argument: another value is the next item, unless it is a slip mended.
        return is_slip(hold.args.get(name), call.args.get(name))
    return hold.looked_for or hold.outcome != "rejected" or _is_same_entity(call.args, but=name)


def _is_same_entity(args: Mapping[str, object], *, but: str) -> bool:
    """Whether a call is about the same entity although this argument changed.

    It is when the argument identifies nothing, or when others that identify something stayed: another article
    for the same order of the same customer.
    """
    return not is_identifier(but) or bool(identifiers({n: value for n, value in args.items() if n != but}))


def resolves(hold: Hold, call: ToolCall, effect: Effect) -> bool:
    """Whether a call that came out well resolves a hold: its retry, or a read that finds the same entity."""
    if hold.outcome == "in_doubt":
        return False  # another success says nothing about whether the write happened
    if is_retry(hold, call):
        return True
    return effect == "read" and not identifiers(hold.args).isdisjoint(identifiers(call.args))


def changed(one: Mapping[str, object], other: Mapping[str, object]) -> list[str]:
    """The names of the arguments that differ."""
    return [name for name in one.keys() | other.keys() if not _same(one.get(name), other.get(name))]


def _same(one: object, other: object) -> bool:
    try:
        return one is other or bool(one == other)
    except Exception:  # noqa: BLE001 - any object's own __eq__ may raise (arrays do); then it is not known to be equal
        return False


def is_slip(one: object, other: object) -> bool:
    """Whether two identifiers are one typing slip apart: one character more, less, other, or two swapped."""
    a, b = str(one), str(other)
    if abs(len(a) - len(b)) > 1:
        return False
    at = next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
    a, b = a[at:], b[at:]
    return a[1:] == b[1:] or a[1:] == b or a == b[1:] or (a[:2] == b[1::-1] and a[2:] == b[2:])
