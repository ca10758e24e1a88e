"""The tool calls of a loop over messages, made and answered under a guard."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias, cast

from anthropic.types import Message, ToolUseBlock
from anthropic.types.beta import BetaMessage, BetaToolUseBlock

from guardrail.run.adapter import Runs
from guardrail.run.batches import Asked, Batches, Tell, as_text

Answer: TypeAlias = Message | BetaMessage | Mapping[str, Any]
"""What the model answered: a message, also as a dict."""


class ToolCalls:
    """Makes the tool calls that a model asks for: `ToolCalls(guard, {"lookup_order": lookup_order, ...})`.

    `runs` is a guard, whose open run each call then belongs to, or one run. `content` makes what the model is told out
    of a tool's result; as it is left, a text stays one and anything else becomes JSON. A member of a toolset has its
    name with that of the toolset before it, "browser.navigate". What Anthropic runs itself (web search, code, hosted
    MCP servers) cannot be guarded.
    """

    def __init__(
        self, runs: Runs, tools: Mapping[str, Callable[..., Any]], *, content: Callable[[Any], Any] = as_text
    ) -> None:
        self._batches = Batches(runs, tools, content)

    def gate(self) -> None:
        """Before each request to the model: raise `RunHalted` if the run is over."""
        self._batches.gate()

    def make(self, answer: Answer, messages: list[Any]) -> bool:
        """Make the calls of the model's answer one after another and append a message of their results to `messages`.

        Returns whether there were any. Raises `RunHalted` if the guard stops the run; each call has its result then,
        too. Raises `RunNotOpen`, and `TypeError` for what is no answer.
        """
        whole = _whole(answer)
        asked = _asked(whole)
        self._batches.make(asked, _teller(whole, messages))
        return bool(asked)

    async def amake(self, answer: Answer, messages: list[Any]) -> bool:
        """The same by awaiting; tools may be asynchronous then."""
        whole = _whole(answer)
        asked = _asked(whole)
        await self._batches.amake(asked, _teller(whole, messages))
        return bool(asked)


def _whole(answer: Answer) -> Message | BetaMessage:
    if isinstance(answer, Message | BetaMessage):
        return answer
    if isinstance(answer, Mapping) and isinstance(answer.get("content"), list):
        return BetaMessage.construct(**answer)
    raise TypeError(f"the model's answer is a Message, or one as a dict, and not {type(answer).__name__}")


def _asked(answer: Message | BetaMessage) -> list[Asked]:
    blocks = [block for block in answer.content if block.type == "tool_use"]
    return [Asked(block.id, name_of(block), _arguments(block.input)) for block in blocks]


def _arguments(given: object) -> Mapping[str, object] | str:
    return cast("Mapping[str, object]", given) if isinstance(given, dict) else as_text(given)


def _teller(answer: Message | BetaMessage, messages: list[Any]) -> Tell:
    """Appends the result of a call to one message for all of them, which the first result begins."""
    toolsets = {block.id: toolset_of(block) for block in answer.content if block.type == "tool_use"}
    results: list[dict[str, Any]] = []

    def tell(asked: Asked, content: Any, failed: bool) -> None:
        if not results:
            messages.append({"role": "user", "content": results})
        result = {"type": "tool_result", "tool_use_id": asked.id, "content": content}
        toolset = toolsets[asked.id]
        results.append(
            result
            | ({} if toolset is None else {"toolset_name": toolset})  # which the API wants back
            | ({"is_error": True} if failed else {})
        )

    return tell


def toolset_of(block: ToolUseBlock | BetaToolUseBlock) -> str | None:
    """The toolset that a call's tool is a member of, where the version of the client knows them."""
    return getattr(block, "toolset_name", None)


def name_of(block: ToolUseBlock | BetaToolUseBlock) -> str:
    """The name of a call's tool. Members of toolsets may be named like another tool, so that of the toolset is added."""
    toolset = toolset_of(block)
    return block.name if toolset is None else f"{toolset}.{block.name}"
