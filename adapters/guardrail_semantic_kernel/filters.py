"""The calls of a model by a kernel, and the two filters that guard them.

One filter knows the model's call and its id, the other one sees what a function raises, before the framework makes a
text of it: the first tells the second. Both are plain functions, which a copy of a kernel shares.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from functools import partial
from itertools import dropwhile
from traceback import walk_tb
from typing import Any, TypeAlias, cast

from opentelemetry import trace
from semantic_kernel.contents.kernel_content import KernelContent
from semantic_kernel.exceptions import FunctionExecutionException
from semantic_kernel.filters import AutoFunctionInvocationContext, FunctionInvocationContext
from semantic_kernel.functions import FunctionResult

from guardrail import attributes as names
from guardrail.calls import Refused, ToolCall, Unmade
from guardrail.errors import RunNotOpen
from guardrail.run.adapter import Adapter

Next: TypeAlias = Callable[[Any], Awaitable[None]]

STEERING = "semantic_kernel.agents.orchestration."
"""Where the framework's own functions come from by which a model hands over to another agent. They do nothing outside,
so they are no calls of the run."""


class Call:
    """A function that the model calls."""

    __slots__ = ("args", "asked", "function", "kernel", "outside")

    def __init__(self, context: AutoFunctionInvocationContext) -> None:
        self.asked: Any = context.function_call_content
        self.function = context.function
        self.kernel = context.kernel
        self.args: dict[str, Any] = {}
        self.outside: RunNotOpen | None = None

    @property
    def name(self) -> str:
        """The function's name, with that of its plugin where another plugin has one of the same name."""
        name = self.function.name
        same = [plugin for plugin in self.kernel.plugins.values() if name in plugin.functions]
        return name if len(same) < 2 else self.function.fully_qualified_name

    async def execute(self, context: FunctionInvocationContext, next: Next) -> object:
        """Let the function run, and give what it came to as it is judged."""
        try:
            await next(context)
        except FunctionExecutionException as error:
            if _is_unfit(error):
                return Unmade(error)
            raise
        return None if context.result is None else _plain(context.result.value)


_CALL: ContextVar[Call | None] = ContextVar("guardrail_call", default=None)
"""The model's call that is about to be made here."""


class Calls(Adapter[Call]):
    """`RunHalted` passes through kernels, agents and orchestrations."""

    def describe(self, native: Call) -> ToolCall:
        return ToolCall(native.name, native.args, native.asked.call_id or native.asked.id)

    def refuse(self, native: Call, refused: Refused) -> FunctionResult:
        return FunctionResult(function=native.function.metadata, value=refused.text)


def of_model(calls: Calls) -> Any:
    """The filter that is shown a model's call."""

    async def auto_function_invocation(context: AutoFunctionInvocationContext, next: Next) -> None:
        if _steers(context.function):
            await next(context)
            return
        call = Call(context)
        token = _CALL.set(call)
        try:
            await next(context)
        finally:
            _CALL.reset(token)
        if call.outside is not None:  # told to the program, whose mistake it is, and not to the model
            raise call.outside

    return auto_function_invocation


def of_function(calls: Calls) -> Any:
    """The filter around the function itself, which the program may call too."""

    async def function_invocation(context: FunctionInvocationContext, next: Next) -> None:
        call = _CALL.get()
        if call is None or call.function is not context.function:
            await next(context)
            return
        _CALL.set(None)
        _name_span(call)
        given: Any = call.asked.parse_arguments() or {}
        call.args = {name: context.arguments[name] for name in given if name in context.arguments}
        try:
            answer = await calls.acall(call, partial(call.execute, context, next))
        except RunNotOpen as error:
            call.outside = error
            raise
        if isinstance(answer, FunctionExecutionException):
            raise answer
        if isinstance(answer, FunctionResult):
            context.result = answer

    return function_invocation


def _name_span(call: Call) -> None:
    """Name the framework's own span of the call as the call is named, so that it is made richer and not doubled."""
    span = trace.get_current_span()
    if getattr(span, "attributes", {}).get(names.TOOL_NAME) == call.function.fully_qualified_name:
        span.set_attribute(names.TOOL_NAME, call.name)


def _steers(function: Any) -> bool:
    """Whether the function is one of the framework's own that only steer agents; one that hands over is a `partial`."""
    method = getattr(function, "method", None)
    return str(getattr(getattr(method, "func", method), "__module__", "")).startswith(STEERING)


def _is_unfit(error: FunctionExecutionException) -> bool:
    """Whether the function was not called, as an argument is not of its type: it was raised where they are gathered."""
    frames = [frame.f_code.co_name for frame, _ in walk_tb(error.__traceback__)]
    _, *after = dropwhile(lambda name: name != "_invoke_internal", [*frames, ""])
    return after[:1] == ["gather_function_parameters"]


def _plain(value: object) -> object:
    """What a function returned: what is content of the framework's is judged as the text that the model gets."""
    if isinstance(value, list):
        return [_plain(one) for one in cast("list[object]", value)]
    return {"type": "text", "text": str(value)} if isinstance(value, KernelContent) else value
