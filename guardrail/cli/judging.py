"""A result judged by hand: the outcome, and what the policy does about it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from guardrail.calls import Action, Effect, Judgement, Returned, ToolCall
from guardrail.declare.faults import suggestion
from guardrail.declare.patterns import matches

if TYPE_CHECKING:
    from guardrail.call.tools import LiveTool
    from guardrail.run.live import Live


@dataclass(frozen=True, slots=True)
class Judged:
    """What a result came to, as that of a call of `tool` with this effect, at the beginning of a run."""

    tool: str
    effect: Effect
    judgement: Judgement
    action: Action


def judged(made: Live, name: str, text: str, *, effect: Effect | None, otherwise: Effect = "unknown") -> Judged:
    """Judge a result that is given as text: as JSON if it is that, unless the tool is declared to return text.

    The call's effect is `effect`, else what is declared of the tool, else `otherwise`.
    """
    from guardrail.decide.rules import consequence
    from guardrail.judge.result import judge

    tool = made.tool(name)
    known = effect or _declared(tool) or otherwise
    judgement = judge(Returned(text if tool.results.returns == "text" else _parsed(text)), known, tool.results)
    decided = consequence(1, ToolCall(name, {}), known, judgement, actions=tool.actions, holds=())
    return Judged(name, known, judgement, decided.action)


def undeclared(made: Live, name: str) -> str:
    """What to know of a tool of which nothing is declared; empty for one that is declared, or where none is."""
    tools = made.configuration.tools
    if not tools or any(matches(entry, name) for entry in tools):
        return ""
    advice = suggestion(name, tools, "declared are")
    return f"no tool {name} is declared{f' ({advice})' if advice else ''}"


def cut_off(text: str) -> str:
    """What to know of a text that begins as JSON does and is none; empty for any other."""
    if not text.startswith(("{", "[")) or not isinstance(_parsed(text), str):
        return ""
    return "it begins like JSON and is none (cut off?): read as text"


def _declared(tool: LiveTool) -> Effect | None:
    """The effect that is declared; None where there is none, or where the arguments decide."""
    effect = tool.effect({})
    return None if effect == "unknown" else effect


def _parsed(text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):  # no JSON, or nested deeper than Python reads
        return text
