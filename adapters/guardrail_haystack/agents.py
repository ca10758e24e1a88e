"""Haystack's agents, guarded by hooks that put guarded tools in the place of those that a step is about to call."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, partial
from threading import Lock
from types import new_class
from typing import Any, cast

from haystack.components.agents import Agent
from haystack.components.agents.state import State
from haystack.dataclasses import ToolCall as Asked
from haystack.tools.errors import ToolInvocationError
from haystack.tools.tool import Tool

from guardrail.calls import Refused, ToolCall, Unmade
from guardrail.judge.unmade import has_begun
from guardrail.run.adapter import Adapter, Runs


def guarded(agent: Agent, runs: Runs) -> Agent:
    """Guard the tool calls of an agent, and give it back: it is the same object, with hooks after its own.

    All its tools are guarded, also those of toolsets, and those that are given to `agent.run`. `runs` is a guard, whose
    open run each call then belongs to, or one run. A stop leaves the agent as `RunHalted`, and no model is asked again;
    `RunStopped` leaves `guard.run()`.
    """
    calls = _Calls(runs)
    hooks = cast("dict[str, list[Any]]", agent.hooks)
    ours = {"before_llm": calls.before_model, "before_tool": calls.before_tools, "after_tool": _after_tools}
    others = {point: [hook for hook in hooks.get(point, ()) if not isinstance(hook, _Hook)] for point in ours}
    agent.hooks = cast("Any", {**hooks, **{point: [*others[point], _Hook(do)] for point, do in ours.items()}})
    return agent


class _Hook:
    """A hook of the guard's."""

    def __init__(self, do: Callable[[State], None]) -> None:
        self._do = do

    def run(self, state: State) -> None:
        """Do what the guard does at this point of a step."""
        self._do(state)

    def to_dict(self) -> dict[str, Any]:
        """Raise `TypeError`: what is stored would come back without a guard."""
        raise TypeError(
            "a guarded agent cannot be stored: store it as it is without the guard, and guard what is loaded"
        )


class _Call:
    """A call of a tool: as the model asked for it, as the framework calls it, and the error that the framework tells."""

    __slots__ = ("args", "asked", "error", "tool")

    def __init__(self, tool: Tool, asked: Asked, args: dict[str, Any]) -> None:
        self.tool, self.asked, self.args = tool, asked, args
        self.error: ToolInvocationError | None = None


class _Calls(Adapter[_Call]):
    def describe(self, native: _Call) -> ToolCall:
        return ToolCall(native.asked.tool_name, native.asked.arguments, native.asked.id)

    def refuse(self, native: _Call, refused: Refused) -> None:
        native.error = ToolInvocationError(refused.text, tool_name=refused.tool)

    def before_model(self, state: State) -> None:
        """Let the model be asked only while the run is not over."""
        self.gate()

    def before_tools(self, state: State) -> None:
        """Put guarded tools in the place of those that are called: the list is the one that the step looks them up in."""
        messages, tools = state.data["messages"], cast("list[Tool]", state.data["tools"])
        asked: list[Asked] = list(messages[-1].tool_calls) if messages else []
        for place, tool in enumerate(tools):
            if calls := [call for call in asked if call.tool_name == tool.name]:
                tools[place] = _around(tool, self, calls)


def _after_tools(state: State) -> None:
    """Put the tools back. Raises `RuntimeError` if one was called that was not guarded."""
    tools = cast("list[Tool]", state.data["tools"])
    for place, tool in enumerate(tools):
        if isinstance(tool, _Guarded):
            tools[place] = tool.guarded
            if tool.asked:
                raise RuntimeError(
                    f"{tool.guarded.name} was called past the guard: this release of Haystack calls tools in a way that "
                    "guardrail_haystack does not know; use one that it is tested with"
                )


class _Guarded:
    """A tool for one step of an agent; `asked` are the calls that the model asked for and that are still to come."""

    calls: _Calls
    guarded: Tool
    asked: list[Asked]

    def invoke(self, **kwargs: Any) -> Any:
        """Call the tool, guarded."""
        call = _Call(self.guarded, _taken(self, kwargs), kwargs)
        with _told(call):
            return self.calls.call(call, partial(_made, call))

    async def invoke_async(self, **kwargs: Any) -> Any:
        """The same by awaiting."""
        call = _Call(self.guarded, _taken(self, kwargs), kwargs)
        with _told(call):
            return await self.calls.acall(call, partial(_amade, call))


def _around(tool: Tool, calls: _Calls, asked: list[Asked]) -> Tool:
    """The tool with the guard around it; the framework takes it for one of its kind."""
    made = object.__new__(_guarded(cast("Any", type(tool))))
    vars(made).update(vars(tool), calls=calls, guarded=tool, asked=asked)
    return cast("Tool", made)


@cache
def _guarded(kind: Any) -> Any:
    return new_class(kind.__name__, (_Guarded, kind))


def _taken(tool: _Guarded, args: dict[str, Any]) -> Asked:
    """Take the call that these arguments are for: the framework may have added some of its own."""
    with _TAKING:
        fitting = [call for call in tool.asked if all(args.get(n) == value for n, value in call.arguments.items())]
        call = next(iter(fitting or tool.asked), None)
        if call is None:  # somebody calls the tool beside the model
            return Asked(tool.guarded.name, args)
        tool.asked.remove(call)
        return call


_TAKING = Lock()
"""The calls of a step are made in threads, and told apart by their arguments."""


def _made(call: _Call) -> object:
    try:
        return call.tool.invoke(**call.args)
    except ToolInvocationError as error:
        return _failed(call, error)


async def _amade(call: _Call) -> object:
    try:
        return await call.tool.invoke_async(**call.args)
    except ToolInvocationError as error:
        return _failed(call, error)


def _failed(call: _Call, error: ToolInvocationError) -> Unmade:
    """Raise the tool's own error, unless its function was not called."""
    call.error = error
    function = cast("Any", call.tool.function or call.tool.async_function)
    if isinstance(error.__cause__, TypeError) and not has_begun(function, error.__cause__) and not _fits(call):
        return Unmade(None)
    raise error.__cause__ or error


def _fits(call: _Call) -> bool:
    """Whether the arguments fit the schema, and the function."""
    tool = call.tool
    try:
        inspect.signature(cast("Any", tool.function or tool.async_function)).bind(**call.args)
    except TypeError:
        return False
    return call.args.keys() >= set(tool.parameters.get("required", ()))


@contextmanager
def _told(call: _Call) -> Iterator[None]:
    """Tell the framework of a call that came to nothing by the error that it knows."""
    try:
        yield
    except Exception as error:
        if call.error is None or (error is not call.error and error is not call.error.__cause__):
            raise
    if call.error is not None:
        raise call.error
