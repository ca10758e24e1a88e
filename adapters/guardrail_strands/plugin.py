"""Strands' agents, guarded by a plugin: its hooks give each call a tool that is guarded, and hold the model back.

Nothing is raised to stop an agent: its executor of tools turns an `Exception` into a text for the model, and loses a
`BaseException` together with the result of the call. The agent is cancelled instead, which is its own way to end.
"""

from __future__ import annotations

import asyncio
import copy
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any, TypeAlias

from pydantic import ValidationError
from strands import Agent
from strands.hooks import AfterToolCallEvent, BeforeModelCallEvent, BeforeToolCallEvent
from strands.interrupt import InterruptException
from strands.plugins import Plugin
from strands.types._events import ToolInterruptEvent, ToolResultEvent
from strands.types.tools import AgentTool, ToolUse

from guardrail.calls import Halted, Refused, ToolCall, Unmade
from guardrail.errors import FINAL, RunNotOpen
from guardrail.run.adapter import Adapter, Runs

Stream: TypeAlias = AsyncGenerator[Any, None]

STEERING = ("strands.multiagent.", "strands.tools.structured_output.")
"""Where Strands' own tools come from by which a model steers agents (a handover, a structured answer). They do nothing
outside, so they are no tool calls of the run."""


class GuardrailPlugin(Plugin):
    """Guards the tool calls of an agent: `Agent(model, tools=tools, plugins=[GuardrailPlugin(guard)])`.

    `runs` is a guard, whose open run each call then belongs to, or one run. Put it last. After a stop no tool is called
    and the model is not asked: the agent ends with the reason "cancelled", and `RunStopped` leaves `guard.run()`.
    """

    name = "guardrail"

    def __init__(self, runs: Runs) -> None:
        super().__init__()
        self._calls = _Calls(runs)

    def init_agent(self, agent: Agent) -> None:
        """Put the guard into an agent."""
        agent.add_hook(self._before_tool, BeforeToolCallEvent)
        agent.add_hook(self._after_tool, AfterToolCallEvent)
        agent.add_hook(self._before_model, BeforeModelCallEvent)

    def _before_tool(self, event: BeforeToolCallEvent) -> None:
        """Give the call a tool that is guarded; there is none for a name that the model made up."""
        tool = event.selected_tool
        if tool is not None and not str(tool.__module__).startswith(STEERING):
            event.selected_tool = _guarded(self._calls, tool, event.agent)

    def _after_tool(self, event: AfterToolCallEvent) -> None:
        """See to it that a call outside of a run is told to the program, whose mistake it is, and not to the model."""
        if isinstance(event.exception, RunNotOpen):
            raise event.exception

    def _before_model(self, event: BeforeModelCallEvent) -> None:
        """Let the model be asked, unless the run is over."""
        if self._calls.stop is not None:
            event.cancel = FINAL


class _Native:
    """A call as Strands has it: a stream of events, the last of which is the result."""

    def __init__(self, agent: Any, use: ToolUse, stream: Stream) -> None:
        self.agent = agent
        self.use = use
        self.progress = asyncio.Queue[Any]()
        self.passed = asyncio.Event()
        self.result: ToolResultEvent | None = None
        self._stream = stream

    async def execute(self) -> object:
        """Let the tool run, and give what it came to as the guard judges it."""
        last: object = None
        async with aclosing(self._stream) as events:
            try:
                async for last in events:
                    if isinstance(last, ToolResultEvent):
                        self.result = last
                        return _judged(last)
                    if isinstance(last, ToolInterruptEvent):
                        return Unmade(last)
                    self.progress.put_nowait(last)
                    await self.passed.wait()
                    self.passed.clear()
            except InterruptException as asking:
                return Unmade(asking)
        return last

    def told(self, made: asyncio.Task[Any]) -> object:
        """What the agent is told in the end: the guard's word, that a person is to be asked, or the tool's own result."""
        error = made.exception()
        if error is not None and (self.result is None or error is not self.result.exception):
            raise error
        said = None if error is not None else made.result()
        if isinstance(said, InterruptException):
            raise said
        return said if isinstance(said, ToolResultEvent | ToolInterruptEvent) else self.result


class _Calls(Adapter[_Native]):
    def describe(self, native: _Native) -> ToolCall:
        return ToolCall(native.use["name"], native.use["input"], native.use["toolUseId"])

    def halt(self, native: _Native, halted: Halted) -> ToolResultEvent:
        native.agent.cancel()
        return _failed(native, FINAL)

    def refuse(self, native: _Native, refused: Refused) -> ToolResultEvent:
        return _failed(native, refused.text)


def _guarded(calls: _Calls, tool: AgentTool, agent: Any) -> AgentTool:
    """A tool with the guard around its `stream`; what the tool keeps for itself, it keeps."""
    guarded = copy.copy(tool)

    async def stream(tool_use: ToolUse, invocation_state: dict[str, Any], **options: Any) -> Stream:
        native = _Native(agent, tool_use, tool.stream(tool_use, invocation_state, **options))
        made = asyncio.create_task(calls.acall(native, native.execute))
        made.add_done_callback(lambda _: native.progress.put_nowait(native))
        try:
            while (event := await native.progress.get()) is not native:
                yield event
                native.passed.set()
            told = native.told(made)
            if told is not None:
                yield told
        finally:
            if not made.done():
                made.cancel()
                await asyncio.wait([made])

    vars(guarded)["stream"] = stream
    return guarded


def _failed(native: _Native, text: str) -> ToolResultEvent:
    return ToolResultEvent({"toolUseId": native.use["toolUseId"], "status": "error", "content": [{"text": text}]})


def _judged(event: ToolResultEvent) -> object:
    """A result as it is judged. Raises the tool's error, which a decorated tool has made a result of."""
    error = event.exception
    if error is None:
        return {**event.tool_result, "isError": event.tool_result["status"] == "error"}
    if isinstance(error.__cause__, ValidationError) and str(error).startswith("Validation failed for input parameters"):
        return Unmade(event)
    raise error
