"""CrewAI's crews and agents, guarded by hooks of the execution: what is guarded is the tool's own function.

CrewAI calls a tool in several places (of native calls, of steps, of models that write their calls), each between two
hooks. The first sees to it that the tool's function is guarded. Errors that leave the function become text for the
model, some after further attempts; so a stop leaves by the hook behind the call, as `HookAborted`, which CrewAI takes
for what it is. A `BaseException` is lost in the threads of asynchronous tasks, and their crew waits for them forever.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from types import CoroutineType
from typing import Any

from crewai.hooks import HookAborted, InterceptionPoint
from crewai.hooks.dispatch import get_scoped_hooks, scoped_hooks
from crewai.hooks.tool_hooks import ToolCallHookContext
from crewai.tools.base_tool import Tool
from crewai.tools.structured_tool import CrewStructuredTool
from crewai.tools.tool_failure import ToolFailure

from guardrail.calls import Halted, Refused, ToolCall
from guardrail.errors import FINAL, CallRefused
from guardrail.run.adapter import Adapter, Runs
from guardrail.run.standing import Standing


@contextmanager
def guarded(runs: Runs) -> Iterator[None]:
    """Guard the tool calls of all crews and agents in this block: `with guard.run(...) as run, guarded(run): ...`.

    `runs` is a run, or a guard, for the run that is open here. After a stop no tool is called and no model is asked:
    the crew ends with `HookAborted`, and `RunStopped` leaves `guard.run()`. Raises `RunNotOpen`.
    """
    hooks = _Hooks(_Calls(_Here(runs.standing)))
    scope = {point: get_scoped_hooks(point) for point in InterceptionPoint}
    scope[InterceptionPoint.PRE_TOOL_CALL].append(hooks.before_tool)
    scope[InterceptionPoint.POST_TOOL_CALL].append(hooks.after_tool)
    scope[InterceptionPoint.PRE_MODEL_CALL].append(hooks.before_model)
    with scoped_hooks(scope):
        yield


class _Here:
    """The run that was open where the block began; what CrewAI does in threads belongs to it."""

    def __init__(self, standing: Standing) -> None:
        self.standing = standing


class _Native:
    """A call between its two hooks: the tool, and what the model gave."""

    def __init__(self, calls: _Calls, context: ToolCallHookContext, outer: _Native | None) -> None:
        self.calls = calls
        self.name = context.tool_name
        self.args = context.tool_input
        self.tool = getattr(context.tool, "_original_tool", None) or context.tool
        self.outer = outer
        self.said: Exception | None = None


_BETWEEN: ContextVar[_Native | None] = ContextVar("guardrail_crewai", default=None)


class _Calls(Adapter[_Native]):
    def describe(self, native: _Native) -> ToolCall:
        return ToolCall(native.name, dict(native.args))

    def halt(self, native: _Native, halted: Halted) -> Any:
        native.said = HookAborted(FINAL, "guardrail")
        raise native.said from halted.cause

    def refuse(self, native: _Native, refused: Refused) -> Any:
        native.said = CallRefused(refused.tool, refused.reason, refused.text)
        raise native.said


class _Hooks:
    """What is done around calls and before requests to the model."""

    def __init__(self, calls: _Calls) -> None:
        self._calls = calls

    def before_tool(self, context: ToolCallHookContext) -> None:
        """See to it that the tool's function is guarded; what this hook raises blocks the call."""
        native = _Native(self._calls, context, _BETWEEN.get())
        _BETWEEN.set(native)
        try:
            _take_over(native.tool, context.tool)
        except Exception as error:
            raise HookAborted(f"{native.name} cannot be guarded: {error}", "guardrail") from error

    def after_tool(self, context: ToolCallHookContext) -> None:
        """End the crew if the run is over."""
        native = _BETWEEN.get()
        _BETWEEN.set(native and native.outer)
        self.before_model(context)

    def before_model(self, context: object) -> None:
        """Let the model be asked, unless the run is over."""
        if self._calls.stop is not None:
            raise HookAborted(FINAL, "guardrail")


class _Takeover:
    """A tool's function, guarded where it is called between the hooks of a guard."""

    def __init__(self, tool: Any, function: Callable[..., Any]) -> None:
        functools.update_wrapper(self, function)
        self.tool = tool
        self._function = function

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        native = _BETWEEN.get()
        if native is None or native.tool is not self.tool:
            return self._function(*args, **kwargs)
        if native.said is not None:  # CrewAI tries again what has failed
            raise native.said
        result = native.calls.call(native, functools.partial(self._execute, *args, **kwargs))
        return _afterwards(_told, result)

    def _execute(self, *args: Any, **kwargs: Any) -> Any:
        return _afterwards(_judged, self._function(*args, **kwargs))


def _take_over(tool: Any, structured: Any) -> None:
    """Put the guard before a tool's function, also where the form in which CrewAI holds a tool has it by itself."""
    if isinstance(tool, Tool | CrewStructuredTool):
        _put_before(tool, tool, "func")
    elif tool is not None:  # else the model made the name up
        _put_before(tool, tool, "_run")
        _put_before(tool, structured, "func")


def _put_before(tool: Any, holder: Any, name: str) -> None:
    function = getattr(holder, name)
    if not (isinstance(function, _Takeover) and function.tool is tool):  # a copy of a tool has the original's
        vars(holder)[name] = _Takeover(tool, function)


class _Failure(dict[str, object]):
    """A failure that a tool declared in CrewAI's own way, as it is judged."""

    def __init__(self, declared: ToolFailure) -> None:
        super().__init__(error=declared.message, code=declared.code)
        self.declared = declared


def _judged(result: object) -> object:
    return _Failure(result) if isinstance(result, ToolFailure) else result


def _told(result: object) -> object:
    return result.declared if isinstance(result, _Failure) else result


def _afterwards(change: Callable[[object], object], result: object) -> object:
    """The result changed, or its promise."""
    return _changed(change, result) if isinstance(result, CoroutineType) else change(result)


async def _changed(change: Callable[[object], object], promise: CoroutineType[Any, Any, object]) -> object:
    return change(await promise)
