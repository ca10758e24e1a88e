"""What only smolagents has: code that catches errors, agents that manage others, agents that are stored."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest
from smolagents import ChatMessage, CodeAgent
from smolagents.models import MessageRole
from smolagents.monitoring import LogLevel

from guardrail import RunStopped
from guardrail_smolagents import guarded
from support.kits.pages import run_page, shop_of_the_page
from support.kits.smolagents import Coding, ShopTool, SmolAgents, Writing
from support.kits.stage import Mode, Scene, Script, asked
from support.kits.theatre import Played, Theatre

CANCEL = asked("cancel_order", order_id=17)
LOOK = asked("lookup_order", order_id=17)
NOTE = asked("note_order", order_id=17, note="done")


class Verbatim(Writing):
    """A model whose turns are code, word by word."""

    def generate(self, messages: Any, *args: Any, **options: Any) -> ChatMessage:
        _, turn = self._said(messages)
        return ChatMessage(role=MessageRole.ASSISTANT, content=f"Thought: so be it.\n<code>\n{turn}\n</code>")


class Careless(Coding):
    def made(self, script: Script, **options: Any) -> Any:
        return CodeAgent(model=Verbatim(script), **options)


@pytest.mark.parametrize("caught", ["except Exception:", "except BaseException:", "except:"])
def test_code_that_catches_everything_does_not_go_on_after_a_stop(tmp_path: Path, caught: str) -> None:
    with Theatre(Careless(), "sync", tmp_path) as theatre:
        played = theatre.play(
            "print(cancel_order(17))",
            f"try:\n    note_order(17, 'done')\n{caught}\n    print('never mind')\nlookup_order(17)",
            "final_answer('Done.')",
        )
        assert isinstance(played.error, RunStopped), played.error
        assert (played.requests, played.begun) == (2, ["cancel_order"])


def test_code_does_not_reach_the_tool_inside_the_guard(tmp_path: Path) -> None:
    reach = "note_order.bare(17, 'x')"
    with Theatre(Careless(), "sync", tmp_path) as theatre:
        played = theatre.play(
            "cancel_order(17)", f"try:\n    note_order(17, 'x')\nfinally:\n    {reach}", "final_answer('x')"
        )
        assert isinstance(played.error, RunStopped), played.error
        assert played.begun == ["cancel_order"]


def test_code_that_names_no_arguments_is_recorded_with_their_names(tmp_path: Path) -> None:
    with Theatre(Careless(), "sync", tmp_path) as theatre:
        played = theatre.play("refund_order(17, amount='-1')", "final_answer('Done.')", task="refund_order")
        assert played.outcomes == [("refund_order", "precondition_failed")]


class Managing(SmolAgents):
    """An agent that manages another one, which has the tools."""

    def agent(self, scene: Scene, mode: Mode) -> Any:
        assert scene.inner is not None
        assert scene.runs is not None
        tools = [ShopTool(function) for function in scene.functions(mode)]
        options: dict[str, Any] = {"verbosity_level": LogLevel.OFF}
        clerk = self.made(scene.inner, tools=tools, name="clerk", description="A clerk.", **options)
        return guarded(self.made(scene.script, tools=[], managed_agents=[clerk], **options), scene.runs)


class ManagingByCode(Managing, Coding):
    """The same by code, which runs in threads that know of no run."""


@pytest.mark.parametrize("kit", [Managing(), ManagingByCode()], ids=["calls", "code"])
def test_an_agent_that_is_managed_is_guarded_in_whatever_thread_it_runs(tmp_path: Path, kit: SmolAgents) -> None:
    played: dict[int, Played] = {}
    scripts = [([CANCEL], [NOTE], [LOOK], "Done."), ([LOOK], [NOTE], "Noted.")]
    with Theatre(kit, "sync", tmp_path) as theatre:
        tools = [theatre.tools(), theatre.tools()]
        guard = theatre.guard(tools[0])
        ask = asked("clerk", task="Please see to it.", additional_args={})

        def play(number: int) -> None:
            played[number] = theatre.play(
                [ask], [LOOK], "Done.", tools=tools[number], guard=guard, inner=scripts[number]
            )

        threads = [threading.Thread(target=play, args=(number,)) for number in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert isinstance(played[0].error, RunStopped), played[0].error
    assert (played[0].requests, played[0].begun) == (1, ["cancel_order"])
    assert played[1].outcomes == [("lookup_order", "ok"), ("note_order", "ok")]


def test_a_guarded_agent_is_not_stored_without_its_guard(tmp_path: Path) -> None:
    with Theatre(SmolAgents(), "sync", tmp_path) as theatre:
        tools = theatre.tools()
        agent = SmolAgents().agent(theatre.scene(tools, ("Done.",), theatre.guard(tools)), "sync")
        with pytest.raises(TypeError, match="guard what is loaded"):
            agent.to_dict()


def test_the_code_of_the_page_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    shop = shop_of_the_page(tmp_path)
    script = Script([asked("refund_order", order_id=17, amount="19.90")], "Refunded.")
    tools = {tool.__name__: ShopTool(tool) for tool in (shop.lookup_order, shop.refund_order)}
    run_page("smolagents", model=Writing(script), **tools)
    assert capsys.readouterr().out.splitlines()[-1] == "verified"
