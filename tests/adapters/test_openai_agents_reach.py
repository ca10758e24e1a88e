"""What only the Agents SDK has: MCP servers, agents that hand over, tools of other kinds, approvals, sessions."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from agents import (
    Agent,
    CustomTool,
    Handoff,
    Model,
    ModelResponse,
    Runner,
    ShellTool,
    SQLiteSession,
    Usage,
    function_tool,
    handoff,
)
from agents.mcp import MCPServerStdio
from openai.types.responses import Response

from guardrail import Configuration, Guard, RunStopped
from guardrail.errors import GuardrailError
from guardrail_openai_agents import guarded
from support.kits.openai_agents import SPOKEN, Scripted, config
from support.kits.pages import LOOK as LOOKED
from support.kits.pages import REFUND, played
from support.kits.stage import Script, Turn, asked
from support.kits.wire import endpoint

CANCEL = asked("cancel_order", order_id=17)
NOTE = asked("note_order", order_id=17)
LOOK = asked("lookup_order", order_id=17)
CALL, OUTPUT = "function_call", "function_call_output"
TOOLS = {
    "cancel_order": {"effect": "write"},
    "note_order": {"effect": "write"},
    "lookup_order": {"effect": "read"},
    "shell": {"effect": "write"},
    "patch": {"effect": "write"},
}

SERVER = """
from mcp.types import CallToolResult
try:
    from mcp.server.mcpserver import MCPServer
except ImportError:
    from mcp.server.fastmcp import FastMCP as MCPServer

server = MCPServer("shop")

@server.tool()
def cancel_order(order_id: int) -> CallToolResult:
    text = {"type": "text", "text": "the parcel of order 17 left on Monday"}
    return CallToolResult.model_validate({"content": [text], "isError": order_id == 17})

@server.tool()
def note_order(order_id: int) -> str:
    return "noted"

server.run()
"""


class Shop:
    """Tools, and what ran of them."""

    def __init__(self) -> None:
        self.begun: list[str] = []

    def cancel_order(self, order_id: int) -> dict[str, str]:
        self.begun.append("cancel_order")
        return {"error": "only an open order can be cancelled"}

    def note_order(self, order_id: int) -> dict[str, int]:
        self.begun.append("note_order")
        return {"noted": order_id}

    def lookup_order(self, order_id: int) -> dict[str, Any]:
        self.begun.append("lookup_order")
        return {"id": order_id}

    @property
    def tools(self) -> list[Any]:
        return [function_tool(self.cancel_order), function_tool(self.note_order), function_tool(self.lookup_order)]


@pytest.fixture
def shop() -> Shop:
    return Shop()


@pytest.fixture
def guard(tmp_path: Path) -> Any:
    whole = {"ledger": str(tmp_path / "ledger.db"), "tools": TOOLS}
    with Guard(Configuration.model_validate(whole)) as made:
        yield made


def outcomes(guard: Guard, run: str) -> list[tuple[str, str | None, str]]:
    history = guard.ledger.load_run(run)
    assert history is not None
    return [(call.call.tool, call.call.call_id, call.outcome.outcome if call.outcome else "") for call in history.calls]


class Raw(Model):
    """A model that gives items of the responses API, one request after another."""

    def __init__(self, *turns: dict[str, Any]) -> None:
        self.turns = list(turns)

    async def get_response(self, system_instructions: Any, input: Any, *args: Any, **options: Any) -> ModelResponse:
        whole = SPOKEN.whole("scripted", len(self.turns), "Done.")
        if self.turns:
            whole["output"] = [self.turns.pop(0)]
        return ModelResponse(Response.model_validate(whole).output, Usage(), None)

    def stream_response(self, *args: Any, **options: Any) -> Any:
        """The interface wants it; what streams is told to the contract's model, and not to this one."""
        raise AssertionError("no test streams what this model says")


def agent(*turns: Turn, **parts: Any) -> Agent[Any]:
    return Agent(**{"name": "agent", "model": Scripted(Script(*turns)), **parts})


async def test_a_tool_of_an_mcp_server_is_judged_by_what_the_server_answered(guard: Guard, tmp_path: Path) -> None:
    file = tmp_path / "server.py"
    file.write_text(SERVER)
    answers = [[asked("cancel_order", order_id=18)], [NOTE], [CANCEL], [NOTE], "Done."]
    params: Any = {"command": sys.executable, "args": [str(file)]}
    async with MCPServerStdio(params, client_session_timeout_seconds=50) as server:
        model = Scripted(Script(*answers))
        with pytest.raises(RunStopped) as caught:
            async with guard.run() as run:
                await Runner.run(
                    guarded(guard, agent(model=model, mcp_servers=[server])), "Do it.", run_config=config()
                )
    assert caught.value.stop.reason == "write_under_hold"
    assert [outcome for _, _, outcome in outcomes(guard, run.id)] == ["ok", "ok", "error", "refused"]
    assert model.script.seen[3] == ["the parcel of order 17 left on Monday"]


def test_an_agent_as_a_tool_must_be_guarded_itself(guard: Guard) -> None:
    clerk = agent("Done.", name="clerk")
    with pytest.raises(GuardrailError, match=r"ask_clerk.*guarded\(guard, agent\).as_tool"):
        guarded(guard, agent("Done.", tools=[clerk.as_tool("ask_clerk", "Ask the clerk.")]))
    boss = guarded(guard, agent("Done.", tools=[guarded(guard, clerk).as_tool("ask_clerk", "Ask the clerk.")]))
    assert boss is guarded(guard, boss)


def by_agent(worker: Agent[Any]) -> Any:
    return worker


def by_handoff(worker: Agent[Any]) -> Any:
    return handoff(worker)


def by_an_agent_made_on_the_way(worker: Agent[Any]) -> Any:
    async def made(context: Any, text: str) -> Agent[Any]:
        return worker.clone()

    return Handoff("transfer_to_agent", "Hand over.", {}, made, "agent")


@pytest.mark.parametrize("way", [by_agent, by_handoff, by_an_agent_made_on_the_way])
async def test_agents_that_are_handed_over_to_are_guarded_also_in_a_circle(
    guard: Guard, shop: Shop, way: Callable[[Agent[Any]], Any]
) -> None:
    to_agent, to_desk = [asked("transfer_to_agent")], [asked("transfer_to_desk")]
    model = Scripted(Script(to_agent, [CANCEL], to_desk, to_agent, [NOTE], "Done."))
    desk = agent(name="desk", model=model)
    worker = agent(model=model, tools=shop.tools, handoffs=[desk])
    desk.handoffs.append(way(worker))
    with pytest.raises(RunStopped):
        async with guard.run():
            await Runner.run(guarded(guard, desk), "Do it.", run_config=config())
    assert shop.begun == ["cancel_order"]


@pytest.mark.parametrize("way", ["cloned with it", "added to it"])
async def test_an_agent_that_is_added_afterwards_is_guarded(guard: Guard, shop: Shop, way: str) -> None:
    model = Scripted(Script([asked("transfer_to_agent")], [CANCEL], [NOTE], "Done."))
    worker = agent(model=model, tools=shop.tools)
    desk = guarded(guard, agent(name="desk", model=model))
    if way == "added to it":
        desk.handoffs.append(worker)
    else:
        desk = desk.clone(handoffs=[worker])
    with pytest.raises(RunStopped):
        async with guard.run():
            await Runner.run(desk, "Do it.", run_config=config())
    assert shop.begun == ["cancel_order"]


async def test_a_server_that_repeats_calls_by_itself_is_refused(guard: Guard, tmp_path: Path) -> None:
    file = tmp_path / "server.py"
    file.write_text(SERVER)
    async with MCPServerStdio({"command": sys.executable, "args": [str(file)]}, max_retry_attempts=2) as server:
        with pytest.raises(GuardrailError, match="repeats calls by itself"):
            guarded(guard, agent(mcp_servers=[server]))


async def test_a_copy_of_a_guarded_agent_is_guarded(guard: Guard, shop: Shop) -> None:
    made = guarded(guard, agent([CANCEL], [NOTE], "Done.")).clone(tools=shop.tools)
    with pytest.raises(RunStopped):
        async with guard.run():
            await Runner.run(made, "Do it.", run_config=config())
    assert shop.begun == ["cancel_order"]


async def test_custom_tools_and_shells_are_guarded(guard: Guard) -> None:
    begun: list[str] = []

    def patch(context: Any, text: str) -> str:
        begun.append(text)
        return '{"error": "only an open file can be patched"}'

    async def execute(request: Any) -> str:
        begun.append(request.data.action.commands[0])
        return "removed"

    model = Raw(
        {"type": "custom_tool_call", "call_id": "c1", "id": "i1", "name": "patch", "input": "+ line"},
        {
            "type": "shell_call",
            "call_id": "c2",
            "id": "i2",
            "status": "completed",
            "action": {"commands": ["rm line"], "timeout_ms": None, "max_output_length": None},
            "environment": None,
        },
    )
    tools = [CustomTool("patch", "Patch a file.", patch), ShellTool(execute)]
    with pytest.raises(RunStopped):
        async with guard.run() as run:
            await Runner.run(guarded(guard, agent(model=model, tools=tools)), "Do it.", run_config=config())
    assert begun == ["+ line"]
    assert outcomes(guard, run.id) == [("patch", "c1", "rejected"), ("shell", "c2", "refused")]


async def test_a_run_that_waits_for_an_approval_is_guarded_when_it_goes_on(guard: Guard, shop: Shop) -> None:
    tools = [function_tool(shop.cancel_order, needs_approval=True), function_tool(shop.note_order)]
    made = guarded(guard, agent([CANCEL], [NOTE], "Done.", tools=tools))
    with pytest.raises(RunStopped):
        async with guard.run() as run:
            result = await Runner.run(made, "Do it.", run_config=config())
            assert shop.begun == []
            state = result.to_state()
            state.approve(result.interruptions[0])
            await Runner.run(made, state, run_config=config())
    assert shop.begun == ["cancel_order"]
    assert [outcome for _, _, outcome in outcomes(guard, run.id)] == ["rejected", "refused"]


async def streamed(made: Agent[Any], text: str, **options: Any) -> Any:
    result = Runner.run_streamed(made, text, **options)
    async for _ in result.stream_events():
        pass
    return result


@pytest.mark.parametrize("play", [Runner.run, streamed], ids=["run", "streamed"])
async def test_a_session_outlives_a_stop_and_the_run_stays_stopped(
    guard: Guard, shop: Shop, tmp_path: Path, play: Callable[..., Any]
) -> None:
    session = SQLiteSession("thread", tmp_path / "session.db")
    model = Scripted(Script([CANCEL], [LOOK, NOTE], [LOOK], "Done."))
    made = guarded(guard, agent(model=model, tools=shop.tools))
    for requests in (2, 2):
        with pytest.raises(RunStopped):
            async with guard.run(id="ticket-1"):
                await play(made, "Do it.", session=session, run_config=config())
        assert model.script.requests == requests
    async with guard.run():
        result = await play(made, "Look at it.", session=session, run_config=config())
    assert result.final_output == "Done."
    items: list[Any] = [*await session.get_items()]
    session.close()
    calls, answers = ([i["call_id"] for i in items if i.get("type") == kind] for kind in (CALL, OUTPUT))
    assert sorted(calls) == sorted(answers)


async def test_the_page_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    script = Script([LOOKED], [REFUND], "Refunded.")
    monkeypatch.setenv("OPENAI_BASE_URL", f"{endpoint(script)}/v1")
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    monkeypatch.setenv("OPENAI_AGENTS_DISABLE_TRACING", "1")
    await played("openai-agents", tmp_path, monkeypatch)["refund"]()
    assert capsys.readouterr().out == "Refunded. verified\n"
