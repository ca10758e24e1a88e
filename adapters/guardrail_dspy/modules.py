"""DSPy's modules with tools, guarded in the function of every tool and before every prediction."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from functools import partial
from types import TracebackType
from typing import Any, TypeVar

import dspy
from dspy.utils.callback import BaseCallback
from pydantic import PrivateAttr

from guardrail.calls import Refused, ToolCall, Unmade
from guardrail.judge.unmade import has_begun
from guardrail.run.adapter import Adapter, Runs

M = TypeVar("M", bound=dspy.Module)


def guarded(module: M, runs: Runs) -> M:
    """Guard the tools of a module and of the modules in it, and give it back: it is the same object, changed.

    `runs` is a guard, whose open run each call then belongs to, or one run. A stop leaves the module as `RunHalted`, and
    no model is asked again; `RunStopped` leaves `guard.run()`. Raises `TypeError` for a module whose tools run where
    the guard does not reach (`CodeAct`), `ValueError` for one without tools.
    """
    calls = _Calls(runs)
    gate = _Gate(calls)
    modules: list[Any] = [found for _, found in module.named_sub_modules(dspy.Module)]
    for one in modules:
        if type(one).__name__ == "CodeAct":
            raise TypeError(
                "CodeAct runs the source of its tools in its interpreter, past any guard: use another module"
            )
        one.callbacks = [*(other for other in one.callbacks if not isinstance(other, _Gate)), gate]
    if not sum(_put_around(tools, calls) for one in modules for tools in vars(one).values()):
        raise ValueError(f"{type(module).__name__} has no tools that could be guarded")
    return module


class _Gate(BaseCallback):  # type: ignore[misc]
    """Lets a module run, and so its model be asked, only while the run is not over."""

    def __init__(self, calls: _Calls) -> None:
        self._calls = calls

    def on_module_start(self, call_id: str, instance: Any, inputs: dict[str, Any]) -> None:
        """Raise `RunHalted` if the run is over: callbacks may raise no `Exception`."""
        self._calls.gate()


class _Call:
    """A call of a tool; the error that it raised, and the frames by which the framework shows it to the model."""

    __slots__ = ("args", "error", "frames", "tool")

    def __init__(self, tool: dspy.Tool, args: Mapping[str, object]) -> None:
        self.tool, self.args = tool, args
        self.error: Exception | None = None
        self.frames: TracebackType | None = None


class _Calls(Adapter[_Call]):
    def describe(self, native: _Call) -> ToolCall:
        return ToolCall(str(native.tool.name), native.args)

    def refuse(self, native: _Call, refused: Refused) -> str:
        return refused.text


class _GuardedTool(dspy.Tool):  # type: ignore[misc]
    """A tool with the guard around it."""

    _calls: Any = PrivateAttr()
    _bare: Any = PrivateAttr()

    def __call__(self, **kwargs: Any) -> Any:
        """Call the tool, guarded."""
        call = _Call(self._bare, kwargs)
        answer = None
        try:
            answer = self._calls.call(call, partial(_made, call))
        except Exception as error:
            if error is not call.error:
                raise
        if call.error is not None:
            raise call.error.with_traceback(call.frames)
        return answer

    async def acall(self, **kwargs: Any) -> Any:
        """The same by awaiting."""
        call = _Call(self._bare, kwargs)
        answer = None
        try:
            answer = await self._calls.acall(call, partial(_amade, call))
        except Exception as error:
            if error is not call.error:
                raise
        if call.error is not None:
            raise call.error.with_traceback(call.frames)
        return answer


def _put_around(tools: Any, calls: _Calls) -> int:
    """Put guarded tools in the place of those in a dict or a list of a module's; how many."""
    items: Any = tools.items() if isinstance(tools, dict) else enumerate(tools) if isinstance(tools, list) else ()
    found = {place: tool for place, tool in items if isinstance(tool, dspy.Tool) and not _is_own(tool)}
    for place, tool in found.items():
        bare = tool._bare if isinstance(tool, _GuardedTool) else tool
        tools[place] = made = _GuardedTool(bare.func, bare.name, bare.desc, bare.args, bare.arg_types)
        made._bare, made._calls = bare, calls
    return len(found)


def _is_own(tool: dspy.Tool) -> bool:
    """Whether a tool is the framework's own, by which the model says that it is done."""
    return tool.name in ("finish", "submit") and tool.func.__module__.startswith("dspy.")


def _made(call: _Call) -> object:
    try:
        return call.tool(**call.args)
    except Exception as error:  # noqa: BLE001 - raised again
        return _failed(call, error)


async def _amade(call: _Call) -> object:
    try:
        return await call.tool.acall(**call.args)
    except Exception as error:  # noqa: BLE001 - raised again
        return _failed(call, error)


def _failed(call: _Call, error: Exception) -> Unmade:
    """Raise the error again, unless the tool did not run as the arguments do not fit."""
    call.error, call.frames = error, _frames(error)
    if isinstance(error, (TypeError, ValueError)) and not has_begun(call.tool.func, error) and not _fits(call):
        return Unmade(None)
    raise error


def _frames(error: Exception) -> TracebackType | None:
    """The frames of an error without the first two: as the guard adds one, the model is shown as many as without it."""
    frames = error.__traceback__
    for _ in range(2):
        frames = frames and frames.tb_next
    return frames


def _fits(call: _Call) -> bool:
    try:
        call.tool._validate_and_parse_args(**call.args)
        inspect.signature(call.tool.func).bind(**call.args)
    except Exception:  # noqa: BLE001 - of whatever kind: the tool was not called
        return False
    return True
