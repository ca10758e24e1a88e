"""What only CrewAI has: results that it keeps, tools that end the work, tasks in threads, managers, flows, written calls."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from crewai import Agent, BaseLLM, Crew, Process, Task
from crewai.agents.agent_adapters.base_agent_adapter import BaseAgentAdapter
from crewai.flow import Flow, start
from crewai.hooks import HookAborted
from crewai.mcp import MCPServerStdio
from crewai.tools import BaseTool, tool
from crewai.tools.tool_failure import ToolFailure
from crewai.utilities.string_utils import sanitize_tool_name
from pydantic import BaseModel

from guardrail import RunNotOpen, RunStopped
from guardrail.errors import RunHalted
from guardrail_crewai import guarded
from support.kits.crewai import Alone, CrewAI
from support.kits.pages import LOOK, REFUND, run_page, shop_of_the_page
from support.kits.stage import Mode, Scene, Script, Tools, asked
from support.kits.theatre import Theatre
from support.shop import Shop

CANCEL = asked("cancel_order", order_id=17)
NOTE = asked("note_order", order_id=17, note="done")


class Made(CrewAI):
    """An agent whose tools are made by a test, and changed options of the crew."""

    def __init__(self, *tools: Any, **options: Any) -> None:
        self.tools = tools
        self.options = options

    def agent(self, scene: Scene, mode: Mode, **options: Any) -> Agent:
        agent = super().agent(scene, mode, **options)
        made = [make(scene) for make in self.tools]
        names = {one.name for one in made}
        agent.tools = [*(one for one in agent.tools or () if one.name not in names), *made]
        return agent

    def crew(self, scene: Scene, mode: Mode, **options: Any) -> Crew:
        agent = self.agent(scene, mode)
        options = {"agents": [agent], "tasks": [work(agent)], "cache": False, **self.options, **options}
        return all_guarded(Crew(**options), scene)


def work(agent: Any, **options: Any) -> Task:
    return Task(description="Do it.", expected_output="It is done.", agent=agent, **options)


def all_guarded(crew: Crew, scene: Scene) -> Crew:
    return crew if scene.runs is None else guarded(crew, scene.runs)


def test_a_kept_result_is_no_call_and_a_refusal_is_not_kept(tmp_path: Path) -> None:
    wrong = asked("refund_order", order_id=17, amount="-1")
    with Theatre(Made(cache=True), "sync", tmp_path) as theatre:
        bare = theatre.bare([LOOK], [LOOK], "Done.")
        played = theatre.play([LOOK], [LOOK], [wrong], [wrong], "Done.", task="refund_order")
        assert bare.begun == ["lookup_order"]
        assert played.outcomes == [("lookup_order", "ok"), *[("refund_order", "precondition_failed")] * 2]
        assert "was not carried out" in played.told[4][0]


def test_a_result_that_is_the_answer_ends_the_work(tmp_path: Path) -> None:
    def refund(scene: Scene) -> Any:
        return tool(result_as_answer=True)(scene.tools.refund_order)

    with Theatre(Made(refund), "sync", tmp_path) as theatre:
        played = theatre.play([REFUND], "Never asked.", task="refund_order")
        assert (played.error, played.requests) == (None, 1)
        assert "refunded" in str(played.said)
        assert str(played.run and played.run.verdict) == "verified"


def test_a_refusal_is_no_answer(tmp_path: Path) -> None:
    def refund(scene: Scene) -> Any:
        return tool(result_as_answer=True)(scene.tools.refund_order)

    with Theatre(Made(refund), "sync", tmp_path) as theatre:
        wrong = asked("refund_order", order_id=17, amount="-1")
        played = theatre.play([wrong], "I could not.", task="refund_order")
        assert (played.said, played.requests) == ("I could not.", 2)


def test_a_tool_that_is_used_up_is_a_mistake_of_the_models_and_is_counted_once(tmp_path: Path) -> None:
    made: list[Any] = []

    def look(scene: Scene) -> Any:
        made.append(tool(max_usage_count=2)(scene.tools.lookup_order))
        return made[-1]

    with Theatre(Made(look), "sync", tmp_path) as theatre:
        turns = ([LOOK], [LOOK], [LOOK], [NOTE], "Done.")
        bare, played = theatre.bare(*turns), theatre.play(*turns)
        assert played.told == bare.told
        assert played.error is None
        assert played.begun == ["lookup_order", "lookup_order", "note_order"]
        assert [one.current_usage_count for one in made] == [2, 2]


def test_arguments_that_a_tool_gives_another_one_are_its_own_mistake(tmp_path: Path) -> None:
    def refund(scene: Scene) -> Any:
        look = tool(scene.tools.lookup_order)

        @tool
        def refund_order(order_id: int, amount: str) -> Any:
            """Refund an order."""
            scene.tools.refund_order(order_id, amount)
            return look.run(order="17")

        return refund_order

    with Theatre(Made(refund), "sync", tmp_path) as theatre:
        played = theatre.play([REFUND], "Refunded.")
        assert played.begun == ["refund_order"]
        assert [tool for tool, _ in played.outcomes] == ["refund_order"]
        assert played.run is not None
        assert played.run.open_holds == 1


class Cancel(BaseTool):
    """A tool of a class that tells of its failure in the framework's way, blocking or not."""

    name: str = "cancel_order"
    description: str = "Cancel an order."

    def _run(self, order_id: int) -> Any:
        return ToolFailure(message="only an open order can be cancelled", code="not_open")

    async def _arun(self, order_id: int) -> Any:
        return self._run(order_id)


def test_a_failure_that_a_tool_declares_opens_a_hold(tmp_path: Path) -> None:
    with Theatre(Made(lambda _: Cancel()), "sync", tmp_path) as theatre:
        bare, played = theatre.bare([CANCEL], "Done."), theatre.play([CANCEL], "Done.")
        assert (played.told, played.error) == (bare.told, None)
        assert played.outcomes == [("cancel_order", "rejected")]
        assert played.run is not None
        assert played.run.open_holds == 1


async def test_a_tool_that_the_program_awaits_is_guarded(tmp_path: Path) -> None:
    with Theatre(Alone(), "async", tmp_path) as theatre:
        tools = theatre.tools()
        guard = theatre.guard(tools)
        agent = Alone().guarded(theatre.scene(tools, (), guard), "async")
        named = {one.name: one for one in agent.tools or ()}
        with pytest.raises(RunStopped):
            async with guard.run():
                await named["cancel_order"].arun(order_id=17)
                await named["note_order"].arun(order_id=17, note="done")
        assert tools.begun == ["cancel_order"]


def test_tools_of_a_task_are_guarded(tmp_path: Path) -> None:
    class OfTask(Made):
        def crew(self, scene: Scene, mode: Mode, **options: Any) -> Crew:
            agent = self.agent(scene, mode)
            given, agent.tools = agent.tools, []
            return all_guarded(Crew(agents=[agent], tasks=[work(agent, tools=given)], cache=False), scene)

    with Theatre(OfTask(), "sync", tmp_path) as theatre:
        played = theatre.play([CANCEL], [NOTE], "Done.")
        assert isinstance(played.error, RunStopped), played.error
        assert played.begun == ["cancel_order"]


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_a_stop_ends_a_task_in_a_thread(tmp_path: Path, mode: Mode) -> None:
    class Beside(Made):
        def crew(self, scene: Scene, mode: Mode, **options: Any) -> Crew:
            agent = self.agent(scene, mode)
            return super().crew(scene, mode, agents=[agent], tasks=[work(agent, async_execution=True)])

    with Theatre(Beside(), mode, tmp_path) as theatre:
        tools = theatre.tools()
        guard = theatre.guard(tools)
        scene = theatre.scene(tools, ([CANCEL], [NOTE], [LOOK], "Done."), guard)
        with pytest.raises(RunStopped), guard.run():
            left = raised(lambda: played_as(Beside(), scene, mode))
        assert isinstance(left, HookAborted), left  # and is not waited for for ever
        assert (scene.script.requests, tools.begun) == (2, ["cancel_order"])


def played_as(kit: CrewAI, scene: Scene, mode: Mode) -> str:
    return asyncio.run(kit.aplay(scene, mode)) if mode == "async" else kit.play(scene, mode)


def raised(play: Callable[[], object]) -> BaseException | None:
    """What a play raises, were it that it took too long."""
    try:
        play()
    except BaseException as error:  # noqa: BLE001
        return error
    return None


def test_a_stop_ends_an_agent_whose_time_is_limited(tmp_path: Path) -> None:
    class Limited(CrewAI):
        def agent(self, scene: Scene, mode: Mode, **options: Any) -> Agent:
            return super().agent(scene, mode, max_execution_time=30)

    with Theatre(Limited(), "sync", tmp_path) as theatre:
        played = theatre.play([LOOK], [REFUND], "Refunded.", task="refund_order")
        assert str(played.run and played.run.verdict) == "verified"
        played = theatre.play([CANCEL], [NOTE], "Done.")
        assert isinstance(played.error, RunStopped), played.error
        assert (played.requests, played.begun) == (2, ["cancel_order"])


class Form(BaseModel):
    """What was done."""

    done: bool


@pytest.mark.parametrize(
    "asks", [{"guardrail": "It is polite."}, {"output_pydantic": Form}], ids=lambda asks: next(iter(asks))
)
def test_a_stop_beside_ends_a_task_in_a_thread_that_asks_the_model_about_its_answer(
    tmp_path: Path, asks: dict[str, Any]
) -> None:
    class Stopping(Writing):
        """A model that answers while a call beside it stops the run."""

        def call(self, messages: Any, *args: Any, **options: Any) -> str:
            with pytest.raises(RunHalted):
                run.wrap(tools.cancel_order)(order_id=17)
            return super().call(messages, *args, **options)

    class Answered(Made):
        def model(self, script: Script, mode: Mode) -> BaseLLM:
            return Stopping(model="scripted", script=script)

        def crew(self, scene: Scene, mode: Mode, **options: Any) -> Crew:
            agent = self.agent(scene, mode)
            return super().crew(scene, mode, agents=[agent], tasks=[work(agent, async_execution=True, **asks)])

    with Theatre(Answered(), "sync", tmp_path) as theatre:
        tools = theatre.tools()
        guard = theatre.guard(tools, "strict")
        scene = theatre.scene(tools, ("It is done.", "It is polite."), guard)
        with pytest.raises(RunStopped), guard.run() as run:
            left = raised(lambda: Answered().play(scene, "sync"))
        assert isinstance(left, HookAborted), left  # and is not waited for for ever
        assert scene.script.requests == 1


def test_a_stop_leaves_a_crew_and_its_stream_as_the_frameworks_own_signal(tmp_path: Path) -> None:
    with Theatre(CrewAI(), "sync", tmp_path) as theatre:
        for mode in ("sync", "sync stream"):
            tools = theatre.tools()
            guard = theatre.guard(tools)
            scene = theatre.scene(tools, ([CANCEL], [NOTE], "Done."), guard)
            with pytest.raises(RunStopped), guard.run(), pytest.raises(HookAborted):
                CrewAI().play(scene, mode)


class Managed(CrewAI):
    """A manager, made by the crew or by the user, whose coworker has the tools."""

    def __init__(self, *, made_by_the_crew: bool) -> None:
        self.made_by_the_crew = made_by_the_crew

    def crew(self, scene: Scene, mode: Mode, **options: Any) -> Crew:
        assert scene.inner is not None
        coworker = self.agent(Scene(scene.tools, scene.inner, scene.runs, scene.folder), mode)
        llm = self.model(scene.script, mode)
        boss: dict[str, Any] = {"manager_llm": llm}
        if not self.made_by_the_crew:
            agent = Agent(role="boss", goal="good", backstory="old", llm=llm, allow_delegation=True)
            boss = {"manager_agent": agent}
        task = Task(description="Do it.", expected_output="It is done.")
        crew = Crew(agents=[coworker], tasks=[task], process=Process.hierarchical, cache=False, **boss)
        return all_guarded(crew, scene)


@pytest.mark.parametrize("made_by_the_crew", [True, False])
def test_what_a_manager_delegates_is_guarded_and_delegating_is_no_call(tmp_path: Path, made_by_the_crew: bool) -> None:
    delegate = asked("delegate_work_to_coworker", task="Do it.", context="None.", coworker="clerk")
    with Theatre(Managed(made_by_the_crew=made_by_the_crew), "sync", tmp_path) as theatre:
        played = theatre.play([delegate], "Done.", inner=([LOOK], [REFUND], "Refunded."), task="refund_order")
        assert (played.error, played.said) == (None, "Done.")
        assert played.outcomes == [("lookup_order", "ok"), ("refund_order", "ok")]
        assert str(played.run and played.run.verdict) == "verified"
        stopped = theatre.play([delegate], [delegate], "Done.", inner=([CANCEL], [NOTE], "Noted."))
        assert isinstance(stopped.error, RunStopped), stopped.error
        assert (stopped.requests, stopped.begun) == (1, ["cancel_order"])


def test_a_copy_of_a_crew_is_guarded(tmp_path: Path) -> None:
    class Copied(CrewAI):
        def play(self, scene: Scene, mode: Mode) -> str:
            return str(self.crew(scene, mode).kickoff_for_each([{}, {}]))

    with Theatre(Copied(), "sync", tmp_path) as theatre:
        played = theatre.play([LOOK], "Looked.", [CANCEL], [NOTE], "Noted.")
        assert isinstance(played.error, RunStopped), played.error
        assert played.begun == ["lookup_order", "cancel_order"]


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_agents_and_crews_of_a_flow_are_guarded(tmp_path: Path, mode: Mode) -> None:
    class Flowing(CrewAI):
        def flow(self, scene: Scene, mode: Mode) -> Any:
            agent = Alone().guarded(scene, mode)
            crew = self.crew(scene, mode)

            class Work(Flow[dict[str, Any]]):
                @start()
                async def work(self) -> str:
                    await agent.kickoff_async("Do it.")
                    return str(await crew.akickoff())

            return Work()

        def play(self, scene: Scene, mode: Mode) -> str:
            return str(self.flow(scene, mode).kickoff())

        async def aplay(self, scene: Scene, mode: Mode) -> str:
            return str(await self.flow(scene, mode).kickoff_async())

    with Theatre(Flowing(), mode, tmp_path) as theatre:
        played = theatre.play([LOOK], "Looked.", [REFUND], "Refunded.", task="refund_order")
        assert (played.error, played.said) == (None, "Refunded.")
        assert str(played.run and played.run.verdict) == "verified"
        played = theatre.play([CANCEL], "Cancelled.", [NOTE], "Noted.")
        assert isinstance(played.error, RunStopped), played.error
        assert (played.requests, played.begun) == (3, ["cancel_order"])


class Writing(BaseLLM):
    """A model without function calling, which writes what it wants."""

    script: Any = None

    def call(self, messages: Any, *args: Any, **options: Any) -> str:
        told = [str(m["content"]).split("Observation:")[1] for m in messages if "\nObservation:" in str(m["content"])]
        _, turn = self.script.next(told)
        if isinstance(turn, str):
            return f"Thought: so be it.\nFinal Answer: {turn}"
        [one] = turn
        return f"Thought: so be it.\nAction: {one.name}\nAction Input: {json.dumps(dict(one.args))}"

    def supports_function_calling(self) -> bool:
        return False


class Written(CrewAI):
    def model(self, script: Script, mode: Mode) -> BaseLLM:
        return Writing(model="scripted", script=script)


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_calls_that_a_model_writes_are_guarded(tmp_path: Path, mode: Mode) -> None:
    wrong = asked("refund_order", order_id=17, amount="-1")
    with Theatre(Written(), mode, tmp_path) as theatre:
        bare = theatre.bare([LOOK], [REFUND], "Refunded.")
        played = theatre.play([LOOK], [REFUND], "Refunded.", task="refund_order")
        assert (played.error, played.said, played.told) == (None, "Refunded.", bare.told)
        assert str(played.run and played.run.verdict) == "verified"
        played = theatre.play([wrong], "I could not.", task="refund_order")
        assert played.outcomes == [("refund_order", "precondition_failed")]
        assert "was not carried out" in played.told[1][0]
        played = theatre.play([CANCEL], [NOTE], [LOOK], "Done.")
        assert isinstance(played.error, RunStopped), played.error
        assert (played.requests, played.begun) == (2, ["cancel_order"])


def test_a_written_call_whose_tool_raises_is_made_once(tmp_path: Path) -> None:
    ship = asked("ship_order", order_id=17)
    with Theatre(Written(), "sync", tmp_path) as theatre:
        bare, played = theatre.bare([ship], "Done."), theatre.play([ship], "Done.")
        assert len(bare.begun) > 1  # the framework tries again, whatever the tool may have done
        assert played.begun == ["ship_order"]
        assert played.outcomes == [("ship_order", "in_doubt"), ("ship_order", "refused")]
        assert "an earlier attempt may have succeeded" in played.told[1][0]


class Closed(Tools):
    """A shop that ships nothing, and says so by an error before it has done anything."""

    def ship_order(self, order_id: int) -> dict[str, Any]:
        """Ship an order."""
        self.begun.append("ship_order")
        raise ValueError(f"order {order_id} is not paid")


@pytest.mark.parametrize(("retries", "stopped"), [(3, True), (6, False)])
def test_the_frameworks_own_repeats_of_a_written_call_are_retries(tmp_path: Path, retries: int, stopped: bool) -> None:
    tools = Closed(Shop(tmp_path / "closed.db"))
    with Theatre(Written(), "sync", tmp_path) as theatre:
        guard = theatre.guard(tools, retries=retries)
        played = theatre.play([asked("ship_order", order_id=17)], "It is not paid.", tools=tools, guard=guard)
        assert isinstance(played.error, RunStopped) is stopped
        assert played.requests == (1 if stopped else 2)
        assert len(played.begun) == (4 if stopped else 6)


SERVER = """
from mcp.server.fastmcp import FastMCP

server = FastMCP("shop")

@server.tool()
def cancel_order(order_id: int) -> str:
    raise ValueError("only an open order can be cancelled")

server.run()
"""


def test_tools_of_an_mcp_server_are_guarded(tmp_path: Path) -> None:
    (tmp_path / "server.py").write_text(SERVER, "utf-8")
    server = MCPServerStdio(command=sys.executable, args=[str(tmp_path / "server.py")])

    class Serving(Alone):
        def agent(self, scene: Scene, mode: Mode, **options: Any) -> Agent:
            return super().agent(scene, mode, mcps=[server])

    [cancel] = Agent(role="clerk", goal="good", backstory="old", llm=Writing(model="none")).get_mcp_tools([server])
    asking = asked(sanitize_tool_name(cancel.name), order_id=17)
    with Theatre(Serving(), "sync", tmp_path) as theatre:
        bare, played = theatre.bare([asking], "Done."), theatre.play([asking], [NOTE], "Done.")
        assert "only an open order can be cancelled" in bare.told[1][0]
        assert played.told[1] == bare.told[1]
        assert played.outcomes == [("cancel_order", "rejected"), ("note_order", "refused")]
        assert isinstance(played.error, RunStopped), played.error


def test_an_agent_that_plans_is_guarded(tmp_path: Path) -> None:
    class Planning(Alone):
        def agent(self, scene: Scene, mode: Mode, **options: Any) -> Agent:
            return super().agent(scene, mode, planning=True)

    steps = [{"step_number": 1, "description": "Cancel it.", "tool_to_use": "cancel_order", "depends_on": []}]
    plan = asked("create_reasoning_plan", plan="Cancel.", steps=steps, ready=True)
    with Theatre(Planning(), "sync", tmp_path) as theatre:
        played = theatre.play([plan], [CANCEL], [NOTE], "Noted.", "Done.")
        assert isinstance(played.error, RunStopped), played.error
        assert (played.requests, played.begun) == (3, ["cancel_order"])
        assert played.ids == ["call_2_0", "call_3_0"]


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_a_call_outside_of_a_run_is_told_to_the_program(tmp_path: Path, mode: Mode) -> None:
    with Theatre(CrewAI(), mode, tmp_path) as theatre:
        tools = theatre.tools()
        scene = theatre.scene(tools, ([LOOK], "Looked."), theatre.guard(tools))
        with pytest.raises(RunNotOpen):
            played_as(CrewAI(), scene, mode)
        assert (tools.begun, scene.script.requests) == ([], 1)


def test_a_tool_that_the_program_calls_outside_of_a_run_says_so(tmp_path: Path) -> None:
    with Theatre(Alone(), "sync", tmp_path) as theatre:
        tools = theatre.tools()
        agent = Alone().guarded(theatre.scene(tools, (), theatre.guard(tools)), "sync")
        with pytest.raises(RunNotOpen):
            (agent.tools or [])[0].run(order_id=17)
        assert tools.begun == []


def test_guarding_anew_leaves_one_guard(tmp_path: Path) -> None:
    class Twice(CrewAI):
        def crew(self, scene: Scene, mode: Mode, **options: Any) -> Crew:
            return all_guarded(super().crew(scene, mode, **options), scene)

    with Theatre(Twice(), "sync", tmp_path) as theatre:
        played = theatre.play([LOOK], [REFUND], "Refunded.", task="refund_order")
        assert str(played.run and played.run.verdict) == "verified"
        assert played.outcomes == [("lookup_order", "ok"), ("refund_order", "ok")]


def test_an_agent_of_another_framework_is_refused(tmp_path: Path) -> None:
    class Other(BaseAgentAdapter):
        def configure_tools(self, tools: Any = None) -> None:
            pass

        def configure_structured_output(self, task: Any) -> None:
            pass

        def execute_task(self, task: Any, context: Any = None, tools: Any = None) -> str:
            return ""

        async def aexecute_task(self, task: Any, context: Any = None, tools: Any = None) -> str:
            return ""

        def create_agent_executor(self, tools: Any = None) -> None:
            pass

        def get_delegation_tools(self, agents: Any) -> list[Any]:
            return []

        def get_platform_tools(self, apps: Any) -> list[Any]:
            return []

        def get_mcp_tools(self, mcps: Any) -> list[Any]:
            return []

    other = Other(role="other", goal="good", backstory="old")
    with Theatre(CrewAI(), "sync", tmp_path) as theatre:
        guard = theatre.guard(theatre.tools())
        with pytest.raises(TypeError, match="and not Other"):
            guarded(Crew(agents=[other], tasks=[work(other)]), guard)


def test_the_page_says_what_works(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    shop = shop_of_the_page(tmp_path)
    llm = CrewAI().model(Script([LOOK], [REFUND], "Refunded."), "sync")

    @tool
    def lookup_order(order_id: int) -> dict[str, Any]:
        """Look an order up."""
        return shop.lookup_order(order_id) or {}

    @tool
    def refund_order(order_id: int, amount: str) -> dict[str, Any]:
        """Refund an order."""
        return shop.refund_order(order_id, amount)

    run_page("crewai", llm=llm, lookup_order=lookup_order, refund_order=refund_order)
    assert capsys.readouterr().out == "verified\n"
