"""Sessions of the official MCP SDK's clients, guarded where their calls are made."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any, Final, Protocol, TypeVar, cast

from guardrail.meta import CALL_ID
from guardrail.run.adapter import Runs
from guardrail_mcp.calls import Calls, Meta

__all__ = ["CALL_ID", "guarded"]


class Session(Protocol):
    """What is guarded: a `ClientSession`, or a `Client` of the SDK's second generation."""

    @property
    def call_tool(self) -> Callable[..., Awaitable[Any]]:
        """Calls a tool by its name."""
        ...

    @property
    def list_tools(self) -> Callable[..., Awaitable[Any]]:
        """Lists the tools, page by page."""
        ...


S = TypeVar("S", bound=Session)


def guarded(session: S, runs: Runs, *, server: str | None = None) -> S:
    """Guard the calls of a session from here on; returns the same session, for whoever uses it. The last guard counts.

    `runs` is a guard, whose open run each call then belongs to, or one run. `server` is the name under which the
    policy's `servers` know the server; without it, annotations of its tools may only make things stricter. Calls are
    guarded that are made by `call_tool` of the very object: of a `Client`, guard the client, not `client.session`.
    """
    calls = Calls(runs, server)
    own = vars(session)
    # As it was before it was guarded: to guard it again, for another run or with another guard, takes the place of that.
    call_tool, list_tools = own.setdefault(_BARE, (session.call_tool, session.list_tools))

    async def call(
        name: str, arguments: Mapping[str, Any] | None = None, *args: Any, meta: Meta = None, **options: Any
    ) -> Any:
        def send(kept: Meta) -> Awaitable[Any]:
            told = {} if kept is None else {"meta": kept}  # which early versions of the SDK do not take
            return cast("Awaitable[Any]", call_tool(name, arguments, *args, **told, **options))

        return await calls.make(name, arguments, meta, send)

    async def listing(*args: Any, **options: Any) -> Any:
        return await calls.list(partial(list_tools, *args, **options))

    own.update(call_tool=call, list_tools=listing)
    return session


_BARE: Final = "_guardrail_bare"
