"""The Agents SDK of OpenAI: function tools, agents as tools, handoffs."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

from agents import Agent, Model, ModelResponse, RunConfig, Runner, Tool, Usage, function_tool
from openai.types.responses import Response, ResponseCompletedEvent
from pydantic import BaseModel

from guardrail_openai_agents import guarded
from support.kits.stage import Kit, Mode, Scene, Script, asked
from support.kits.wire import DIALECTS

SPOKEN = DIALECTS["v1/responses"]
TELLS = "tool_not_found_behavior" in RunConfig.__dataclass_fields__
ENDS = (
    "in old versions a tool that there is not ends the run: agents.run_internal.turn_resolution:process_model_response"
)


class Scripted(Model):
    """A model that says what the script says."""

    def __init__(self, script: Script) -> None:
        self.script = script

    async def get_response(self, system_instructions: Any, input: Any, *args: Any, **options: Any) -> ModelResponse:
        return ModelResponse(self._next(input).output, Usage(), None)

    async def stream_response(
        self, system_instructions: Any, input: Any, *args: Any, **options: Any
    ) -> AsyncIterator[Any]:
        yield ResponseCompletedEvent(type="response.completed", response=self._next(input), sequence_number=0)

    def _next(self, input: Any) -> Response:
        number, turn = self.script.next([*SPOKEN.results({"input": input})])
        return Response.model_validate(SPOKEN.whole("scripted", number, turn))


class Desk(Scripted):
    """A model that hands over to the agent, whatever it is asked."""

    def __init__(self) -> None:
        super().__init__(Script())

    def _next(self, input: Any) -> Response:
        spoken = SPOKEN.whole("scripted", 1, [asked("transfer_to_agent")])
        spoken["output"][0]["call_id"] = "handover"
        return Response.model_validate(spoken)


class Question(BaseModel):
    """What the clerk is asked."""

    question: str


class AgentsSdk:
    """Agents that run; streamed or not. The one that does the work may be handed over to."""

    modes: Sequence[Mode] = ("sync", "async", "async stream")
    limits: Mapping[str, str] = {} if TELLS else {"test_a_mistake_of_the_models_holds_nothing": ENDS}

    def __init__(self, *, hands_over: bool = False) -> None:
        self.name = "openai agents handoff" if hands_over else "openai agents"
        self.nests = not hands_over
        self.hands_over = hands_over

    def play(self, scene: Scene, mode: Mode) -> str:
        return str(Runner.run_sync(self._agent(scene, mode), "Do it.", run_config=config()).final_output)

    async def aplay(self, scene: Scene, mode: Mode) -> str:
        agent = self._agent(scene, mode)
        if mode == "async":
            return str((await Runner.run(agent, "Do it.", run_config=config())).final_output)
        result = Runner.run_streamed(agent, "Do it.", run_config=config())
        async for _ in result.stream_events():
            pass
        return str(result.final_output)

    def _agent(self, scene: Scene, mode: Mode) -> Agent[Any]:
        tools: list[Tool] = [function_tool(tool) for tool in scene.functions(mode)]
        if scene.inner is not None:
            clerk = self._guarded(scene, Agent(name="clerk", model=Scripted(scene.inner), tools=[*tools]))
            tools.append(clerk.as_tool("ask_clerk", "Ask the clerk.", parameters=Question))
        agent = Agent[Any](name="agent", model=Scripted(scene.script), tools=tools)
        if self.hands_over:
            agent = Agent(name="desk", model=Desk(), handoffs=[agent])
        return self._guarded(scene, agent)

    def _guarded(self, scene: Scene, agent: Agent[Any]) -> Agent[Any]:
        return agent if scene.runs is None else guarded(scene.runs, agent)


def config() -> RunConfig:
    """A tool that there is not is told to the model, where the SDK can; unasked, it ends the run."""
    telling: Any = {"tool_not_found_behavior": "return_error_to_model"} if TELLS else {}
    return RunConfig(tracing_disabled=True, **telling)


KITS: list[Kit] = [AgentsSdk(), AgentsSdk(hands_over=True)]
