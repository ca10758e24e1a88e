"""What only LangChain and LangGraph have: graphs of one's own, and the code of their page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.messages.tool import tool_call
from langchain_core.tools import StructuredTool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode
from langgraph.types import Command, interrupt

from guardrail import RunStopped
from guardrail_langchain import GuardrailMiddleware, guarded_node
from support.kits.langchain import LangChain, Scripted
from support.kits.pages import LOOK, REFUND, run_page, shop_of_the_page
from support.kits.stage import Script, asked
from support.kits.theatre import REFUND as INPUTS
from support.kits.theatre import Theatre

NOTE = asked("note_order", order_id=17, note="done")
TASK: Any = {"messages": [("user", "Do it.")]}


@pytest.mark.parametrize("handled", [False, True], ids=["errors are raised", "errors become messages"])
def test_a_node_in_a_graph_of_ones_own_is_guarded(tmp_path: Path, *, handled: bool) -> None:
    with Theatre(LangChain(), "sync", tmp_path) as theatre:
        tools = theatre.tools()
        guard = theatre.guard(tools)
        functions = tools.functions(asynchronous=False)
        node = guarded_node(guard, [*map(StructuredTool.from_function, functions)], handle_tool_errors=handled)
        graph = StateGraph(MessagesState).add_node("tools", node).add_edge(START, "tools").add_edge("tools", END)
        asked = [tool_call(name=name, args={"order_id": 17}, id=name) for name in ("lookup_order", "cancel_order")]
        note = tool_call(name="note_order", args={"order_id": 17, "note": "done"}, id="note")
        agent = graph.compile()
        with pytest.raises(RunStopped) as caught, guard.run():
            *_, last = agent.invoke({"messages": [AIMessage("", tool_calls=asked)]})["messages"]
            assert isinstance(last, ToolMessage)
            agent.invoke({"messages": [AIMessage("", tool_calls=[note])]})
    assert caught.value.stop.reason == "write_under_hold"
    assert tools.begun == ["lookup_order", "cancel_order"]


@pytest.mark.parametrize("name", ["clerk", "general-purpose"])
def test_an_agent_that_a_deep_agent_has_is_guarded_by_the_same_middleware(tmp_path: Path, name: str) -> None:
    """Its own agent for general purposes takes none, so that one is declared by its name."""
    deepagents = pytest.importorskip("deepagents", reason="deepagents is not in this environment")
    ask = asked("task", description="See to it.", subagent_type=name)
    with Theatre(LangChain(), "sync", tmp_path) as theatre:
        tools = theatre.tools()
        guard = theatre.guard(tools)
        functions = [*map(StructuredTool.from_function, tools.functions(asynchronous=False))]
        inner = Scripted(script=Script([asked("cancel_order", order_id=17)], [NOTE], "Done."))
        outer = Script([ask], "All done.")
        middleware = [GuardrailMiddleware(guard)]
        clerk = {
            **{"name": name, "description": "Sees to it.", "system_prompt": "See to it."},
            **{"model": inner, "middleware": middleware},
        }
        agent = deepagents.create_deep_agent(
            Scripted(script=outer), functions, middleware=middleware, subagents=[clerk]
        )
        with pytest.raises(RunStopped) as caught, guard.run():
            agent.invoke({"messages": [("user", "Do it.")]})
    assert caught.value.stop.reason == "write_under_hold"
    assert tools.begun == ["cancel_order"]
    assert outer.requests == 1


@pytest.mark.parametrize("handled", [True, "Try again.", TimeoutError, (TimeoutError, OSError), lambda error: "Hm."])
def test_an_error_that_a_node_makes_a_message_of_is_judged_before(tmp_path: Path, handled: Any) -> None:
    ran: list[int] = []

    def ship_order(order_id: int) -> str:
        """Ship an order."""
        ran.append(order_id)
        raise TimeoutError("the carrier did not answer")

    tool = StructuredTool.from_function(ship_order)
    asked_twice = [
        AIMessage("", tool_calls=[tool_call(name="ship_order", args={"order_id": 17}, id=f"c{n}")]) for n in (1, 2)
    ]
    with Theatre(LangChain(), "sync", tmp_path) as theatre:
        guard = theatre.guard(theatre.tools())
        said = []
        for node in (
            ToolNode([tool], handle_tool_errors=handled),
            guarded_node(guard, [tool], handle_tool_errors=handled),
        ):
            graph = StateGraph(MessagesState).add_node("tools", node).add_edge(START, "tools").add_edge("tools", END)
            with guard.run() as run:
                said.append(
                    [graph.compile().invoke({"messages": [one]})["messages"][-1].content for one in asked_twice]
                )
        history = guard.ledger.load_run(run.id)
    assert said[1][0] == said[0][0]
    assert "may have succeeded" in said[1][1]
    assert ran == [17, 17, 17]
    assert history is not None
    assert [call.outcome and call.outcome.outcome for call in history.calls] == ["in_doubt", "refused"]


def test_a_tool_that_asks_a_person_was_not_made_until_it_is_answered(tmp_path: Path) -> None:
    ran: list[str] = []

    def ship_order(order_id: int) -> str:
        """Ship an order."""
        ran.append(interrupt("May it be shipped?"))
        return "shipped"

    with Theatre(LangChain(), "sync", tmp_path) as theatre:
        guard = theatre.guard(theatre.tools())
        model = Scripted(script=Script([asked("ship_order", order_id=17)], "Shipped."))
        tool = StructuredTool.from_function(ship_order)
        middleware = [GuardrailMiddleware(guard)]
        agent = create_agent(model, [tool], middleware=middleware, checkpointer=InMemorySaver())
        config: Any = {"configurable": {"thread_id": "chat"}}
        with guard.run(id="chat:1") as waiting:
            assert agent.invoke(TASK, config)["__interrupt__"]
            assert waiting.open_holds == 0
            waiting.abandon("waits for a person")
        with guard.run(id="chat:1") as run:
            agent.invoke(Command(resume="yes"), config)
            assert (run.open_holds, run.stop) == (0, None)
    assert ran == ["yes"]


def test_a_run_that_waits_for_an_approval_is_left_openly_and_taken_up_again(tmp_path: Path) -> None:
    """As the page says: what waits is abandoned, else it is judged as done."""
    with Theatre(LangChain(), "sync", tmp_path) as theatre:
        tools = theatre.tools()
        guard = theatre.guard(tools)
        functions = [*map(StructuredTool.from_function, tools.functions(asynchronous=False))]
        asking = HumanInTheLoopMiddleware(interrupt_on={"refund_order": True})
        refund = asked("refund_order", order_id=17, amount="19.90")
        model = Scripted(script=Script([asked("lookup_order", order_id=17)], [refund], "Refunded."))
        middleware = [asking, GuardrailMiddleware(guard)]
        agent = create_agent(model, functions, middleware=middleware, checkpointer=InMemorySaver())
        config: Any = {"configurable": {"thread_id": "chat"}}
        with guard.run("refund_order", inputs=INPUTS, id="chat:1") as waiting:
            assert agent.invoke(TASK, config)["__interrupt__"]
            waiting.abandon("waits for an approval")
        with guard.run("refund_order", inputs=INPUTS, id="chat:1") as run:
            agent.invoke(Command(resume={"decisions": [{"type": "approve"}]}), config)
    assert waiting.verdict is not None
    assert run.verdict is not None
    assert (waiting.verdict.kind, run.verdict.kind) == ("agent_error", "verified")
    assert tools.begun == ["lookup_order", "refund_order"]


def test_the_code_of_the_page_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    shop = shop_of_the_page(tmp_path)
    model = Scripted(script=Script([LOOK], [REFUND], "Refunded."))
    run_page("langchain", model=model, lookup_order=shop.lookup_order, refund_order=shop.refund_order)
    assert capsys.readouterr().out == "verified\n"
