"""A client made with the official SDK of the generation before (mcp 1.x), run in an environment that has it.

`python mcp_old_client.py '[["tool", {"argument": 1}], ...]' COMMAND ...` lists the tools of a server, makes
the calls, and prints what came of them as JSON.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys


async def main(calls: list[tuple[str, dict[str, object]]], command: list[str]) -> None:
    from mcp import ClientSession, StdioServerParameters
    from mcp.client.stdio import stdio_client

    server = StdioServerParameters(command=command[0], args=command[1:], env=dict(os.environ))
    done: list[float] = []

    async def on_progress(progress: float, total: float | None, message: str | None) -> None:
        done.append(progress)

    async with stdio_client(server) as (reading, writing), ClientSession(reading, writing) as session:
        await session.initialize()
        tools = [tool.name for tool in (await session.list_tools()).tools]
        results: list[object] = []
        for name, args in calls:
            result = await session.call_tool(name, args, progress_callback=on_progress)
            results.append(result.model_dump(mode="json", by_alias=True, exclude_none=True))
    sys.stdout.write(json.dumps({"tools": tools, "results": results, "progress": done}))


if __name__ == "__main__":
    asyncio.run(main(json.loads(sys.argv[1]), sys.argv[2:]))
