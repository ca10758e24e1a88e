"""LangChain's agents and LangGraph's tool nodes, guarded by middleware around every tool call."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from langchain.agents.middleware import AgentMiddleware, ModelRequest, ModelResponse
from langchain_core.messages import ToolMessage
from langchain_core.tools import BaseTool
from langgraph.errors import GraphBubbleUp
from langgraph.prebuilt import ToolNode
from langgraph.prebuilt.tool_node import ToolCallRequest
from langgraph.types import Command
from pydantic import BaseModel, ValidationError

from guardrail.calls import Refused, ToolCall, Unmade
from guardrail.run.adapter import Adapter, Runs
from guardrail_langchain.failures import Failure, noting

Result: TypeAlias = ToolMessage | Command[Any]
if TYPE_CHECKING:
    _Middleware: TypeAlias = AgentMiddleware[Any, Any, Any]
else:
    _Middleware = AgentMiddleware  # langchain 1.0 knows two parameters, later versions three


class _Calls(Adapter[ToolCallRequest]):
    """A call is what the graph asks of its tool node. `RunHalted` passes through graphs, and cancels what runs beside."""

    def describe(self, native: ToolCallRequest) -> ToolCall:
        call = native.tool_call
        return ToolCall(call["name"], call["args"], call["id"])

    def refuse(self, native: ToolCallRequest, refused: Refused) -> ToolMessage:
        call = native.tool_call
        return ToolMessage(refused.text, name=call["name"], tool_call_id=call["id"] or "", status="error")


class GuardrailMiddleware(_Middleware):
    """Guards the tool calls of an agent: `create_agent(model, tools, middleware=[GuardrailMiddleware(guard)])`.

    `runs` is a guard, whose open run each call then belongs to, or one run. Put it last, so that what other middleware
    makes of a call is guarded too. After a stop the model is not asked again; `RunStopped` leaves `guard.run()`.
    """

    def __init__(self, runs: Runs) -> None:
        super().__init__()
        self._calls = _Calls(runs)

    def wrap_tool_call(self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Result]) -> Result:
        """Make the call, guarded."""
        failure = Failure()
        with failure.told():
            return _given(self._calls.call(request, partial(_made, failure, request, handler)))
        return failure.message

    async def awrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Awaitable[Result]]
    ) -> Result:
        """The same by awaiting."""
        failure = Failure()
        with failure.told():
            return _given(await self._calls.acall(request, partial(_amade, failure, request, handler)))
        return failure.message

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> ModelResponse[Any]:
        """Ask the model, unless the run is over."""
        self._calls.gate()
        return handler(request)

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]
    ) -> ModelResponse[Any]:
        """The same by awaiting."""
        self._calls.gate()
        return await handler(request)


def guarded_node(runs: Runs, tools: Sequence[BaseTool | Callable[..., Any]], **options: Any) -> ToolNode:
    """LangGraph's `ToolNode` for these tools, guarded; options as it takes them. Errors are judged before they are handled.

    A graph of one's own asks the model itself: let it do so only while `run.stop` is None.
    """
    middleware = GuardrailMiddleware(runs)
    if "handle_tool_errors" in options:
        options["handle_tool_errors"] = noting(options["handle_tool_errors"])
    return ToolNode(
        tools, wrap_tool_call=middleware.wrap_tool_call, awrap_tool_call=middleware.awrap_tool_call, **options
    )


def _made(failure: Failure, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Result]) -> Result | Unmade:
    with failure.awaited():
        try:
            result = handler(request)
        except (
            GraphBubbleUp
        ) as signal:  # a tool that asks a person, or another graph, is called anew when that has answered
            return Unmade(signal)
    return _told(failure, request, result)


async def _amade(
    failure: Failure, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Awaitable[Result]]
) -> Result | Unmade:
    with failure.awaited():
        try:
            result = await handler(request)
        except GraphBubbleUp as signal:
            return Unmade(signal)
    return _told(failure, request, result)


def _given(answer: Any) -> Result:
    if isinstance(answer, GraphBubbleUp):
        raise answer
    return cast("Result", answer)


def _told(failure: Failure, request: ToolCallRequest, result: Result) -> Result | Unmade:
    """The result, or that it came instead of one: the model named no tool there is, or its arguments do not fit.

    Raises the error that the graph has handled: the guard judges that, and the model is told the message.
    """
    if not (isinstance(result, ToolMessage) and result.status == "error"):
        return result
    if not _fits(request):
        return Unmade(result)
    if failure.error is not None:
        failure.message = result
        raise failure.error
    return result


def _fits(request: ToolCallRequest) -> bool:
    """Whether the arguments fit the tool's schema, in which others stand that the graph fills in by itself."""
    if request.tool is None:
        return False
    schema = request.tool.args_schema
    if not (isinstance(schema, type) and issubclass(schema, BaseModel)):
        return True
    try:
        schema.model_validate(request.tool_call["args"])
    except ValidationError as error:
        own = request.tool.args.keys()
        return not any(part["loc"] and part["loc"][0] in own for part in error.errors())
    return True
