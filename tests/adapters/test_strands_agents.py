"""What only Strands has: tools that tell of their progress or ask a person, agents in graphs and swarms, and so on."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel
from strands import Agent, ToolContext, tool
from strands.multiagent import GraphBuilder, Swarm
from strands.tools.executors import SequentialToolExecutor
from strands.types.exceptions import EventLoopException

from guardrail import RunNotOpen, RunStopped
from support.kits.stage import Mode, Scene, Script, asked
from support.kits.strands import Strands
from support.kits.theatre import Theatre

LOOK = asked("lookup_order", order_id=17)
REFUND = asked("refund_order", order_id=17, amount="19.90")
CANCEL = asked("cancel_order", order_id=17)
NOTE = asked("note_order", order_id=17, note="done")


class Telling(Strands):
    """A refund that tells of its progress."""

    async def aplay(self, scene: Scene, mode: Mode) -> str:
        @tool
        async def refund_order(order_id: int, amount: str) -> AsyncGenerator[Any, None]:
            """Refund an order."""
            yield "looking"
            told.append("looked")
            yield scene.tools.refund_order(order_id, amount)

        told: list[str] = []
        async for event in self.guarded(scene, scene.script, [refund_order]).stream_async("Do it."):
            if "tool_stream_event" in event:
                told.append(str(event["tool_stream_event"]["data"])[:10])
        return ", ".join(told)


def test_what_a_tool_tells_of_its_progress_passes_as_it_comes(tmp_path: Path) -> None:
    with Theatre(Telling(), "async", tmp_path) as theatre:
        bare = theatre.bare([REFUND], "Refunded.")
        played = theatre.play([REFUND], "Refunded.", task="refund_order")
        assert (played.error, played.said) == (None, bare.said)
        assert str(played.said).startswith("looking, looked")
        assert str(played.run and played.run.verdict) == "verified"


class Asking(Strands):
    """A refund for which a person is asked, who says yes."""

    async def aplay(self, scene: Scene, mode: Mode) -> str:
        @tool(context=True)
        def refund_order(order_id: int, amount: str, tool_context: ToolContext) -> Any:
            """Refund an order."""
            assert tool_context.interrupt("may I", reason="it is much") == "yes"
            return scene.tools.refund_order(order_id, amount)

        agent = self.guarded(scene, scene.script, [refund_order])
        asking = await agent.invoke_async("Do it.")
        [interrupt] = asking.interrupts or ()
        answer: Any = [{"interruptResponse": {"interruptId": interrupt.id, "response": "yes"}}]
        return str(await agent.invoke_async(answer)).strip()


def test_a_call_for_which_a_person_is_asked_is_judged_when_it_is_made(tmp_path: Path) -> None:
    with Theatre(Asking(), "async", tmp_path) as theatre:
        played = theatre.play([REFUND], "Refunded.", task="refund_order")
        assert (played.error, played.said) == (None, "Refunded.")
        assert str(played.run and played.run.verdict) == "verified"
        assert played.outcomes == [("refund_order", "error"), ("refund_order", "ok")]


class Structured(Strands):
    """An agent that has to answer in a form, for which it has a tool."""

    async def aplay(self, scene: Scene, mode: Mode) -> str:
        class Answer(BaseModel):
            """What was done."""

            done: bool

        agent = self.guarded(scene, scene.script, [tool(f) for f in scene.functions(mode)])
        return str((await agent.invoke_async("Do it.", structured_output_model=Answer)).structured_output)


def test_an_answer_in_a_form_is_no_call(tmp_path: Path) -> None:
    with Theatre(Structured(), "async", tmp_path) as theatre:
        played = theatre.play([CANCEL], [asked("Answer", done=False)])
        assert (played.error, played.said) == (None, "done=False")
        assert played.outcomes == [("cancel_order", "rejected")]


class Sequential(Strands):
    def guarded(self, scene: Scene, script: Script, tools: Any, **options: Any) -> Agent:
        return super().guarded(scene, script, tools, tool_executor=SequentialToolExecutor(), **options)


def test_tools_one_after_another_are_guarded(tmp_path: Path) -> None:
    with Theatre(Sequential(), "sync", tmp_path) as theatre:
        played = theatre.play([CANCEL, NOTE, LOOK], [LOOK], "Done.")
        assert isinstance(played.error, RunStopped), played.error
        assert (played.requests, played.begun) == (1, ["cancel_order"])


class Team(Strands):
    """Two agents with the same model and tools, in a graph or a swarm."""

    def __init__(self, kind: str) -> None:
        self.kind = kind

    async def aplay(self, scene: Scene, mode: Mode) -> str:
        tools = [tool(f) for f in scene.functions(mode)]
        first, second = (self.guarded(scene, scene.script, tools, name=name) for name in ("first", "second"))
        if self.kind == "swarm":
            return str(await Swarm([first, second]).invoke_async("Do it."))
        builder = GraphBuilder()
        builder.add_edge(builder.add_node(first, "first"), builder.add_node(second, "second"))
        return str(await builder.build().invoke_async("Do it."))


def test_agents_of_a_graph_are_guarded(tmp_path: Path) -> None:
    with Theatre(Team("graph"), "async", tmp_path) as theatre:
        played = theatre.play([LOOK], "Looked.", [REFUND], "Refunded.", task="refund_order")
        assert str(played.run and played.run.verdict) == "verified"
        played = theatre.play([CANCEL], [NOTE], [LOOK], "Done.")
        assert isinstance(played.error, RunStopped), played.error
        assert (played.requests, played.begun) == (2, ["cancel_order"])


def test_an_agent_to_which_another_handed_over_is_guarded_and_handing_over_is_no_call(tmp_path: Path) -> None:
    with Theatre(Team("swarm"), "async", tmp_path) as theatre:
        hand_over = asked("handoff_to_agent", agent_name="second", message="You know more.")
        played = theatre.play([CANCEL], [hand_over], "Handed over.", [NOTE], "Done.")
        assert isinstance(played.error, RunStopped), played.error
        assert played.outcomes == [("cancel_order", "rejected"), ("note_order", "refused")]


def test_a_call_outside_of_a_run_is_told_to_the_program(tmp_path: Path) -> None:
    with Theatre(Strands(), "async", tmp_path) as theatre:
        tools = theatre.tools()
        scene = theatre.scene(tools, ([LOOK], "Looked."), theatre.guard(tools))
        with pytest.raises(EventLoopException) as caught:
            asyncio.run(Strands().aplay(scene, "async"))
        assert isinstance(caught.value.__cause__, RunNotOpen)
        assert tools.begun == []


def test_a_tool_that_the_program_calls_by_the_agent_is_guarded(tmp_path: Path) -> None:
    with Theatre(Strands(), "sync", tmp_path) as theatre:
        tools = theatre.tools()
        guard = theatre.guard(tools)
        agent = Strands().agent(theatre.scene(tools, (), guard), "sync")
        with pytest.raises(RunStopped), guard.run():
            agent.tool.cancel_order(order_id=17)
            agent.tool.note_order(order_id=17, note="done")
        assert tools.begun == ["cancel_order"]
