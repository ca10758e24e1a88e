"""The calls of one agent of CrewAI, and what they come to."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from contextlib import suppress
from threading import Lock
from typing import Any
from weakref import WeakKeyDictionary

from crewai.tools import BaseTool
from crewai.tools.tool_failure import ToolFailure, ToolFailureReason
from crewai.utilities.agent_utils import extract_tool_call_info, parse_tool_call_args
from crewai.utilities.string_utils import sanitize_tool_name
from pydantic import ValidationError

from guardrail.calls import Refused, ToolCall, Unmade
from guardrail.errors import RunNotOpen
from guardrail.run.adapter import Adapter, Runs
from guardrail.run.standing import Standing


class NotCarriedOut(ToolFailure):
    """What the guard refused: the framework tells it to the model, and does not keep it as the call's result."""


class Call:
    """A call of a tool: as the model asked for it, and what the framework is told."""

    __slots__ = ("args", "asked", "id", "name", "result", "said", "unfit")

    def __init__(self, tool: BaseTool, args: tuple[Any, ...], options: dict[str, Any]) -> None:
        self.said = f"Tool '{tool.name}' "  # how the framework begins, where it answers instead of the tool
        self.asked = sanitize_tool_name(tool.name)
        self.name: str = getattr(tool, "original_tool_name", self.asked)  # on its MCP server
        self.args: dict[str, Any] = {**dict(zip(tool.args_schema.model_fields, args, strict=False)), **options}
        self.id: str | None = None
        self.result: object = None
        self.unfit: ValueError | None = None

    def execute(self, run: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any]) -> object:
        """Let the tool run, and give what it came to as it is judged."""
        try:
            result = run(*args, **options)
            return self._judged(asyncio.run(result) if inspect.iscoroutine(result) else result)
        except ValueError as error:
            return self._unfit(error)

    async def aexecute(
        self, run: Callable[..., Awaitable[Any]], args: tuple[Any, ...], options: dict[str, Any]
    ) -> object:
        """The same by awaiting."""
        try:
            return self._judged(await run(*args, **options))
        except ValueError as error:
            return self._unfit(error)

    def told(self, answer: object) -> object:
        """What the framework is told: the guard's word, or what the tool came to. Raises what did not fit."""
        if self.unfit is not None:
            raise self.unfit
        return answer if isinstance(answer, NotCarriedOut) else self.result

    def _judged(self, result: object) -> object:
        self.result = result
        if not isinstance(result, ToolFailure):
            return result
        if result.reason is ToolFailureReason.USAGE_LIMIT and result.message.startswith(self.said):
            return Unmade(result)
        return {"error": result.as_agent_message()}

    def _unfit(self, error: ValueError) -> Unmade:
        """Tell that the arguments do not fit. Raises the error where it is the tool's own."""
        if not (isinstance(error.__cause__, ValidationError) and str(error).startswith(self.said)):
            raise error
        self.unfit = error
        return Unmade(error)


class Calls(Adapter[Call]):
    """The calls of one agent. `RunHalted` passes through crews, agents and flows."""

    def __init__(self, runs: Runs) -> None:
        super().__init__(runs)
        self._asked = WeakKeyDictionary[Standing, list[tuple[str, Any, str]]]()
        self._taking = Lock()
        self.kinds: dict[Any, Any] = {}

    def describe(self, native: Call) -> ToolCall:
        return ToolCall(native.name, native.args, native.id)

    def refuse(self, native: Call, refused: Refused) -> NotCarriedOut:
        return NotCarriedOut(message=refused.text, retryable=True)

    def note(self, answer: list[object]) -> None:
        """Note which calls a model's answer asks for."""
        found = [info for call in answer if (info := extract_tool_call_info(call)) is not None]
        asked = [(name, parse_tool_call_args(args, name, id)[0], id) for id, name, args in found]
        with self._taking, suppress(RunNotOpen):
            self._asked[self._runs.standing] = asked

    def identify(self, call: Call) -> Call:
        """Take the call out of those that were asked for: the framework hands no id to a tool."""
        with self._taking, suppress(RunNotOpen):
            asked = self._asked.get(self._runs.standing, [])
            found = next((one for one in asked if one[:2] == (call.asked, call.args)), None)
            if found is not None:
                asked.remove(found)
                call.id = found[2]
        return call
