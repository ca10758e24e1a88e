"""What only Pydantic AI has: runs that are iterated or watched, tools that wait for an approval, toolsets of MCP servers."""

from __future__ import annotations

from collections.abc import AsyncIterable, Callable, Coroutine, Iterable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from fastmcp import FastMCP
from pydantic_ai import (
    Agent,
    DeferredToolRequests,
    DeferredToolResults,
    FunctionToolset,
    ModelRetry,
    RunContext,
    ToolReturn,
)
from pydantic_ai.exceptions import ApprovalRequired
from pydantic_ai.mcp import MCPToolset
from pydantic_ai.messages import AgentStreamEvent

from guardrail import Configuration, Guard, Run, RunStopped
from guardrail_pydantic_ai import GuardrailCapability, GuardrailToolset
from support.kits.pages import run_page, shop_of_the_page
from support.kits.pydantic_ai import scripted
from support.kits.stage import Script, Turn, asked

FAIL, NOTE, PAY = asked("fail"), asked("note"), asked("pay", amount="19.90")
TURNS: tuple[Turn, ...] = ([FAIL], [NOTE], "Done.")


@pytest.fixture
def guard(tmp_path: Path) -> Guard:
    tools = {"fail": {"effect": "write"}, "note": {"effect": "write"}, "pay": {"effect": "write"}}
    return Guard(Configuration.model_validate({"ledger": str(tmp_path / "ledger.db"), "tools": tools}))


def fail() -> dict[str, str]:
    return {"error": "it is away"}


def note() -> str:
    return "noted"


def outcomes(guard: Guard, run: Run) -> list[tuple[str, str, bool]]:
    history = guard.ledger.load_run(run.id)
    assert history is not None
    ended = [(recorded.call.tool, recorded.outcome) for recorded in history.calls]
    return [(tool, outcome.outcome, outcome.executed) for tool, outcome in ended if outcome is not None]


async def watched(agent: Agent[None, str]) -> None:
    async def watch(context: RunContext[None], events: AsyncIterable[AgentStreamEvent]) -> None:
        async for _ in events:
            pass

    await agent.run("Do it.", event_stream_handler=watch)


async def iterated(agent: Agent[None, str]) -> None:
    async with agent.iter("Do it.") as run:
        async for _ in run:
            pass


async def as_events(agent: Agent[None, str]) -> None:
    async with agent.run_stream_events("Do it.") as events:
        async for _ in events:
            pass


@pytest.mark.parametrize("way", [watched, iterated, as_events])
async def test_a_stop_leaves_a_run_in_whatever_way_it_is_followed(
    guard: Guard, way: Callable[[Agent[None, str]], Coroutine[Any, Any, None]]
) -> None:
    script = Script(*TURNS)
    agent = Agent(scripted(script), tools=[fail, note], capabilities=[GuardrailCapability(guard)])
    with pytest.raises(RunStopped) as stopped:
        async with guard.run():
            await way(agent)
    assert stopped.value.stop.tool == "note"
    assert script.requests == 2


async def test_a_guard_of_the_agent_and_one_of_its_run_guard_a_call_once(guard: Guard) -> None:
    agent = Agent(scripted(Script([NOTE], "Done.")), tools=[note], capabilities=[GuardrailCapability(guard)])
    async with guard.run() as run:
        await agent.run("Do it.", capabilities=[GuardrailCapability(run)])
    assert run.calls == 1


async def test_a_tool_that_asks_the_model_to_try_again_is_held_until_it_has(guard: Guard) -> None:
    tries: list[str] = []

    def pay(amount: Decimal) -> str:
        tries.append(str(amount))
        if len(tries) == 1:
            raise ModelRetry("the bank is busy, try again")
        return "paid"

    script = Script([PAY], [PAY], "Paid.")
    agent = Agent(scripted(script), tools=[pay], capabilities=[GuardrailCapability(guard)])
    async with guard.run() as run:
        assert (await agent.run("Do it.")).output == "Paid."
    assert [outcome for _, outcome, _ in outcomes(guard, run)] == ["error", "ok"]
    assert run.open_holds == 0


async def test_the_arguments_are_told_as_json_whatever_the_tool_takes_them_for(guard: Guard) -> None:
    def pay(amount: Decimal) -> str:
        return f"{amount:.1f}"

    tools = {"pay": {"effect": "write", "args": {"amount": {"type": "decimal", "above": 0}}, "once_per": ["amount"]}}
    script = Script([PAY], [asked("pay", amount=19.9)], "Paid.")
    with Guard(Configuration.model_validate({"tools": tools})) as strict:
        agent = Agent(scripted(script), tools=[pay], capabilities=[GuardrailCapability(strict)])
        async with strict.run() as run:
            await agent.run("Do it.")
    assert script.seen[1] == ["19.9"]
    assert run.calls == 2


async def test_a_call_that_waits_for_an_approval_is_not_made_before_it_has_it(guard: Guard) -> None:
    def pay(ctx: RunContext[None], amount: str) -> str:
        if not ctx.tool_call_approved:
            raise ApprovalRequired
        return "paid"

    agent = Agent(
        scripted(Script([PAY], "Paid.")),
        tools=[pay],
        output_type=[str, DeferredToolRequests],
        capabilities=[GuardrailCapability(guard)],
    )
    async with guard.run() as run:
        first = await agent.run("Do it.")
        assert isinstance(first.output, DeferredToolRequests)
        [call] = first.output.approvals
        allowed = DeferredToolResults(approvals={call.tool_call_id: True})
        second = await agent.run(message_history=first.all_messages(), deferred_tool_results=allowed)
    assert second.output == "Paid."
    assert outcomes(guard, run) == [("pay", "error", False), ("pay", "ok", True)]
    assert run.open_holds == 0


async def test_what_a_tool_returns_beside_its_content_does_not_hide_an_error(guard: Guard) -> None:
    def fail() -> ToolReturn[dict[str, str]]:
        return ToolReturn(return_value={"error": "it is away"}, content="See above.", metadata={"took": 3})

    agent = Agent(scripted(Script([FAIL], "Done.")), tools=[fail], capabilities=[GuardrailCapability(guard)])
    async with guard.run() as run:
        await agent.run("Do it.")
        assert run.open_holds == 1


async def test_arguments_that_can_be_read_once_or_not_be_written_are_the_tools(guard: Guard) -> None:
    seen: list[object] = []

    def note(numbers: Iterable[int], picture: bytes) -> str:
        seen.append([*numbers])
        seen.append(picture)
        return "noted"

    asked_for = asked("note", numbers=[1, 2, 3], picture="/w==")
    agent = Agent(scripted(Script([asked_for], "Done.")), tools=[note], capabilities=[GuardrailCapability(guard)])
    bare = Agent(scripted(Script([asked_for], "Done.")), tools=[note])
    await bare.run("Do it.")
    async with guard.run() as run:
        await agent.run("Do it.")
    assert outcomes(guard, run) == [("note", "ok", True)]
    assert seen[:2] == seen[2:]


async def test_a_toolset_that_is_guarded_makes_a_call_once_in_an_agent_that_is_guarded_too(guard: Guard) -> None:
    toolset: FunctionToolset[None] = FunctionToolset([note, fail])
    both = Agent(
        scripted(Script([NOTE], "Done.")),
        toolsets=[GuardrailToolset(toolset, guard)],
        capabilities=[GuardrailCapability(guard)],
    )
    async with guard.run() as run:
        await both.run("Do it.")
    assert outcomes(guard, run) == [("note", "ok", True)]


def shop(ran: list[str]) -> FastMCP[Any]:
    server: FastMCP[Any] = FastMCP("shop")

    @server.tool(annotations={"readOnlyHint": True})
    def look() -> str:
        ran.append("look")
        return "here"

    @server.tool(annotations={"destructiveHint": True})
    def fail() -> str:
        ran.append("fail")
        raise RuntimeError("it is away")

    @server.tool(annotations={"destructiveHint": True})
    def note() -> str:
        ran.append("note")
        return "noted"

    return server


@pytest.mark.parametrize(("trusted", "looked"), [(True, ["fail", "look"]), (False, ["fail"])])
async def test_tools_of_an_mcp_server_are_guarded_with_what_it_says_of_them(
    tmp_path: Path, trusted: bool, looked: list[str]
) -> None:
    ran: list[str] = []
    servers = {"shop": {"trust_annotations": trusted}}
    with Guard(Configuration.model_validate({"servers": servers})) as guard:
        agent = Agent(
            scripted(Script([FAIL], [asked("look")], [NOTE], "Done.")),
            toolsets=[MCPToolset(shop(ran), id="shop")],
            capabilities=[GuardrailCapability(guard)],
            retries=3,
        )
        with pytest.raises(RunStopped) as stopped:
            async with guard.run():
                await agent.run("Do it.")
    assert ran == looked
    assert stopped.value.stop.tool == "note"


def test_the_code_of_the_page_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    shop = shop_of_the_page(tmp_path)
    model = scripted(Script([asked("refund_order", order_id=17, amount="19.90")], "Refunded."))
    run_page("pydantic-ai", model=model, lookup_order=shop.lookup_order, refund_order=shop.refund_order)
    assert capsys.readouterr().out == "verified\n"
