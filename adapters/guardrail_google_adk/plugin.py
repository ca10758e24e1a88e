"""Every agent of an ADK runner, guarded by a plugin: the tools' own `run_async` is what is guarded.

ADK calls tools in several places (a model's turn, after a confirmation or a login, live sessions, nodes of a workflow).
What is common to them is that a plugin is shown the tool, and then the tool's `run_async` is called with the same
context. Between the two lie the callbacks of others and the gate of confirmations, which go on as they do.
"""

from __future__ import annotations

from functools import partial
from types import MethodType
from typing import Any
from weakref import WeakKeyDictionary

from google.adk.agents.callback_context import CallbackContext
from google.adk.models.llm_request import LlmRequest
from google.adk.plugins.base_plugin import BasePlugin
from google.adk.tools.base_tool import BaseTool
from google.adk.tools.tool_context import ToolContext

from guardrail.calls import Refused, ToolCall, Unmade
from guardrail.run.adapter import Adapter, Runs

STEERING = frozenset({"exit_loop", "finish_task", "set_model_response", "transfer_to_agent"})
"""ADK's own tools by which a model steers agents. They do nothing outside, so they are no tool calls of the run."""


class GuardrailPlugin(BasePlugin):
    """Guards the tool calls of all agents of a runner: `App(..., plugins=[GuardrailPlugin(guard)])`.

    `runs` is a guard, whose open run each call then belongs to, or one run. After a stop no tool is called and no model
    is asked; `RunStopped` leaves `guard.run()`.
    """

    def __init__(self, runs: Runs, name: str = "guardrail") -> None:
        super().__init__(name)
        self._calls = _Calls(runs)

    async def before_tool_callback(
        self, *, tool: BaseTool, tool_args: dict[str, Any], tool_context: ToolContext
    ) -> dict[str, Any] | None:
        """See to it that this call is guarded, once the tool is run."""
        if _acts(tool):
            _SHOWN[tool_context] = (tool, self._calls)
            _take_over(tool)
        return None

    async def before_model_callback(self, *, callback_context: CallbackContext, llm_request: LlmRequest) -> None:
        """Let the model be asked, unless the run is over."""
        self._calls.gate()


class _Native:
    """A call as ADK has it."""

    __slots__ = ("args", "context", "tool")

    def __init__(self, tool: BaseTool, args: dict[str, Any], context: ToolContext) -> None:
        self.tool = tool
        self.args = args
        self.context = context


class _Calls(Adapter[_Native]):
    """`RunHalted` passes through runners; those beside the call are cancelled. `Runner.run` wraps it."""

    def describe(self, native: _Native) -> ToolCall:
        return ToolCall(native.tool.name, native.args, native.context.function_call_id)

    def refuse(self, native: _Native, refused: Refused) -> dict[str, str]:
        return {"error": refused.text}


_SHOWN: WeakKeyDictionary[ToolContext, tuple[BaseTool, _Calls]] = WeakKeyDictionary()
"""The calls that a plugin was shown, by their contexts. The same tool may be used elsewhere, without a plugin."""

_NOT_SHOWN: tuple[None, None] = (None, None)


class _Takeover:
    """A tool's `run_async`, guarded where a plugin was shown the call."""

    def __init__(self, tool: BaseTool, run: Any) -> None:
        self.tool = tool
        self._run = run

    async def __call__(self, *, args: dict[str, Any], tool_context: ToolContext) -> Any:
        run = partial(self._run, args=args, tool_context=tool_context)
        shown, calls = _SHOWN.get(tool_context, _NOT_SHOWN)
        if calls is None or shown is not self.tool:
            return await run()
        native = _Native(self.tool, args, tool_context)
        return await calls.acall(native, partial(_made, native, run))


def _take_over(tool: BaseTool) -> None:
    """Put the guard before the tool's `run_async`; a copy of a tool that has it gets one of its own."""
    run = tool.run_async
    if isinstance(run, _Takeover):
        if run.tool is tool:
            return
        run = MethodType(type(tool).run_async, tool)
    vars(tool)["run_async"] = _Takeover(tool, run)


def _acts(tool: BaseTool) -> bool:
    """Whether a tool may do something, and does not only steer agents."""
    source = getattr(tool, "func", None) or type(tool)
    return tool.name not in STEERING or not str(source.__module__).startswith("google.adk.")


async def _made(native: _Native, run: Any) -> object:
    result = await run()
    return Unmade(result) if _is_answered(native, result) else result


def _is_answered(native: _Native, result: object) -> bool:
    """Whether the result came in the tool's place: its arguments do not fit, or the user is asked first, or said no."""
    call, actions, confirmation = (
        native.context.function_call_id,
        native.context.actions,
        native.context.tool_confirmation,
    )
    if call in actions.requested_tool_confirmations or call in actions.requested_auth_configs:
        return True
    if confirmation is not None and not confirmation.confirmed:
        return True
    said = result.get("error") if isinstance(result, dict) else None
    return isinstance(said, str) and said.startswith(f"Invoking `{native.tool.name}()` failed ")
