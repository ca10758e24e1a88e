"""FastMCP's client, with its calls guarded."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from fastmcp import Client
from mcp.types import CallToolResult, ListToolsResult

from guardrail.errors import GuardrailError
from guardrail.run.adapter import Runs
from guardrail_mcp.calls import Calls, Meta


class GuardrailClient(Client[Any]):
    """A `Client` whose calls are guarded: `GuardrailClient(transport, runs=guard)`; options as `Client` takes them.

    `runs` is a guard, whose open run each call then belongs to, or one run. `server` is the name under which the
    policy's `servers` know the server; without it, annotations of its tools may only make things stricter. The id
    that the model gave a call is told by `meta={"guardrail/call_id": id}`.
    """

    def __init__(self, transport: Any, *, runs: Runs, server: str | None = None, **options: Any) -> None:
        super().__init__(transport, **options)
        self._calls = Calls(runs, server)

    async def call_tool_mcp(self, name: str, arguments: dict[str, Any], *args: Any, **options: Any) -> CallToolResult:
        """Call a tool, guarded."""
        call: Callable[..., Awaitable[Any]] = partial(super().call_tool_mcp, name, arguments, *args)
        meta: Meta = options.pop("meta", None)

        def send(kept: Meta) -> Awaitable[Any]:
            return call(meta=kept, **options)

        result: CallToolResult = await self._calls.make(name, arguments, meta, send)
        return result

    async def list_tools_mcp(self, **options: Any) -> ListToolsResult:
        """List a page of tools. Raises `RunHalted` if the run is over."""
        page: ListToolsResult = await self._calls.list(partial(super().list_tools_mcp, **options))
        return page

    async def _call_tool_as_task(self, name: str, *args: Any, **options: Any) -> Any:
        """What FastMCP 3 does for `call_tool(..., task=True)`: the result comes to somebody else, later."""
        raise GuardrailError(
            f"{name} was called as a task in the background, whose result is not guarded: call it plainly"
        )
