"""LlamaIndex's agents and workflows of agents, guarded in the step that calls a tool and in the one that asks the model."""

from __future__ import annotations

import inspect
import types
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache, partial
from typing import Any, TypeVar

from llama_index.core.agent.workflow import AgentOutput, AgentWorkflow, ToolCallResult
from llama_index.core.agent.workflow import ToolCall as ToolCallEvent
from llama_index.core.agent.workflow.base_agent import BaseWorkflowAgent
from llama_index.core.tools import AsyncBaseTool, FunctionTool, ToolOutput
from llama_index.core.workflow import Context, WorkflowRuntimeError, step

from guardrail.calls import Refused, ToolCall, Unmade
from guardrail.errors import RunHalted
from guardrail.run.adapter import Adapter, Runs

W = TypeVar("W", BaseWorkflowAgent, AgentWorkflow)

_asked: ContextVar[ToolCallEvent | None] = ContextVar("guardrail_llama_index_asked", default=None)
"""What the model asked for; the method that calls the tool is not told its id."""


def guarded(agent: W, runs: Runs) -> W:
    """Guard the tool calls of an agent, or of all agents of a workflow, and give it back: it is the same object, changed.

    `runs` is a guard, whose open run each call then belongs to, or one run. A stop ends
    the agent's run with a `WorkflowRuntimeError`, and no model is asked again; `RunStopped` leaves `guard.run()`.
    """
    calls = _Calls(runs)
    agents: list[Any] = [agent, *agent.agents.values()] if isinstance(agent, AgentWorkflow) else [agent]
    for one in agents:
        kind: Any = type(one)
        if not issubclass(kind, _Guarded):
            one.__class__ = _guarded(kind)
        one._guardrail = calls
    return agent


class _Call:
    """A call as the framework has it, and what came of it: an output, in which a tool's error is kept, or a pause."""

    __slots__ = ("args", "id", "name", "output", "pause")

    def __init__(self, name: str, args: Mapping[str, object], id: str | None) -> None:
        self.name, self.args, self.id = name, args, id
        self.output: ToolOutput | None = None
        self.pause: Exception | None = None


class _Calls(Adapter[_Call]):
    def describe(self, native: _Call) -> ToolCall:
        return ToolCall(native.name, native.args, native.id)

    def refuse(self, native: _Call, refused: Refused) -> None:
        native.output = ToolOutput(
            content=refused.text, tool_name=native.name, raw_input=dict(native.args), raw_output=None, is_error=True
        )


class _Guarded:
    """What a guarded agent does in its own way."""

    _guardrail: _Calls

    @step
    async def call_tool(self, ctx: Context, ev: ToolCallEvent) -> ToolCallResult:
        """Call the tool that the model asked for."""
        _asked.set(ev)
        return await super().call_tool(ctx, ev)  # type: ignore[misc,no-any-return]

    async def _call_tool(self, ctx: Context, tool: AsyncBaseTool, tool_input: dict[str, Any]) -> ToolOutput:
        execute = partial(super()._call_tool, ctx, tool, tool_input)  # type: ignore[misc]
        name = tool.metadata.get_name()
        if name == "handoff":  # a reserved name: it changes which agent goes on, and nothing else
            return await execute()  # type: ignore[no-any-return]
        asked = _asked.get()
        call = _Call(name, tool_input, None if asked is None else asked.tool_id)
        try:
            with _ended():
                await self._guardrail.acall(call, partial(_made, call, tool, execute))
        except Exception as error:
            if call.output is None or error is not call.output.exception:
                raise
        if call.pause is not None:
            raise call.pause
        assert call.output is not None
        return call.output

    async def take_step(self, *args: Any, **kwargs: Any) -> AgentOutput:
        """Ask the model, unless the run is over."""
        with _ended():
            self._guardrail.gate()
        return await super().take_step(*args, **kwargs)  # type: ignore[misc,no-any-return]


@contextmanager
def _ended() -> Iterator[None]:
    """A stop as the framework's own error: a BaseException would leave whoever reads an agent's events waiting for ever."""
    try:
        yield
    except RunHalted as halted:
        raise WorkflowRuntimeError(str(halted)) from halted


@cache
def _guarded(kind: Callable[..., Any]) -> Any:
    """The guarded kind of agent; checkpoints and traces know it by the name of its own."""
    named = {"__module__": kind.__module__, "__qualname__": kind.__qualname__}
    return types.new_class(kind.__name__, (_Guarded, kind), exec_body=lambda body: body.update(named))


async def _made(call: _Call, tool: AsyncBaseTool, execute: Callable[[], Awaitable[ToolOutput]]) -> object:
    """What the tool itself returned, or its own error."""
    try:
        call.output = output = await execute()
    except Exception as pause:  # noqa: BLE001 - the tool waits for an event, and is called anew when that has come
        call.pause = pause
        return Unmade(None)
    error = output.exception
    if error is None:
        return output if output.is_error else output.raw_output
    if isinstance(error, TypeError) and isinstance(tool, FunctionTool) and not _fits(tool, call.args):
        return Unmade(None)
    raise error


def _fits(tool: FunctionTool, args: Mapping[str, object]) -> bool:
    """Whether the arguments fit the function, to which the framework adds some of its own."""
    try:
        inspect.signature(tool.real_fn).bind_partial(**args)
    except TypeError:
        return False
    return args.keys() >= set(tool.metadata.get_parameters_dict().get("required", ()))
