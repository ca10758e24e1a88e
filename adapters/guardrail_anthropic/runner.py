"""Anthropic's tool runner (`client.beta.messages.tool_runner`), guarded."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import Any, TypeVar

from anthropic.lib.tools import ToolError
from anthropic.types.beta import BetaToolUseBlock
from pydantic import ValidationError

from guardrail.calls import Refused, ToolCall, Unmade
from guardrail.errors import GuardrailError
from guardrail.run.adapter import Adapter, Runs
from guardrail_anthropic.loop import name_of, toolset_of

R = TypeVar("R")


def guarded_runner(runs: Runs, runner: R) -> R:
    """The runner, with each call of a tool guarded, whatever tools it has or is given: blocking, awaited or streaming.

    `runs` is a guard, whose open run each call then belongs to, or one run. After a stop the model is not asked again.
    Raises `GuardrailError` for what is no tool runner, or one that a client before version 2 made.
    """
    calls = _Calls(runs)
    run_tool, run_member, request = (_method(runner, name) for name in _METHODS)
    wrap_tool, wrap_member = (_atool, _amember) if inspect.iscoroutinefunction(run_tool) else (_tool, _member)
    guards = (partial(wrap_tool, calls, run_tool), partial(wrap_member, calls, run_member), calls.gated(request))
    for name, guard in zip(_METHODS, guards, strict=True):
        setattr(runner, name, guard)
    return runner


_METHODS = ("_run_tool", "_run_toolset_member", "_handle_request")
"""How a runner makes a call of a tool, one of a toolset's member, and a request. It has no public hook for these."""


def _method(runner: object, name: str) -> Callable[..., Any]:
    method = getattr(type(runner), name, None)  # that of its class: a runner is not guarded twice
    if method is None:
        raise GuardrailError(f"{type(runner).__name__} is no tool runner of anthropic 2 or newer: it has no {name}")
    return partial(method, runner)


class _Calls(Adapter[BetaToolUseBlock]):
    """A call is a block of the model's message. `RunHalted` passes through the runner."""

    def describe(self, native: BetaToolUseBlock) -> ToolCall:
        return ToolCall(name_of(native), native.input, native.id)

    def refuse(self, native: BetaToolUseBlock, refused: Refused) -> Any:
        raise ToolError(refused.text)

    def gated(self, request: Callable[..., Any]) -> Callable[..., Any]:
        def gated(*args: Any) -> Any:
            self.gate()
            return request(*args)

        return gated


# The runner makes the call of a stand-in, which makes that of the tool: so it answers the model in its own way, and the
# guard sees what the tool itself returned or raised.


def _tool(calls: _Calls, run: Callable[..., Any], tool: Any, block: BetaToolUseBlock) -> Any:
    def execute() -> object:
        try:
            return tool.call(block.input)
        except ValueError as error:
            return _misfit(tool, error)

    def call(_: object) -> object:
        return _given(calls.call(block, execute))

    return run(SimpleNamespace(name=tool.name, call=call), block)


async def _atool(calls: _Calls, run: Callable[..., Any], tool: Any, block: BetaToolUseBlock) -> Any:
    async def execute() -> object:
        try:
            return await tool.call(block.input)
        except ValueError as error:
            return _misfit(tool, error)

    async def call(_: object) -> object:
        return _given(await calls.acall(block, execute))

    return await run(SimpleNamespace(name=tool.name, call=call), block)


def _member(calls: _Calls, run: Callable[..., Any], block: BetaToolUseBlock) -> Any:
    try:
        return calls.call(block, partial(run, block))
    except ToolError as refused:
        return _refusal(block, refused)


async def _amember(calls: _Calls, run: Callable[..., Any], block: BetaToolUseBlock) -> Any:
    try:
        return await calls.acall(block, partial(run, block))
    except ToolError as refused:
        return _refusal(block, refused)


def _refusal(block: BetaToolUseBlock, refused: ToolError) -> dict[str, Any]:
    place = {"tool_use_id": block.id, "toolset_name": toolset_of(block)}
    return {"type": "tool_result", **place, "content": refused.content, "is_error": True}


def _misfit(tool: Any, error: ValueError) -> Unmade:
    """That the arguments do not fit the tool; an error for any other reason is the tool's own, and raised again."""
    cause, function = error.__cause__, getattr(tool, "func", None)
    if isinstance(cause, ValidationError) and cause.title == getattr(function, "__qualname__", None):
        return Unmade(error)  # pydantic names the function whose arguments were wrong; in its body it is something else
    raise error


def _given(result: object) -> object:
    """What a tool gave, to be answered by the runner; it says itself what it makes of arguments that do not fit."""
    if isinstance(result, ValueError):
        raise result
    return result
