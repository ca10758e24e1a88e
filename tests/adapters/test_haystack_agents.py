"""What only Haystack has: pipelines, tools that are given to a run, agents that are stored."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import haystack.components.agents.agent as internals
import pytest
from haystack import Pipeline
from haystack.components.agents import Agent
from haystack.dataclasses import ChatMessage
from haystack.tools import Tool, Toolset

from guardrail import RunStopped
from guardrail_haystack import guarded
from support.kits.haystack import Haystack, Scripted
from support.kits.pages import run_page, shop_of_the_page
from support.kits.stage import Mode, Scene, Script, asked
from support.kits.theatre import Theatre

LOOK = asked("lookup_order", order_id=17)
CANCEL = asked("cancel_order", order_id=17)
NOTE = asked("note_order", order_id=17, note="done")
TASK = [ChatMessage.from_user("Do it.")]


class InPipeline(Haystack):
    def play(self, scene: Scene, mode: Mode) -> str:
        pipeline = Pipeline()
        pipeline.add_component("agent", self.agent(scene, mode))
        return str(pipeline.run({"agent": {"messages": TASK}})["agent"]["last_message"].text)


def test_a_stop_leaves_a_pipeline(tmp_path: Path) -> None:
    with Theatre(InPipeline(), "sync", tmp_path) as theatre:
        assert theatre.play([LOOK], "Found.").said == "Found."
        played = theatre.play([CANCEL], [NOTE], [LOOK], "Done.")
        assert isinstance(played.error, RunStopped), played.error
        assert (played.requests, played.begun) == (2, ["cancel_order"])


class OfTheRun(Haystack):
    """An agent that is given its tools when it is run."""

    def play(self, scene: Scene, mode: Mode) -> str:
        agent = self.agent(scene, mode)
        tools: Any = agent.tools
        agent.tools = []
        return str(agent.run(messages=TASK, tools=Toolset(tools))["last_message"].text)


def test_tools_that_are_given_to_a_run_are_guarded(tmp_path: Path) -> None:
    with Theatre(OfTheRun(), "sync", tmp_path) as theatre:
        played = theatre.play([CANCEL], [NOTE], [LOOK], "Done.")
        assert isinstance(played.error, RunStopped), played.error
        assert played.outcomes == [("cancel_order", "rejected"), ("note_order", "refused")]


def test_a_mistake_within_a_decorated_tool_is_no_misfit(tmp_path: Path) -> None:
    def with_session(tool: Any) -> Any:
        @functools.wraps(tool)
        def called(order_id: int) -> object:
            return tool("s", order_id)

        return called

    @with_session
    def ship_order(session: str, order_id: int) -> object:
        return "order " + order_id  # type: ignore[operator]

    schema = {"type": "object", "properties": {"order_id": {"type": "integer"}}, "required": ["order_id"]}
    tool = Tool(name="ship_order", description="Ship it.", parameters=schema, function=ship_order)
    with Theatre(Haystack(), "sync", tmp_path) as theatre:
        guard = theatre.guard(theatre.tools())
        model = Scripted(Script([asked("ship_order", order_id=17)], "Shipped."))
        with guard.run() as run:
            guarded(Agent(chat_generator=model, tools=[tool]), guard).run(messages=TASK)
            assert run.open_holds == 1


def test_a_tool_that_is_called_past_the_guard_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def as_another_release(tools: Any, **others: Any) -> Any:
        return run_tool(tools=[unguarded[tool.name] for tool in tools], **others)

    run_tool: Any = vars(internals)["_run_tool"]
    with Theatre(Haystack(), "sync", tmp_path) as theatre:
        monkeypatch.setattr(internals, "_run_tool", as_another_release)
        bare: Any = Haystack().agent(theatre.scene(theatre.tools(), ("Done.",), None), "sync")
        unguarded = {tool.name: tool for tool in bare.tools}
        played = theatre.play([LOOK], "Found.")
        assert isinstance(played.error, RuntimeError)
        assert "lookup_order was called past the guard" in str(played.error)
        assert played.requests == 1


def test_an_agent_is_not_stored_with_its_guard(tmp_path: Path) -> None:
    with Theatre(Haystack(), "sync", tmp_path) as theatre:
        tools = theatre.tools()
        scene = theatre.scene(tools, ("Done.",), None)
        agent = guarded(Agent(chat_generator=Scripted(scene.script)), theatre.guard(tools))
        with pytest.raises(TypeError, match="guard what is loaded"):
            agent.hooks["before_llm"][-1].to_dict()


def test_the_code_of_the_page_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    shop = shop_of_the_page(tmp_path)
    script = Script([asked("refund_order", order_id=17, amount="19.90")], "Refunded.")
    run_page(
        "haystack", chat_generator=Scripted(script), lookup_order=shop.lookup_order, refund_order=shop.refund_order
    )
    assert capsys.readouterr().out == "verified\n"
