"""FastMCP's middleware on the side of a server. A server never gets a `BaseException`: it would take all clients with it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fastmcp.exceptions import NotFoundError, ToolError, ValidationError
from fastmcp.server.middleware import CallNext, Middleware, MiddlewareContext
from fastmcp.tools import ToolResult
from pydantic import ValidationError as Misfit

from guardrail import Guard, Run
from guardrail.calls import Halted, Refused, ToolCall, Unmade
from guardrail.errors import FINAL, RunHalted, RunNotOpen
from guardrail.judge.unmade import says_unmade
from guardrail.meta import RUN_ID
from guardrail.run.adapter import Adapter
from guardrail_mcp.calls import Meta, Tools, is_unmade


class _Calls(Adapter[ToolCall]):
    """The calls of one run. A stop is told as an error, to this and every later call."""

    def describe(self, native: ToolCall) -> ToolCall:
        return native

    def halt(self, native: ToolCall, halted: Halted) -> Any:
        raise ToolError(FINAL) from halted.cause

    def refuse(self, native: ToolCall, refused: Refused) -> Any:
        raise ToolError(refused.text)


class GuardrailMiddleware(Middleware):
    """Guards the tools of a server in this process: `FastMCP("shop", middleware=[GuardrailMiddleware(guard)])`.

    Given a guard, a call belongs to the open run that the client names in `meta={"guardrail/run_id": run.id}`, and is
    refused without it: what is current where a server runs is another's. Given a run, all calls are its own. Put it
    last. `server` is the name under which the policy's `servers` know it.
    """

    def __init__(self, runs: Guard | Run, *, server: str | None = None) -> None:
        self._runs = runs
        self._tools = Tools(server)

    async def on_list_tools(self, context: MiddlewareContext[Any], call_next: CallNext[Any, Sequence[Any]]) -> Any:
        """Learn what is said of the tools."""
        tools = await call_next(context)
        self._tools.learn(tools)
        return tools

    async def on_call_tool(self, context: MiddlewareContext[Any], call_next: CallNext[Any, ToolResult]) -> ToolResult:
        """Make the call, guarded."""
        meta = _meta(context)
        call = self._tools.call(context.message.name, context.message.arguments, meta)
        rest = _Rest(call_next, context)
        try:
            answer = await _Calls(self._run(call, meta)).acall(call, rest.made)
        except RunHalted as halted:  # by what the tool itself calls
            raise ToolError(FINAL) from halted
        except Exception as error:
            if rest.left is None or error is not _own(rest.left):
                raise
            raise rest.left  # noqa: B904 - it has a cause of its own
        if isinstance(answer, Exception):  # by which the call was turned down
            raise answer
        result: ToolResult = answer
        return result

    def _run(self, call: ToolCall, meta: Meta) -> Run:
        if isinstance(self._runs, Run):
            return self._runs
        named = (meta or {}).get(RUN_ID)
        run = self._runs.opened(str(named)) if named is not None else None
        if run is None:
            why = f"names none in meta ({RUN_ID})" if named is None else f"names {named}, and no such run is open here"
            raise ToolError(str(RunNotOpen(f"{call.name} was called for no run: the client {why}")))
        return run


class _Rest:
    """The rest of the chain; `left` is the error that left it. FastMCP wraps a tool's error, which is what is judged."""

    def __init__(self, call_next: CallNext[Any, ToolResult], context: MiddlewareContext[Any]) -> None:
        self.left: Exception | None = None
        self._call_next = call_next
        self._context = context

    async def made(self) -> ToolResult | Unmade:
        """Let the tool run."""
        name = self._context.message.name
        try:
            result = await self._call_next(self._context)
        except Exception as error:  # noqa: BLE001 - every error of a tool is judged, and raised again
            self.left = error
        else:
            asks = hasattr(result, "input_required")
            return Unmade(result) if asks or is_unmade(name, result) else result
        if isinstance(self.left, NotFoundError) or _is_misfit(self.left) or says_unmade(name, str(self.left)):
            return Unmade(self.left)
        raise _own(self.left)


def _own(error: Exception) -> Exception:
    cause = error.__cause__
    return cause if isinstance(error, ToolError) and isinstance(cause, Exception) else error


def _is_misfit(error: Exception) -> bool:
    """Whether the arguments do not fit the tool."""
    return isinstance(error, ValidationError) and isinstance(error.__cause__, Misfit)


def _meta(context: MiddlewareContext[Any]) -> Meta:
    """What the client says in `_meta`: a mapping, or an object of the SDK's first generation."""
    request = context.fastmcp_context.request_context if context.fastmcp_context is not None else None
    meta = getattr(request, "meta", None)
    return meta if meta is None or isinstance(meta, dict) else dict(meta.model_extra or {})
