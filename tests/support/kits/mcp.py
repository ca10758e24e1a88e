"""A loop of one's own around the official MCP SDK's client: a session, and the client of the second generation."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from importlib import import_module
from typing import Any

import mcp

from guardrail import RunNotOpen
from guardrail_mcp import CALL_ID, guarded
from support.kits.stage import Asked, Mode, Scene, Script, call_id

logging.getLogger("mcp").setLevel(logging.CRITICAL)  # a tool that raises is told of with its traceback

FIRST = not hasattr(mcp, "Client")
"""Whether this is the first generation of the SDK, which has sessions only."""

SERVER: Any = import_module("mcp.server.fastmcp").FastMCP if FIRST else import_module("mcp.server.mcpserver").MCPServer
"""A server of the SDK's own."""

LIMITS: Mapping[str, str] = {
    "test_a_write_that_raises_is_in_doubt": (
        "An exception comes as an answer with its text (mcp.server.fastmcp.tools.base:Tool.run), so it is an error."
    ),
}
"""Of the first generation; the second keeps an exception's text to itself, and that is known."""

Call = Callable[[str, dict[str, Any], dict[str, Any]], Awaitable[Any]]


class Session:
    """A `ClientSession`, over the streams of a connection in memory."""

    name = "mcp session"
    modes: Sequence[Mode] = ("async",)
    limits: Mapping[str, str] = LIMITS if FIRST else {}
    nests = False

    def play(self, scene: Scene, mode: Mode) -> str:
        raise NotImplementedError("the SDK has no blocking client")

    async def aplay(self, scene: Scene, mode: Mode) -> str:
        async with self.over(server(scene.functions(mode))) as session:
            if scene.runs is not None:
                session = guarded(session, scene.runs, server="shop")
            await session.list_tools()

            def call(name: str, args: dict[str, Any], meta: dict[str, Any]) -> Awaitable[Any]:
                return session.call_tool(name, args, meta=meta)  # type: ignore[no-any-return]

            return await talk(scene.script, call)

    def over(self, server: Any) -> AbstractAsyncContextManager[Any]:
        """A connection to a server."""
        return _legacy(server)


class Client(Session):
    """A `Client`, which speaks to a server in the same process without streams."""

    name = "mcp client"

    def over(self, server: Any) -> AbstractAsyncContextManager[Any]:
        return mcp.Client(server)


async def talk(script: Script, call: Call, is_over: Callable[[], bool] = lambda: False) -> str:
    """An agent's loop: the calls of a turn are made at once, and what they came to is told to the model."""
    told: list[str] = []
    while not is_over():
        number, turn = script.next(told)
        if isinstance(turn, str):
            return turn
        ids = (call_id(number, place) for place in range(len(turn)))
        told += await asyncio.gather(*(_told(call, asked, {CALL_ID: id}) for asked, id in zip(turn, ids, strict=True)))
    return "The run is over."


async def _told(call: Call, asked: Asked, meta: dict[str, Any]) -> str:
    try:
        result = await call(asked.name, dict(asked.args), meta)
    except RunNotOpen:
        raise
    except Exception as error:  # noqa: BLE001 - an error of the protocol is told to the model like any other
        return f"error: {error}"
    return "\n".join(block.text for block in result.content)


def server(functions: Sequence[Callable[..., Any]]) -> Any:
    """A server of the SDK's own with these tools."""
    made = SERVER("shop", log_level="CRITICAL")
    for function in functions:
        made.add_tool(function, name=function.__name__)
    return made


@asynccontextmanager
async def _legacy(server: Any) -> Any:
    if FIRST:
        async with import_module("mcp.shared.memory").create_connected_server_and_client_session(server) as session:
            yield session
    else:
        async with mcp.Client(server, mode="legacy") as client:
            yield client.session


KITS = [Session()] if FIRST else [Session(), Client()]
