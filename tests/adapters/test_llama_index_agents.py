"""What only LlamaIndex has: agents that hand over, tools that wait for a person, contexts that are kept."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from llama_index.core.agent.workflow import ReActAgent
from llama_index.core.llms import ChatMessage, ChatResponse
from llama_index.core.tools import FunctionTool
from llama_index.core.workflow import Context, HumanResponseEvent, InputRequiredEvent

from guardrail import RunStopped
from support.kits.llama_index import LlamaIndex, Scripted, Workflow
from support.kits.pages import run_page, shop_of_the_page
from support.kits.stage import Mode, Scene, Script, asked
from support.kits.theatre import Theatre

LOOK = asked("lookup_order", order_id=17)
REFUND = asked("refund_order", order_id=17, amount="19.90")
CANCEL = asked("cancel_order", order_id=17)
NOTE = asked("note_order", order_id=17, note="done")


def test_an_agent_to_which_another_handed_over_is_guarded(tmp_path: Path) -> None:
    hand_over = asked("handoff", to_agent="second", reason="it knows more")
    with Theatre(Workflow(), "async", tmp_path) as theatre:
        played = theatre.play([CANCEL], [hand_over], [NOTE], "Done.")
        assert isinstance(played.error, RunStopped), played.error
        assert played.requests == 3
        assert played.outcomes == [("cancel_order", "rejected"), ("note_order", "refused")]


class Waiting(LlamaIndex):
    """An agent with a tool that waits for a person, who says yes."""

    async def aplay(self, scene: Scene, mode: Mode) -> str:
        async def refund_order(ctx: Context, order_id: int, amount: str) -> Any:
            asking = InputRequiredEvent(prefix="May I?")  # type: ignore[call-arg]
            await ctx.wait_for_event(HumanResponseEvent, waiter_event=asking)
            return scene.tools.refund_order(order_id, amount)

        tool = FunctionTool.from_defaults(async_fn=refund_order)
        agent = self.guarded(scene, self.agent(scene.script, [tool], streaming=True))
        handler = agent.run("Do it.")
        async for event in handler.stream_events():
            if isinstance(event, InputRequiredEvent):
                handler.ctx.send_event(HumanResponseEvent(response="yes"))  # type: ignore[call-arg]
        return str(await handler)


def test_a_tool_that_waits_for_a_person_is_judged_by_what_it_comes_to(tmp_path: Path) -> None:
    with Theatre(Waiting(), "async stream", tmp_path) as theatre:
        played = theatre.play([REFUND], "Refunded.", task="refund_order")
        assert played.error is None, played.error
        assert played.run is not None
        assert str(played.run.verdict) == "verified"
        assert played.outcomes == [("refund_order", "error"), ("refund_order", "ok")]  # begun anew after the wait


class Kept(LlamaIndex):
    """An agent whose context is kept as a text, and taken up from it."""

    async def aplay(self, scene: Scene, mode: Mode) -> str:
        agent = self.guarded(scene, self.agent(scene.script, self.tools(scene, mode), streaming=False))
        kept = scene.kept.get("context")
        context = Context(agent) if kept is None else Context.from_dict(agent, kept)
        try:
            return str(await agent.run("Do it.", ctx=context))
        finally:
            scene.kept["context"] = context.to_dict()


def test_a_context_that_is_taken_up_stays_stopped(tmp_path: Path) -> None:
    with Theatre(Kept(), "async", tmp_path) as theatre:
        tools = theatre.tools()
        theatre.play([CANCEL], [NOTE], "Done.", tools=tools, id="ticket-1")
        again = theatre.play([LOOK], [REFUND], "Done.", tools=tools, id="ticket-1")
        assert isinstance(again.error, RunStopped), again.error
        assert (again.requests, tools.begun) == (0, ["cancel_order"])


class Thinking(Scripted):
    """A model without function calling: it writes what it wants."""

    async def achat(self, messages: Any, **options: Any) -> ChatResponse:
        _, turn = self.script.next([])
        return ChatResponse(message=ChatMessage(role="assistant", content=str(turn)))


class ReAct(LlamaIndex):
    def agent(self, script: Any, tools: Any, *, streaming: bool) -> Any:
        return ReActAgent(llm=Thinking(script=script), tools=tools, streaming=False)


def test_an_agent_that_writes_its_calls_is_guarded(tmp_path: Path) -> None:
    with Theatre(ReAct(), "async", tmp_path) as theatre:
        played = theatre.play(
            'Thought: I cancel.\nAction: cancel_order\nAction Input: {"order_id": 17}',
            'Thought: I note.\nAction: note_order\nAction Input: {"order_id": 17, "note": "done"}',
            "Thought: Done.\nAnswer: Done.",
        )
        assert isinstance(played.error, RunStopped), played.error
        assert played.requests == 2
        assert played.begun == ["cancel_order"]


def test_who_reads_an_agents_events_is_told_of_a_stop(tmp_path: Path) -> None:
    with Theatre(LlamaIndex(), "async", tmp_path) as theatre:
        tools = theatre.tools()
        guard = theatre.guard(tools, "strict")
        scene = theatre.scene(tools, ([CANCEL], "Done."), guard)

        async def read() -> list[str]:
            kit = LlamaIndex()
            agent = kit.guarded(scene, kit.agent(scene.script, kit.tools(scene, "async"), streaming=True))
            handler = agent.run("Do it.")
            return [type(event).__name__ async for event in handler.stream_events()]

        async def watched() -> list[str]:
            with pytest.raises(RunStopped):
                async with guard.run():
                    seen.extend(await read())
            return seen

        seen: list[str] = []
        assert "WorkflowFailedEvent" in asyncio.run(watched())


def test_the_code_of_the_page_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    shop = shop_of_the_page(tmp_path)
    script = Script([asked("refund_order", order_id=17, amount="19.90")], "Refunded.")
    run_page("llama-index", llm=Scripted(script=script), lookup_order=shop.lookup_order, refund_order=shop.refund_order)
    assert capsys.readouterr().out == "verified\n"
