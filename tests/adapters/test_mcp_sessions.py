"""What only MCP has: what servers say of their tools, servers in processes of their own, calls answered by a question."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mcp
import pytest
from mcp.types import ToolAnnotations

from guardrail import Configuration, Guard, RunStopped
from guardrail_mcp import CALL_ID, guarded
from support.kits.mcp import FIRST, Session, server
from support.kits.pages import run_page, shop_of_the_page

SHOP = """
import sys
{imports}
server = Server("shop", log_level="CRITICAL")

@server.tool()
async def cancel_order(order_id: int) -> dict:
    return {{"error": "only an open order can be cancelled"}}

@server.tool()
async def note_order(order_id: int, note: str) -> dict:
    print("note", file=sys.stderr, flush=True)
    return {{"noted": order_id}}

server.run()
"""
REFUNDS = """
import sqlite3
{imports}
server = Server("shop", log_level="CRITICAL")

@server.tool()
def refund_order(order_id: int, amount: str) -> dict:
    with sqlite3.connect("shop.db") as shop:
        shop.execute("update orders set status = 'refunded' where id = ?", (order_id,))
        shop.execute("insert into refunds (order_id, amount) values (?, ?)", (order_id, amount))
    return {{"refunded": order_id}}

server.run()
"""
IMPORTS = (
    "from mcp.server.fastmcp import FastMCP as Server"
    if FIRST
    else "from mcp.server.mcpserver import MCPServer as Server"
)


def guard(folder: Path, **rest: Any) -> Guard:
    whole = {"ledger": str(folder / "ledger.db"), **rest}
    return Guard(Configuration.model_validate(whole))


def shop(**tools: tuple[Callable[..., Any], dict[str, bool]]) -> Any:
    """A server whose tools have annotations."""
    made = server(())
    for name, (function, hints) in tools.items():
        made.add_tool(function, name=name, annotations=ToolAnnotations(**hints))
    return made


async def look(order_id: int) -> dict[str, Any]:
    return {"order": order_id}


async def fail(order_id: int) -> dict[str, Any]:
    return {"error": "it is away"}


READS = {"readOnlyHint": True}
WRITES = {"readOnlyHint": False}


@pytest.mark.parametrize(("trusted", "ran"), [(True, True), (False, False)])
async def test_that_a_tool_only_reads_is_believed_of_a_server_that_is_trusted(
    tmp_path: Path, trusted: bool, ran: bool
) -> None:
    policy = guard(tmp_path, servers={"shop": {"trust_annotations": trusted}})
    made = shop(fail=(fail, WRITES), look=(look, READS))
    async with policy.run(), _connected(made) as session:
        guarded(session, policy, server="shop")
        await session.list_tools()
        await session.call_tool("fail", {"order_id": 1})  # which holds the run
        answer = await session.call_tool("look", {"order_id": 1})
    assert ("was not carried out" not in answer.content[0].text) is ran


async def test_what_the_policy_declares_wins_over_annotations(tmp_path: Path) -> None:
    policy = guard(tmp_path, tools={"look": {"effect": "write"}}, servers={"shop": {"trust_annotations": True}})
    with pytest.raises(RunStopped) as stopped:
        async with policy.run(), _connected(shop(fail=(fail, WRITES), look=(look, READS))) as session:
            guarded(session, policy, server="shop")
            await session.list_tools()
            await session.call_tool("fail", {"order_id": 1})
            await session.call_tool("look", {"order_id": 1})
    assert stopped.value.stop.reason == "write_under_hold"


async def test_a_default_of_the_tools_decides_what_a_call_does(tmp_path: Path) -> None:
    async def order(order_id: int, action: str = "get") -> dict[str, Any]:
        return {"error": "it is away"}

    effect = {"by": "args.action", "read": ["get"], "write": ["cancel"]}
    policy = guard(tmp_path, tools={"order": {"effect": effect}})
    async with policy.run() as run, _connected(shop(order=(order, {}))) as session:
        guarded(session, policy)
        await session.list_tools()
        await session.call_tool("order", {"order_id": 1})
    history = policy.ledger.load_run(run.id)
    assert history is not None
    assert [(call.call.effect, call.call.call_id) for call in history.calls] == [("read", None)]


async def test_a_stop_leaves_a_server_in_a_process_of_its_own_in_peace(tmp_path: Path) -> None:
    script = tmp_path / "shop.py"
    script.write_text(SHOP.format(imports=IMPORTS), encoding="utf-8")
    policy = guard(tmp_path, tools={"*_order": {"effect": "write"}})
    parameters = mcp.StdioServerParameters(command=sys.executable, args=[str(script)])
    with (tmp_path / "ran").open("w") as ran, pytest.raises(RunStopped) as stopped:
        async with (
            policy.run(),
            mcp.stdio_client(parameters, errlog=ran) as streams,
            mcp.ClientSession(*streams) as session,
        ):
            await session.initialize()
            guarded(session, policy)
            await session.call_tool("cancel_order", {"order_id": 17}, meta={CALL_ID: "call_1"})
            await session.call_tool("note_order", {"order_id": 17, "note": "done"}, meta={CALL_ID: "call_2"})
    assert stopped.value.stop.tool == "note_order"
    assert "note" not in (tmp_path / "ran").read_text().splitlines()


async def test_two_runs_share_a_session_and_a_stop_ends_only_one(tmp_path: Path) -> None:
    policy = guard(tmp_path, tools={"fail": {"effect": "write"}, "look": {"effect": "write"}})
    async with _connected(shop(fail=(fail, {}), look=(look, {}))) as session:
        guarded(session, policy)
        with pytest.raises(RunStopped):
            async with policy.run():
                await session.call_tool("fail", {"order_id": 1})
                await session.call_tool("look", {"order_id": 1})
        async with policy.run():
            assert not (await session.call_tool("look", {"order_id": 1})).content[0].text.startswith("This run")


async def test_a_session_that_lives_on_is_guarded_anew_for_each_run(tmp_path: Path) -> None:
    policy = guard(tmp_path, tools={"look": {"effect": "read"}})
    async with _connected(shop(look=(look, {}))) as session:
        for _ in range(2):
            async with policy.run() as run:
                await guarded(session, run).call_tool("look", {"order_id": 1})
            assert run.calls == 1


async def test_a_session_that_is_guarded_twice_makes_a_call_once(tmp_path: Path) -> None:
    policy = guard(tmp_path, tools={"look": {"effect": "write", "once_per": ["order_id"]}})
    async with _connected(shop(look=(look, {}))) as session:
        for _ in range(2):  # as for each request of a session from a pool
            guarded(session, policy)
        async with policy.run() as run:
            result = await session.call_tool("look", {"order_id": 1})
            assert not result.content[0].text.startswith("look was not carried out")
        assert run.calls == 1


# The newest versions' environment, which CI runs too, has mcp 2.
@pytest.mark.skipif(FIRST, reason="mcp 1 speaks a protocol in which a server cannot answer a call by a question")
async def test_a_call_that_is_answered_by_a_question_was_not_made(tmp_path: Path) -> None:
    from mcp.server import Server
    from mcp.types import CallToolResult, ElicitResult, InputRequiredResult, ListToolsResult

    asked = {
        "method": "elicitation/create",
        "params": {"message": "Sure?", "requestedSchema": {"type": "object", "properties": {}}},
    }
    told: list[object] = []

    async def call(context: Any, params: Any) -> Any:
        told.append(params.input_responses)
        if params.input_responses is None:
            return InputRequiredResult.model_validate({"inputRequests": {"sure": asked}, "requestState": "1"})
        return CallToolResult.model_validate({"content": [{"type": "text", "text": "refunded"}]})

    async def agree(context: Any, params: Any) -> Any:
        return ElicitResult(action="accept", content={})

    policy = guard(tmp_path, tools={"refund": {"effect": "write", "once_per": ["order_id"]}})

    async def listing(context: Any, params: Any) -> Any:
        return ListToolsResult.model_validate({"tools": [{"name": "refund", "inputSchema": {"type": "object"}}]})

    raw = Server("shop", on_call_tool=call, on_list_tools=listing)
    async with policy.run() as run, mcp.Client(raw, elicitation_callback=agree) as client:
        guarded(client.session, policy)
        result = await client.call_tool("refund", {"order_id": 17})
    assert (result.content[0].text, len(told)) == ("refunded", 2)
    history = policy.ledger.load_run(run.id)
    assert history is not None
    assert [call.outcome and (call.outcome.outcome, call.outcome.executed) for call in history.calls] == [
        ("error", False),
        ("ok", True),
    ]
    assert run.open_holds == 0


def _connected(made: Any) -> Any:
    return Session().over(made)


def test_the_code_of_the_page_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    shop_of_the_page(tmp_path)
    Path("server.py").write_text(REFUNDS.format(imports=IMPORTS), "utf-8")
    run_page("mcp", shop=mcp.StdioServerParameters(command=sys.executable, args=["server.py"], cwd=str(tmp_path)))
    assert capsys.readouterr().out == "verified\n"
