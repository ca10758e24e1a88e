"""Pydantic AI's tools, guarded where their toolset calls them: below what other capabilities make of a call."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

from pydantic_ai import RunContext, ToolFailed
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.exceptions import ApprovalRequired, CallDeferred
from pydantic_ai.models import ModelRequestContext
from pydantic_ai.tools import ToolDefinition
from pydantic_ai.toolsets import AbstractToolset, ToolsetTool, WrapperToolset
from pydantic_core import to_jsonable_python

from guardrail.call.hints import hints_of
from guardrail.calls import Hints, Refused, ToolCall, Unmade
from guardrail.run.adapter import Adapter, Runs


class _Native(NamedTuple):
    name: str
    args: dict[str, Any]
    id: str | None
    tool: ToolDefinition


class _Calls(Adapter[_Native]):
    """A call is what the framework asks of a toolset. `RunHalted` leaves an agent's run as it is, and cancels its siblings.

    The arguments are those that the tool gets, as JSON: the model's, as they were understood, approved or changed.
    """

    def describe(self, native: _Native) -> ToolCall:
        args = {name: _plain(value) for name, value in native.args.items()}
        return ToolCall(native.name, args, native.id, _hints(native.tool))

    def refuse(self, native: _Native, refused: Refused) -> Any:
        raise ToolFailed(refused.text)


@dataclass
class GuardrailToolset(WrapperToolset[Any]):
    """A toolset whose calls are guarded: `GuardrailToolset(toolset, guard)`, or a run instead of the guard.

    Before each request to the model an agent asks its toolsets for their tools; after a stop that ends its run.
    """

    runs: Runs

    def __post_init__(self) -> None:
        self._calls = _Calls(self.runs)

    async def get_tools(self, ctx: RunContext[Any]) -> dict[str, ToolsetTool[Any]]:
        """The tools that the model is to be told of, unless the run is over."""
        self._calls.gate()
        return await super().get_tools(ctx)

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[Any], tool: ToolsetTool[Any]
    ) -> Any:
        """Make the call, guarded."""
        native = _Native(name, tool_args, ctx.tool_call_id, tool.tool_def)
        answer = await self._calls.acall(native, partial(_made, super().call_tool, name, tool_args, ctx, tool))
        if isinstance(answer, CallDeferred | ApprovalRequired):
            raise answer
        return answer


class GuardrailCapability(AbstractCapability[Any]):
    """Guards all tools of an agent: `Agent(model, capabilities=[GuardrailCapability(guard)])`, or in `agent.run(...)`.

    `runs` is a guard, whose open run each call then belongs to, or one run. Put it last, so that what other
    capabilities make of a call is guarded too. After a stop the model is not asked again.
    """

    def __init__(self, runs: Runs) -> None:
        self._runs = runs
        self._calls = _Calls(runs)

    def get_wrapper_toolset(self, toolset: AbstractToolset[Any]) -> AbstractToolset[Any] | None:
        """Guard the tools of a run, once."""
        return None if isinstance(toolset, GuardrailToolset) else GuardrailToolset(toolset, self._runs)

    async def before_model_request(
        self, ctx: RunContext[Any], request_context: ModelRequestContext
    ) -> ModelRequestContext:
        """Let the model be asked, unless the run is over."""
        self._calls.gate()
        return request_context


def _plain(value: object) -> object:
    """An argument as JSON; one that can be read only once is the tool's, and one that cannot be written is named."""
    if isinstance(value, Iterator | AsyncIterator):
        return f"<{type(value).__name__}>"
    try:
        return to_jsonable_python(value, serialize_unknown=True, bytes_mode="base64")
    except Exception:  # noqa: BLE001 - a serializer of the user's own may raise anything: the call is made all the same
        return f"<{type(value).__name__}>"


async def _made(call: Any, *args: Any) -> Any:
    try:
        return await call(*args)
    except (ApprovalRequired, CallDeferred) as deferred:  # it is for somebody else to allow it, or to make it
        return Unmade(deferred)


def _hints(tool: ToolDefinition) -> Hints | None:
    """What an MCP server says of its tool; it is trusted under the `id` that its toolset was given."""
    annotations = (tool.metadata or {}).get("annotations")
    return None if annotations is None else hints_of(annotations, tool.toolset_id or "")
