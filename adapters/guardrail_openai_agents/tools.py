"""The tools of an agent that run here: functions, of which the SDK makes MCP servers' tools, too; custom tools; shells."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Awaitable, Callable, Mapping
from contextvars import ContextVar
from copy import copy
from typing import Any, NamedTuple, cast

from agents import FunctionTool, ModelBehaviorError, Tool
from agents.mcp import MCPServer
from agents.tool import CustomTool, LocalShellTool, ShellTool

from guardrail.calls import Refused, ToolCall, Unmade
from guardrail.errors import GuardrailError
from guardrail.run.adapter import Adapter
from guardrail.run.batches import arguments


class Native(NamedTuple):
    """A call, as an executor of the SDK is given it."""

    name: str
    args: Mapping[str, object]
    id: str | None


class Tools(Adapter[Native]):
    """Guards tools. `RunHalted` passes through the SDK's runs, which cancel what runs beside."""

    def describe(self, native: Native) -> ToolCall:
        return ToolCall(*native)

    def refuse(self, native: Native, refused: Refused) -> str:
        return refused.text

    def guarded(self, tool: Tool) -> Tool:
        """The tool, guarded. What OpenAI runs itself stays as it is, and so do drivers of computers and editors."""
        if isinstance(tool, FunctionTool):
            return self._function(tool)
        if isinstance(tool, ShellTool | LocalShellTool) and tool.executor is not None:
            describe = functools.partial(_commands, tool.name)
            return dataclasses.replace(tool, executor=self._executor(tool.executor, describe))
        if isinstance(tool, CustomTool):
            describe = functools.partial(_text, tool.name)
            return dataclasses.replace(tool, on_invoke_tool=self._executor(tool.on_invoke_tool, describe))
        return tool

    def _function(self, tool: FunctionTool) -> FunctionTool:
        """The function, guarded within what the SDK puts around it, which makes texts for the model of its errors."""
        invoker: Any = tool.on_invoke_tool
        own = getattr(invoker, _OWN, invoker)
        by, own = getattr(own, _GUARDED, (None, own))
        if by is self:  # the SDK asks for the tools before each request
            return tool
        made = copy(tool)
        if hasattr(invoker, _OWN):
            made.on_invoke_tool = copy(made.on_invoke_tool)
            setattr(made.on_invoke_tool, _OWN, self._invoke(tool.name, own))
        else:
            made.on_invoke_tool = self._invoke(tool.name, own)
        return made

    def _invoke(self, name: str, invoke: Invoke) -> Invoke:
        """A function's call, guarded. One of an MCP server is judged by what the server answered."""
        misfit = f"Invalid JSON input for tool {name}"

        @functools.wraps(invoke)
        async def guarded(context: Any, text: str) -> object:
            outputs: list[object] = []
            heard: list[object] = []

            async def execute() -> object:
                token = _heard.set(heard)
                try:
                    outputs.append(await invoke(context, text))
                except ModelBehaviorError as error:
                    if not str(error).startswith(misfit):
                        raise
                    return Unmade(error)
                finally:
                    _heard.reset(token)
                return heard[-1] if heard else outputs[0]

            args = arguments(text)
            native = Native(name, {"arguments": args} if isinstance(args, str) else args, _id(context))
            answer = await self.acall(native, execute)
            if isinstance(answer, ModelBehaviorError):
                raise answer
            return outputs[0] if outputs else answer

        setattr(guarded, _GUARDED, (self, invoke))
        return guarded

    def _executor(self, execute: Callable[..., Any], describe: Callable[..., Native]) -> Callable[..., Any]:
        by, own = getattr(execute, _GUARDED, (None, execute))
        if by is self:
            return execute

        @functools.wraps(own)
        async def guarded(*given: Any) -> object:
            return await self.acall(describe(*given), functools.partial(own, *given))

        setattr(guarded, _GUARDED, (self, own))
        return guarded


Invoke = Callable[[Any, str], Awaitable[Any]]

_OWN = "_invoke_tool_impl"
"""Where an invoker that the SDK makes keeps the tool's own; it has no public hook between the two."""

_GUARDED = "__guardrail_openai_agents__"
"""Where what is guarded keeps by what it is, and what it guards: a tool is not guarded twice."""

_heard: ContextVar[list[object]] = ContextVar("guardrail.openai_agents.heard")
"""What MCP servers have answered within a tool's call."""


class Heard:
    """An MCP server whose answers are heard as they are: the SDK keeps their content, and not whether they are errors."""

    def __init__(self, server: MCPServer) -> None:
        attempts = getattr(server, "max_retry_attempts", 0)
        if attempts:
            raise GuardrailError(
                f"the MCP server {server.name} repeats calls by itself (max_retry_attempts={attempts}): a write that may "
                "have happened would be made again, and the guard see one call. Make it without, and let the model retry"
            )
        self._server = server

    def __getattr__(self, name: str) -> Any:
        return getattr(self._server, name)

    async def call_tool(self, *args: Any, **options: Any) -> Any:
        """Call a tool of the server."""
        result: object = await self._server.call_tool(*args, **options)
        heard = _heard.get(None)
        if heard is not None:
            heard.append(result)
        return result


def _id(context: Any) -> str | None:
    return cast("str | None", getattr(context, "tool_call_id", None))


def _text(name: str, context: Any, text: str) -> Native:
    return Native(name, {"input": text}, _id(context))


def _commands(name: str, request: Any) -> Native:
    action = request.data.action
    return Native(name, {"commands": getattr(action, "commands", None) or action.command}, request.data.call_id)
