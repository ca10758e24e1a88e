"""Agent Framework's agents, guarded by middleware around every function call and every request to a model."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, cast

from agent_framework import (
    ChatContext,
    ChatMiddleware,
    Content,
    FunctionInvocationContext,
    FunctionMiddleware,
    MiddlewareFailure,
    _tools,
)
from agent_framework.exceptions import UserInputRequiredException
from pydantic import BaseModel

from guardrail.calls import Refused, ToolCall, Unmade
from guardrail.errors import FINAL, RunHalted
from guardrail.run.adapter import Adapter, Runs

Next = Callable[[], Awaitable[None]]

_DOES_NOT_FIT: Any = getattr(_tools, "_FunctionArgumentValidationError", ())
"""What the framework raises instead of calling a function whose arguments do not fit."""


def guardrail_middleware(runs: Runs) -> list[FunctionMiddleware | ChatMiddleware]:
    """What guards the function calls of an agent, and its requests to the model, as `Agent(middleware=...)` takes it.

    `runs` is a guard, whose open run each call then belongs to, or one run. Put it last, so that what other middleware
    makes of a call is guarded too. A stop is a `MiddlewareFailure`, and no model is asked again; `RunStopped` leaves
    `guard.run()`.
    """
    calls = _Calls(runs)
    return [_FunctionCalls(calls), _Requests(calls)]


class _Calls(Adapter[FunctionInvocationContext]):
    def describe(self, native: FunctionInvocationContext) -> ToolCall:
        args = native.arguments
        given = args.model_dump(exclude_unset=True) if isinstance(args, BaseModel) else args
        return ToolCall(native.function.name, given, native.metadata.get("call_id"))

    def refuse(self, native: FunctionInvocationContext, refused: Refused) -> None:
        native.result = refused.text


class _FunctionCalls(FunctionMiddleware):
    def __init__(self, calls: _Calls) -> None:
        self._calls = calls

    async def process(self, context: FunctionInvocationContext, call_next: Next) -> None:
        """Make the call, guarded."""
        try:
            answer = await self._calls.acall(context, partial(_made, context, call_next))
        except RunHalted as halted:
            raise MiddlewareFailure(FINAL) from halted
        if isinstance(answer, _Unmade):
            raise answer.error


class _Requests(ChatMiddleware):
    def __init__(self, calls: _Calls) -> None:
        self._calls = calls

    async def process(self, context: ChatContext, call_next: Next) -> None:
        """Ask the model, unless the run is over."""
        try:
            self._calls.gate()
        except RunHalted as halted:
            if not _settles(context):
                raise MiddlewareFailure(FINAL) from halted
        await call_next()


class _Unmade:
    """Why a function was not called, or has not come to its end: the framework's own business."""

    __slots__ = ("error",)

    def __init__(self, error: Exception) -> None:
        self.error = error


async def _made(context: FunctionInvocationContext, call_next: Next) -> object:
    try:
        await call_next()
    except _DOES_NOT_FIT as error:
        return Unmade(_Unmade(error))
    except UserInputRequiredException as error:  # it is called anew when the user has answered
        return Unmade(_Unmade(error))
    return _plain(context.result)


def _plain(result: Any) -> object:
    """What a function returned: the framework makes contents of it, most often one text."""
    if not isinstance(result, list):
        return result
    items = cast("list[object]", result)
    return [_block(item) if isinstance(item, Content) else item for item in items]


def _block(content: Content) -> dict[str, Any]:
    if content.type == "text":
        return {"type": "text", "text": content.text}
    if content.type == "error":
        return {"error": content.message or content.error_code or "no words"}
    return content.to_dict()


def _settles(context: ChatContext) -> bool:
    """Whether a request only tells a conversation that a service keeps that calls were aborted; its answer is dropped."""
    contents = [content for message in context.messages for content in message.contents]
    return bool(contents) and all(
        content.type == "function_result" and content.exception == "MiddlewareFailure" for content in contents
    )
