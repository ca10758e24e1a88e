"""Calls of MCP tools, by whatever client makes them: what a server says of its tools, and when it made no call."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import partial
from typing import Any, Final, TypeAlias

from mcp.types import CallToolResult, TextContent, Tool

from guardrail.call.hints import hints_of
from guardrail.calls import Hints, Refused, ToolCall, Unmade
from guardrail.judge.unmade import says_unmade
from guardrail.run.adapter import Adapter, Runs

CALL_ID: Final = "guardrail/call_id"
"""Where a caller says in `meta` which id the model gave its call. It is not sent to the server."""

Meta: TypeAlias = Mapping[str, Any] | None


class Calls(Adapter[ToolCall]):
    """The calls of one client. `server` is the name under which the policy knows what it is connected to.

    A client may raise `RunHalted`: it stands in the agent's own loop, not in a server.
    """

    def __init__(self, runs: Runs, server: str | None) -> None:
        super().__init__(runs)
        self._server = server or ""  # whose annotations nobody trusts: `None` would be the user's own code
        self._listed: dict[str, tuple[Hints | None, Mapping[str, object]]] = {}
        self._under_way = 0

    def describe(self, native: ToolCall) -> ToolCall:
        return native

    def refuse(self, native: ToolCall, refused: Refused) -> CallToolResult:
        return failure(refused.text)

    def list(self) -> None:
        """Before the tools are listed: raise `RunHalted` if the run is over, so that no model is told of them.

        An SDK also lists them by itself, to check the result of a call; that call is not spoilt.
        """
        if not self._under_way:
            self.gate()

    def listed(self, tools: Iterable[Tool]) -> None:
        """Learn what the server says of its tools, and what it takes for arguments that are left out."""
        for tool in tools:
            self._listed[tool.name] = hints_of(tool.annotations, self._server), _defaults(tool)

    async def make(
        self, name: str, args: Mapping[str, Any] | None, meta: Meta, send: Callable[[Meta], Awaitable[Any]]
    ) -> Any:
        """Make a call, guarded; `send` sends it with what is left of `meta`. Returns and raises what that does."""
        kept = {key: value for key, value in (meta or {}).items() if key != CALL_ID}
        call_id = None if meta is None else meta.get(CALL_ID)
        hints, defaults = self._listed.get(name, (None, {}))
        call = ToolCall(name, {**defaults, **(args or {})}, call_id, hints)
        answer = await self.acall(call, partial(self._sent, name, partial(send, kept or None)))
        if isinstance(answer, Exception):  # by which the server said that it did not make the call
            raise answer
        return answer

    async def _sent(self, name: str, send: Callable[[], Awaitable[Any]]) -> Any:
        self._under_way += 1
        try:
            result = await send()
        except Exception as error:
            if says_unmade(name, str(error)):
                return Unmade(error)
            raise
        finally:
            self._under_way -= 1
        return Unmade(result) if is_unmade(name, result) else result


def _defaults(tool: Tool) -> Mapping[str, object]:
    """The arguments that a tool has defaults for: one of them may decide what a call does."""
    schema = getattr(tool, "inputSchema", None) or getattr(tool, "input_schema", None) or {}
    declared = (schema.get("properties") or {}).items()
    return {name: what["default"] for name, what in declared if isinstance(what, dict) and "default" in what}


def is_unmade(name: str, result: object) -> bool:
    """Whether a result stands for no call: the server asks something back first, or could not make it as it was given."""
    if getattr(result, "result_type", None) == "input_required":
        return True
    failed = getattr(result, "isError", False) or getattr(result, "is_error", False)
    first = next(iter(getattr(result, "content", None) or ()), None) if failed else None
    return isinstance(first, TextContent) and says_unmade(name, first.text)


def failure(text: str) -> CallToolResult:
    """A failed result that says this."""
    return CallToolResult.model_validate({"content": [{"type": "text", "text": text}], "isError": True})
