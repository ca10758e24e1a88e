"""OpenAI's own tool runner over responses (`openai.lib.responses_tool_runner`), guarded."""

from __future__ import annotations

import dataclasses
import functools
import json
from collections.abc import AsyncGenerator, Callable, Generator, Mapping, Sequence
from contextvars import ContextVar
from typing import Any, NamedTuple, TypeVar, cast, overload

from openai.lib.responses_tool_runner import (
    AsyncRegisteredFunction,
    AsyncResponsesToolRunner,
    RegisteredFunction,
    ResponsesRunnerTurn,
    ResponsesToolRunner,
)
from openai.types.responses import ResponseFunctionToolCall

from guardrail.calls import Refused, ToolCall
from guardrail.errors import GuardrailError
from guardrail.run.adapter import Adapter, Runs

F = TypeVar("F", RegisteredFunction, AsyncRegisteredFunction)


@overload
def guarded_runner(runs: Runs, functions: Sequence[RegisteredFunction], **options: Any) -> ResponsesToolRunner: ...
@overload
def guarded_runner(
    runs: Runs, functions: Sequence[AsyncRegisteredFunction], **options: Any
) -> AsyncResponsesToolRunner: ...
def guarded_runner(
    runs: Runs, functions: Sequence[RegisteredFunction] | Sequence[AsyncRegisteredFunction], **options: Any
) -> ResponsesToolRunner | AsyncResponsesToolRunner:
    """The runner for these functions, with each call of them guarded; `options` as the runner takes them.

    `runs` is a guard, whose open run each call then belongs to, or one run. After a stop the model is not asked again.
    Raises `GuardrailError` for a browser or a computer: what the runner does with them cannot be guarded.
    """
    unguarded = [name for name in ("browser", "computer") if options.get(name) is not None]
    if unguarded:
        raise GuardrailError(f"the runner's {unguarded[0]} cannot be guarded: give the model functions instead")
    calls = _Calls(runs)
    plain = [calls.guarded(f, calls.call) for f in functions if isinstance(f, RegisteredFunction)]
    awaited = [calls.guarded(f, calls.acall) for f in functions if isinstance(f, AsyncRegisteredFunction)]
    if awaited:
        return _AsyncRunner(calls, functions=awaited, **options)
    return _Runner(calls, functions=plain, **options)


class _Native(NamedTuple):
    name: str
    args: Mapping[str, object]


_item: ContextVar[ResponseFunctionToolCall | None] = ContextVar("guardrail.openai.item", default=None)
"""The call that the runner is about to make; the function itself is given the arguments alone."""


class _Calls(Adapter[_Native]):
    """A call is what the runner asks of a registered function. `RunHalted` passes through the runner."""

    def describe(self, native: _Native) -> ToolCall:
        item = _item.get()
        return ToolCall(native.name, native.args, None if item is None else item.call_id)

    def refuse(self, native: _Native, refused: Refused) -> str:
        return refused.text

    def guarded(self, function: F, make: Callable[[_Native, Callable[[], Any]], Any]) -> F:
        """The function with its calls made by `make`; the runner looks at its signature."""
        execute, name = cast("Callable[..., Any]", function.execute), function.tool["name"]

        @functools.wraps(execute)
        def guarded(arguments: Any, **options: Any) -> Any:
            return make(_Native(name, _args(arguments)), functools.partial(execute, arguments, **options))

        return dataclasses.replace(function, execute=guarded)

    def cancelled(self, asked: Callable[[], bool] | None) -> Callable[[], bool]:
        """What the runner asks before each request: whether its caller has cancelled it. Raises `RunHalted`."""

        def cancelled() -> bool:
            self.gate()
            return asked is not None and asked()

        return cancelled


def _args(arguments: Any) -> Mapping[str, object]:
    """The arguments as the model gave them, also where the function gets a model made of them."""
    item = _item.get()
    return cast("Mapping[str, object]", arguments if item is None else json.loads(item.arguments))


class _Runner(ResponsesToolRunner):
    def __init__(self, calls: _Calls, **options: Any) -> None:
        super().__init__(**options)
        self._calls = calls

    def iterate(
        self, client: Any, params: Any, *, cancelled: Callable[[], bool] | None = None, **options: Any
    ) -> Generator[ResponsesRunnerTurn, None, None]:
        return super().iterate(client, params, cancelled=self._calls.cancelled(cancelled), **options)

    def _execute_function(self, run: Any, item: ResponseFunctionToolCall) -> Any:
        token = _item.set(item)
        try:
            return super()._execute_function(run, item)
        finally:
            _item.reset(token)


class _AsyncRunner(AsyncResponsesToolRunner):
    def __init__(self, calls: _Calls, **options: Any) -> None:
        super().__init__(**options)
        self._calls = calls

    def iterate(
        self, client: Any, params: Any, *, cancelled: Callable[[], bool] | None = None, **options: Any
    ) -> AsyncGenerator[ResponsesRunnerTurn, None]:
        return super().iterate(client, params, cancelled=self._calls.cancelled(cancelled), **options)

    async def _execute_function(self, run: Any, item: ResponseFunctionToolCall) -> Any:
        token = _item.set(item)
        try:
            return await super()._execute_function(run, item)
        finally:
            _item.reset(token)
