"""CrewAI: a crew of one agent, and an agent by itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from crewai import LLM, Agent, BaseLLM, Crew, Task
from crewai.tools import tool

from guardrail_crewai import guarded
from support.kits.stage import Mode, Scene, Script
from support.kits.wire import endpoint


class CrewAI:
    """A crew of one agent."""

    name = "crewai"
    modes: Sequence[Mode] = ("sync", "async", "sync stream", "async stream")
    limits: Mapping[str, str] = {}
    nests = True

    def play(self, scene: Scene, mode: Mode) -> str:
        done: Any = self.crew(scene, mode).kickoff()
        if mode == "sync stream":
            list(done)
            done = done.result
        return str(done)

    async def aplay(self, scene: Scene, mode: Mode) -> str:
        done: Any = await self.crew(scene, mode).akickoff()
        if mode == "async stream":
            [chunk async for chunk in done]
            done = done.result
        return str(done)

    def crew(self, scene: Scene, mode: Mode, **options: Any) -> Crew:
        agent = self.agent(scene, mode)
        task = Task(description="Do it.", expected_output="It is done.", agent=agent)
        crew = Crew(agents=[agent], tasks=[task], stream=mode.endswith("stream"), cache=False, **options)
        return crew if scene.runs is None else guarded(crew, scene.runs)

    def agent(self, scene: Scene, mode: Mode, **options: Any) -> Agent:
        tools = [tool(function) for function in scene.functions(mode)]
        if scene.inner is not None:
            inner = Scene(scene.tools, scene.inner, scene.runs, scene.folder)
            tools.append(self.clerk(inner, mode))
        llm = self.model(scene.script, mode)
        return Agent(role="clerk", goal="good", backstory="old", llm=llm, tools=tools, max_retry_limit=0, **options)

    def clerk(self, scene: Scene, mode: Mode) -> Any:
        """The agent that is a tool of the other one."""
        inner = self.agent(scene, mode)
        if scene.runs is not None:
            guarded(inner, scene.runs)

        @tool
        def ask_clerk(question: str) -> str:
            """Ask the clerk."""
            return str(inner.kickoff(question))

        return ask_clerk

    def model(self, script: Script, mode: Mode) -> BaseLLM:
        url = f"{endpoint(script)}/v1"
        return LLM(model="openai/gpt-4o-mini", base_url=url, api_key="none", stream=mode.endswith("stream"))


class Alone(CrewAI):
    """An agent by itself."""

    name = "crewai agent"
    modes: Sequence[Mode] = ("sync", "async")

    def play(self, scene: Scene, mode: Mode) -> str:
        return str(self.guarded(scene, mode).kickoff("Do it."))

    async def aplay(self, scene: Scene, mode: Mode) -> str:
        return str(await self.guarded(scene, mode).akickoff("Do it."))

    def guarded(self, scene: Scene, mode: Mode) -> Agent:
        agent = self.agent(scene, mode)
        return agent if scene.runs is None else guarded(agent, scene.runs)


KITS = [CrewAI(), Alone()]
