"""Hints: what whoever offers a tool says about it, and how far that is believed."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import cast

from guardrail.calls import Effect, Hints
from guardrail.declare.tools import Tool


def hints_of(annotations: object, server: str | None) -> Hints | None:
    """The hints in the annotations that the MCP server `server` gives a tool; None: they say nothing of use here.

    Takes a mapping as it is on the wire or an SDK's object, in either spelling (`readOnlyHint`,
    `read_only_hint`). What is not said is no hint, whatever MCP's default for it is; only true and false say
    anything. `destructiveHint: false` alone does not say that the tool writes, or that it does not.
    """
    reads = _said(annotations, "read_only_hint", "readOnlyHint")
    destroys = _said(annotations, "destructive_hint", "destructiveHint")
    repeats = _said(annotations, "idempotent_hint", "idempotentHint")
    effect: Effect | None = None
    if reads:  # and then, by MCP, the other two mean nothing
        effect, repeats = "read", None
    elif reads is False or destroys:
        effect = "write"
    return Hints(effect, bool(repeats), server) if effect or repeats else None


def _said(annotations: object, *names: str) -> bool | None:
    """What is said under the first of the names that is there (FastMCP warns of the other); None: nothing."""
    for name in names:
        if isinstance(annotations, Mapping):
            value = cast("Mapping[object, object]", annotations).get(name, _ABSENT)
        else:
            value = getattr(annotations, name, _ABSENT)
        if value is not _ABSENT:
            return value if isinstance(value, bool) else None
    return None


_ABSENT = object()


def is_trusted(hints: Hints, servers: Collection[str]) -> bool:
    """Whether hints are believed also where they make things easier; `servers` are those that are trusted."""
    return hints.server is None or hints.server in servers


def tells_effect(hints: Hints | None, servers: Collection[str]) -> bool:
    """Whether somebody who is trusted says what the tool does."""
    return hints is not None and hints.effect in ("read", "write") and is_trusted(hints, servers)


def hinted(tool: Tool, hints: Hints, *, trusted: bool) -> Tool:
    """The declaration of a tool; where it leaves the effect open (and no statement decides it), with what the hints say.

    Anybody may say that a tool writes. That it only reads, or that a repeat is harmless, counts only of somebody who
    is trusted.
    """
    if tool.effect is not None or tool.sql is not None:
        return tool
    said: dict[str, object] = {}
    if hints.effect == "write" or (trusted and hints.effect == "read"):
        said["effect"] = hints.effect
    if trusted and hints.idempotent and "idempotent" not in tool.model_fields_set:
        said["idempotent"] = True
    return tool.model_copy(update=said)
