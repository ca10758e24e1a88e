"""An MCP server made with the official SDK, over streamable HTTP: `python mcp_http_server.py PORT`."""

from __future__ import annotations

import asyncio
import json
import sys

from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError

server = MCPServer("words")


@server.tool()
async def say(word: str) -> str:
    """Say a word."""
    return word


@server.tool()
async def note(word: str = "", pause: float = 0.0) -> str:
    """Note a word."""
    await asyncio.sleep(pause)
    return f"noted {word}"


@server.tool()
async def deny() -> str:
    """Say no."""
    raise ToolError("only an open order can be cancelled")


@server.tool()
async def count(to: int, ctx: Context) -> str:
    """Count, and tell of it."""
    for number in range(to):
        await ctx.report_progress(number, to)
    return "counted"


@server.tool()
async def headers(ctx: Context) -> str:
    """Show the request's headers."""
    return json.dumps(dict(ctx.headers or {}))


if __name__ == "__main__":
    server.run("streamable-http", port=int(sys.argv[1]))
