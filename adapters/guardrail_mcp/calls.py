"""Calls of MCP tools, by whatever client makes them: what a server says of its tools, and when it made no call."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import partial
from typing import Any, Final, TypeAlias

from mcp.types import CallToolResult, TextContent

from guardrail.call.hints import hints_of
from guardrail.calls import Hints, Refused, ToolCall, Unmade
from guardrail.judge.unmade import says_unmade
from guardrail.meta import CALL_ID
from guardrail.run.adapter import Adapter, Runs

Meta: TypeAlias = Mapping[str, Any] | None


class Tools:
    """What a server said of its tools when they were listed. `server` is the name under which the policy knows it."""

    def __init__(self, server: str | None) -> None:
        self._server = server or ""  # whom nobody trusts: `None` would be the user's own code
        self._listed: dict[str, tuple[Hints | None, Mapping[str, object]]] = {}

    def learn(self, tools: Iterable[Any]) -> None:
        """Learn the tools' annotations, and what they take for arguments that are left out."""
        for tool in tools:
            self._listed[tool.name] = hints_of(tool.annotations, self._server), _defaults(tool)

    def call(self, name: str, args: Mapping[str, Any] | None, meta: Meta) -> ToolCall:
        """A call of a tool, with what is known of it."""
        hints, defaults = self._listed.get(name, (None, {}))
        call_id = None if meta is None else meta.get(CALL_ID)
        return ToolCall(name, {**defaults, **(args or {})}, call_id, hints)


class Calls(Adapter[ToolCall]):
    """The calls of one client. It may raise `RunHalted`: it stands in the agent's own loop, not in a server."""

    def __init__(self, runs: Runs, server: str | None) -> None:
        super().__init__(runs)
        self._tools = Tools(server)
        self._under_way = 0

    def describe(self, native: ToolCall) -> ToolCall:
        return native

    def refuse(self, native: ToolCall, refused: Refused) -> CallToolResult:
        said = {"content": [{"type": "text", "text": refused.text}], "isError": True}
        return CallToolResult.model_validate(said)

    async def list(self, fetch: Callable[[], Awaitable[Any]]) -> Any:
        """Fetch a page of tools, unless the run is over: raises `RunHalted`, so that no model is told of them.

        An SDK also lists tools by itself, to check the result of a call; that call is not spoilt.
        """
        if not self._under_way:
            self.gate()
        page = await fetch()
        self._tools.learn(page.tools)
        return page

    async def make(
        self, name: str, args: Mapping[str, Any] | None, meta: Meta, send: Callable[[Meta], Awaitable[Any]]
    ) -> Any:
        """Make a call, guarded; `send` sends it with `meta` as the server gets it. Returns and raises what that does."""
        kept = {key: value for key, value in (meta or {}).items() if key != CALL_ID}
        call = self._tools.call(name, args, meta)
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


def is_unmade(name: str, result: object) -> bool:
    """Whether a result stands for no call: the server asks something back first, or could not make it as it was given."""
    if getattr(result, "result_type", None) == "input_required":
        return True
    failed = getattr(result, "is_error", None)
    if failed is None:
        failed = getattr(result, "isError", False)
    first = next(iter(getattr(result, "content", None) or ()), None) if failed else None
    return isinstance(first, TextContent) and says_unmade(name, first.text)


def _defaults(tool: Any) -> Mapping[str, object]:
    """The arguments that a tool has defaults for: one of them may decide what a call does."""
    schema: Mapping[str, Any] = next((found for name in _SCHEMAS if (found := getattr(tool, name, None))), {})
    declared = (schema.get("properties") or {}).items()
    return {name: what["default"] for name, what in declared if isinstance(what, dict) and "default" in what}


_SCHEMAS: Final = ("input_schema", "parameters", "inputSchema")
"""Where a tool's schema stands: in the SDK's second generation (FastMCP warns of the first), on a FastMCP server."""
