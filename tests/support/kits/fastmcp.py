"""A loop of one's own around FastMCP: its client with the guard, and a server with the guard behind a plain client."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

import fastmcp
from fastmcp import FastMCP

from guardrail import Guard, Run
from guardrail_fastmcp import GuardrailClient, GuardrailMiddleware
from support.kits.mcp import talk
from support.kits.stage import Mode, Scene

logging.getLogger("fastmcp").setLevel(logging.CRITICAL)  # a tool that raises is told of with its traceback


class Client:
    """An agent whose client has the guard."""

    name = "fastmcp client"
    modes: Sequence[Mode] = ("async",)
    limits: Mapping[str, str] = {
        "test_a_write_that_raises_is_in_doubt": (
            "An exception comes as an answer with its text (fastmcp.server.server:FastMCP.call_tool), so it is an error."
        ),
    }
    nests = False

    def play(self, scene: Scene, mode: Mode) -> str:
        raise NotImplementedError("FastMCP has no blocking client")

    async def aplay(self, scene: Scene, mode: Mode) -> str:
        shop = server(scene.functions(mode))
        client: fastmcp.Client[Any] = fastmcp.Client(shop)
        if scene.runs is not None:
            client = GuardrailClient(shop, runs=scene.runs, server="shop")
        async with client:
            await client.list_tools()
            return await talk(scene.script, calling(client))


class Server(Client):
    """A server that has the guard, and an agent beside it that opens the runs and names them."""

    name = "fastmcp server"
    limits: Mapping[str, str] = {
        "test_a_call_outside_of_a_run_is_told_to_the_program_and_not_only_to_the_model": (
            "A server tells its client, and knows no program (fastmcp.server.server:FastMCP.call_tool)."
        ),
    }

    async def aplay(self, scene: Scene, mode: Mode) -> str:
        shop = server(scene.functions(mode))
        if scene.runs is not None:
            shop.add_middleware(GuardrailMiddleware(guard_or_run(scene), server="shop"))
        async with fastmcp.Client(shop) as client:
            await client.list_tools()
            run = scene.runs.current() if isinstance(scene.runs, Guard) else scene.runs
            named = {} if run is None else {"guardrail/run_id": run.id}
            return await talk(scene.script, calling(client, named), lambda: run is not None and run.stop is not None)


def guard_or_run(scene: Scene) -> Guard | Run:
    assert scene.runs is not None
    return scene.runs


def server(functions: Sequence[Callable[..., Any]]) -> FastMCP[Any]:
    made: FastMCP[Any] = FastMCP("shop")
    for function in functions:
        made.tool(function)
    return made


def calling(client: fastmcp.Client[Any], named: Mapping[str, Any] | None = None) -> Any:
    """How a loop calls tools by a client, naming the run."""

    def call(name: str, args: dict[str, Any], meta: dict[str, Any]) -> Awaitable[Any]:
        return client.call_tool(name, args, meta={**meta, **(named or {})}, raise_on_error=False)

    return call


KITS = [Client(), Server()]
