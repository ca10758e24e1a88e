"""What only ADK has: agents that hand over, calls that a person confirms, live sessions, tools without a model."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from google.adk.agents import LiveRequestQueue, LlmAgent
from google.adk.agents.run_config import RunConfig, ToolThreadPoolConfig
from google.adk.models.base_llm_connection import BaseLlmConnection
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.runners import Runner
from google.adk.tools.function_tool import FunctionTool
from google.adk.tools.tool_context import ToolContext
from google.adk.workflow import Workflow
from google.genai import types

from guardrail import RunStopped
from support.kits.google_adk import GoogleAdk, Scripted, runner, settings, text
from support.kits.stage import Mode, Scene, asked
from support.kits.theatre import Theatre

LOOK = asked("lookup_order", order_id=17)
REFUND = asked("refund_order", order_id=17, amount="19.90")
CANCEL = asked("cancel_order", order_id=17)
NOTE = asked("note_order", order_id=17, note="done")


class Team(GoogleAdk):
    """An agent that hands over to another one, which has the same model and tools."""

    def agent(self, scene: Scene, mode: Mode) -> LlmAgent:
        clerk = super().agent(scene, mode).clone(update={"name": "clerk"})
        return super().agent(scene, mode).clone(update={"sub_agents": [clerk]})


def test_an_agent_to_which_another_handed_over_is_guarded_and_handing_over_is_no_call(tmp_path: Path) -> None:
    with Theatre(Team(), "async", tmp_path) as theatre:
        played = theatre.play([CANCEL], [asked("transfer_to_agent", agent_name="clerk")], [NOTE], "Done.")
        assert isinstance(played.error, RunStopped), played.error
        assert played.requests == 3
        assert played.outcomes == [("cancel_order", "rejected"), ("note_order", "refused")]


class Confirmed(GoogleAdk):
    """A refund that a person has to confirm; the person says what `answer` is."""

    def __init__(self, *, answer: bool, by_tool: bool) -> None:
        self.answer = answer
        self.by_tool = by_tool

    def agent(self, scene: Scene, mode: Mode) -> LlmAgent:
        def refund_order(order_id: int, amount: str, tool_context: ToolContext) -> dict[str, Any]:
            if self.by_tool and tool_context.tool_confirmation is None:
                tool_context.request_confirmation(hint="May I?")
                return {"error": "a person is asked"}
            return scene.tools.refund_order(order_id, amount)

        tool = FunctionTool(refund_order, require_confirmation=not self.by_tool)
        return super().agent(scene, mode).clone(update={"tools": [tool]})

    async def aplay(self, scene: Scene, mode: Mode) -> str:
        made, said = runner(self.agent(scene, mode), scene), settings(scene, mode)
        events = [event async for event in made.run_async(**said)]
        [asking] = [call for e in events for call in e.get_function_calls() if call.name == "adk_request_confirmation"]
        answer = types.FunctionResponse(id=asking.id, name=asking.name, response={"confirmed": self.answer})
        said["new_message"] = types.Content(role="user", parts=[types.Part(function_response=answer)])
        *_, last = [event async for event in made.run_async(**said)]
        return text(last)


@pytest.mark.parametrize("by_tool", [False, True], ids=["by the framework", "by the tool"])
def test_a_call_that_a_person_confirms_is_judged_when_it_is_made(tmp_path: Path, by_tool: bool) -> None:
    with Theatre(Confirmed(answer=True, by_tool=by_tool), "async", tmp_path) as theatre:
        played = theatre.play([REFUND], *(["Wait."] if by_tool else []), "Refunded.", task="refund_order")
        assert played.error is None, played.error
        assert played.run is not None
        assert str(played.run.verdict) == "verified"
        assert played.outcomes[-1] == ("refund_order", "ok")


def test_a_call_that_a_person_rejects_is_not_made(tmp_path: Path) -> None:
    with Theatre(Confirmed(answer=False, by_tool=False), "async", tmp_path) as theatre:
        played = theatre.play([REFUND], "It was not to be.")
        assert (played.error, played.said, played.outcomes) == (None, "It was not to be.", [])


class Connection(BaseLlmConnection):
    """A live model that says what the script says, whenever it is told something."""

    def __init__(self, model: Scripted) -> None:
        self.model = model
        self.said = asyncio.Queue[LlmResponse]()

    async def send_history(self, history: list[types.Content]) -> None:
        pass

    async def send_content(self, content: types.Content) -> None:
        async for said in self.model.generate_content_async(LlmRequest(contents=[content])):
            self.said.put_nowait(said)
        self.said.put_nowait(LlmResponse(turn_complete=True))

    async def send_realtime(self, blob: Any) -> None:
        pass

    async def receive(self) -> AsyncGenerator[LlmResponse, None]:
        while True:
            yield await self.said.get()

    async def close(self) -> None:
        pass


class LiveScripted(Scripted):
    @asynccontextmanager
    async def connect(self, llm_request: LlmRequest) -> AsyncIterator[BaseLlmConnection]:
        yield Connection(self)


class Live(GoogleAdk):
    """The agent in a live session, until it says something."""

    async def aplay(self, scene: Scene, mode: Mode) -> str:
        model = LiveScripted(model="scripted", script=scene.script)
        queue = LiveRequestQueue()
        said = settings(scene, mode)
        queue.send_content(said.pop("new_message"))
        said["run_config"] = RunConfig(response_modalities=[types.Modality.TEXT])
        agent = self.agent(scene, mode).clone(update={"model": model})
        async for event in runner(agent, scene).run_live(live_request_queue=queue, **said):
            if event.content is not None and text(event):
                return text(event)
        raise AssertionError("the session ended without a word")


def test_a_live_session_is_guarded(tmp_path: Path) -> None:
    with Theatre(Live(), "async", tmp_path) as theatre:
        played = theatre.play([LOOK], [REFUND], "Refunded.", task="refund_order")
        assert (played.said, str(played.run and played.run.verdict)) == ("Refunded.", "verified")
        played = theatre.play([CANCEL], [NOTE], "Done.")
        assert isinstance(played.error, RunStopped), played.error
        assert (played.requests, played.begun) == (2, ["cancel_order"])


class Pooled(GoogleAdk):
    """Plain tools, called in threads of a pool."""

    async def aplay(self, scene: Scene, mode: Mode) -> str:
        said = settings(scene, mode)
        said["run_config"] = RunConfig(tool_thread_pool_config=ToolThreadPoolConfig(max_workers=2))
        made = runner(self.agent(scene, "sync"), scene)
        *_, last = [event async for event in made.run_async(**said)]
        return text(last)


def test_tools_in_threads_of_a_pool_are_guarded(tmp_path: Path) -> None:
    with Theatre(Pooled(), "async", tmp_path) as theatre:
        played = theatre.play([LOOK, LOOK], [CANCEL], [NOTE], "Done.")
        assert isinstance(played.error, RunStopped), played.error
        assert played.begun == ["lookup_order", "lookup_order", "cancel_order"]


class Plan(GoogleAdk):
    """Tools in a row, without a model."""

    async def aplay(self, scene: Scene, mode: Mode) -> str:
        cancel, note = (FunctionTool(f) for f in (scene.tools.cancel_order, scene.tools.note_order))
        made = runner(Workflow(name="plan", edges=[("START", cancel, note)]), scene)
        said = settings(scene, mode)
        said["new_message"] = types.Content(role="user", parts=[types.Part(text='{"order_id": 17}')])
        return str([event async for event in made.run_async(**said)])


def test_the_tools_of_a_workflow_are_guarded(tmp_path: Path) -> None:
    with Theatre(Plan(), "async", tmp_path) as theatre:
        played = theatre.play(policy="strict")
        assert isinstance(played.error, RunStopped), played.error
        assert played.begun == ["cancel_order"]


def test_a_tool_is_as_it_was_in_a_runner_without_the_plugin(tmp_path: Path) -> None:
    with Theatre(GoogleAdk(), "async", tmp_path) as theatre:
        tools = theatre.tools()
        tool = FunctionTool(tools.cancel_order)
        guard = theatre.guard(tools, "strict")
        agent = LlmAgent(name="agent", tools=[tool])

        async def act(runs: Any) -> None:
            scene = theatre.scene(tools, ([CANCEL], "Done."), runs)
            model = Scripted(model="scripted", script=scene.script)
            made: Runner = runner(agent.clone(update={"model": model, "tools": [tool]}), scene)
            async for _ in made.run_async(**settings(scene, "async")):
                pass

        with pytest.raises(RunStopped), guard.run():
            asyncio.run(act(guard))
        asyncio.run(act(None))
        assert tools.begun == ["cancel_order", "cancel_order"]
