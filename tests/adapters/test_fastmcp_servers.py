"""What only FastMCP has: servers over HTTP that many runs share, proxies, copies of clients, tasks in the background."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import fastmcp
import pytest
import uvicorn
from fastmcp import FastMCP
from fastmcp.exceptions import ToolError
from fastmcp.server import create_proxy

from guardrail import Configuration, Guard, GuardrailError, RunStopped
from guardrail.errors import FINAL
from guardrail_fastmcp import GuardrailClient, GuardrailMiddleware
from support.kits.pages import run_page, shop_of_the_page

TOOLS = {"look": {"effect": "read"}, "*": {"effect": "write"}}


@pytest.fixture
def guard(tmp_path: Path) -> Guard:
    return Guard(Configuration.model_validate({"ledger": str(tmp_path / "ledger.db"), "tools": TOOLS}))


class Shop:
    """A server whose tools say what ran."""

    def __init__(self, **options: Any) -> None:
        self.ran: list[str] = []
        self.server: FastMCP[Any] = FastMCP("shop", **options)
        for tool in (self.look, self.fail, self.note):
            self.server.tool(tool)

    async def look(self, order_id: int) -> dict[str, Any]:
        self.ran.append("look")
        return {"order": order_id}

    async def fail(self, order_id: int) -> dict[str, Any]:
        self.ran.append("fail")
        raise RuntimeError("the carrier is away")

    async def note(self, order_id: int) -> dict[str, Any]:
        self.ran.append("note")
        return {"noted": order_id}


@contextlib.asynccontextmanager
async def served(server: FastMCP[Any]) -> AsyncIterator[str]:
    """A server's address on this machine, where it is served over HTTP."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        config = uvicorn.Config(server.http_app(), log_level="critical", ws="none", timeout_graceful_shutdown=1)
        web = uvicorn.Server(config)
        serving = asyncio.create_task(web.serve(sockets=[listener]))
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}/mcp"
        finally:
            web.should_exit = True
            await serving


async def said(client: Any, tool: str, run: Any = None) -> str:
    """What a plain client is told."""
    meta = None if run is None else {"guardrail/run_id": run.id}
    result = await client.call_tool(tool, {"order_id": 1}, meta=meta, raise_on_error=False)
    return str(result.content[0].text)


async def test_runs_that_share_a_server_over_http_are_told_apart_by_what_the_client_says(guard: Guard) -> None:
    shop = Shop(middleware=[GuardrailMiddleware(guard)])
    other = guard.run()
    async with other, contextlib.AsyncExitStack() as stack:  # the run that is current where the server starts
        url = await stack.enter_async_context(served(shop.server))
        client = await stack.enter_async_context(fastmcp.Client(url))
        with pytest.raises(RunStopped) as stopped:
            async with guard.run() as run:
                await said(client, "fail", run)
                assert await said(client, "note", run) == FINAL
                assert await said(client, "look", run) == FINAL
        assert stopped.value.stop.reason == "write_under_hold"
        assert '"noted"' in await said(client, "note", other)
        assert "for no run" in await said(client, "note")
        assert "no such run is open here" in await said(client, "note", run)
    assert (other.calls, other.stop) == (1, None)
    assert shop.ran == ["fail", "note"]


async def test_a_stop_is_told_by_a_server_that_hides_what_its_errors_say(guard: Guard) -> None:
    run = guard.run()
    shop = Shop(middleware=[GuardrailMiddleware(run)], mask_error_details=True)
    with pytest.raises(RunStopped):
        async with run, fastmcp.Client(shop.server) as client:
            assert await said(client, "fail") == "Error calling tool 'fail'"
            assert await said(client, "note") == FINAL


async def test_a_stop_of_what_a_tool_calls_does_not_break_its_server(guard: Guard) -> None:
    inner = Shop()

    async def outer(order_id: int) -> str:
        async with GuardrailClient(inner.server, runs=guard) as client:
            with contextlib.suppress(ToolError):
                await client.call_tool("fail", {"order_id": order_id})
            await client.call_tool("note", {"order_id": order_id})
        return "never"

    shop = Shop(middleware=[GuardrailMiddleware(guard)])
    shop.server.tool(outer)
    with pytest.raises(RunStopped):
        async with guard.run() as run, fastmcp.Client(shop.server) as client:
            assert await said(client, "outer", run) == FINAL
            assert await said(client, "look", run) == FINAL
            assert await client.list_tools()
    assert (shop.ran, inner.ran) == ([], ["fail"])


async def test_what_a_proxy_hands_on_is_judged(guard: Guard) -> None:
    shop = Shop()
    proxy = create_proxy(shop.server)
    proxy.add_middleware(GuardrailMiddleware(guard))
    with pytest.raises(RunStopped):
        async with guard.run() as run, fastmcp.Client(proxy) as client:
            assert "carrier" in await said(client, "fail", run)
            assert "Unknown tool" in await said(client, "shred", run)
            assert await said(client, "note", run) == FINAL
    assert shop.ran == ["fail"]


async def test_a_copy_of_a_client_is_guarded(guard: Guard) -> None:
    shop = Shop()
    original = GuardrailClient(shop.server, runs=guard)
    with pytest.raises(RunStopped):
        async with guard.run(), original.new() as client:
            with contextlib.suppress(ToolError):
                await client.call_tool("fail", {"order_id": 1})
            await client.call_tool("note", {"order_id": 1})
    assert shop.ran == ["fail"]


async def test_a_client_tells_a_refusal_as_an_error_of_the_tools(guard: Guard) -> None:
    shop = Shop()
    tools = {"look": {"effect": "read", "args": {"order_id": {"type": "integer", "above": 5}}}}
    with Guard(Configuration.model_validate({"tools": tools})) as strict, strict.run():
        async with GuardrailClient(shop.server, runs=strict) as client:
            with pytest.raises(ToolError, match="was not carried out"):
                await client.call_tool("look", {"order_id": 1})
            result = await client.call_tool("look", {"order_id": 1}, raise_on_error=False)
            assert result.is_error
            assert (await client.call_tool("look", {"order_id": 6})).data == {"order": 6}


@pytest.mark.parametrize(
    ("tool", "hides", "outcome"),
    [
        ({}, False, "error"),
        ({}, True, "in_doubt"),  # nobody says what was done before
        ({"sentences": [{"pattern": "error calling tool .*", "means": "in_doubt"}]}, False, "in_doubt"),
    ],
)
async def test_what_raised_in_a_server_is_known_by_its_text_alone(
    tool: dict[str, Any], hides: bool, outcome: str
) -> None:
    tools = {"fail": {"effect": "write", **tool}}
    with Guard(Configuration.model_validate({"tools": tools})) as guard, guard.run() as run:
        async with GuardrailClient(Shop(mask_error_details=hides).server, runs=run) as client:
            await client.call_tool("fail", {"order_id": 1}, raise_on_error=False)
        history = guard.ledger.load_run(run.id)
        assert history is not None
        assert [call.outcome and call.outcome.outcome for call in history.calls] == [outcome]


# The oldest versions' environment, which CI runs too, has FastMCP 3.
@pytest.mark.skipif(int(fastmcp.__version__.split(".")[0]) > 3, reason="call_tool of FastMCP 4 begins no tasks")
async def test_a_task_in_the_background_is_not_begun(guard: Guard) -> None:
    shop = Shop()
    async with guard.run(), GuardrailClient(shop.server, runs=guard) as client:
        with pytest.raises(GuardrailError, match="in the background"):
            await client.call_tool("note", {"order_id": 1}, task=True)
        await asyncio.sleep(0)
    assert shop.ran == []


def test_the_code_of_the_page_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    shop: FastMCP[Any] = FastMCP("shop")
    shop.tool(shop_of_the_page(tmp_path).refund_order)
    run_page("fastmcp", shop=shop)
    assert capsys.readouterr().out == "verified\n"
