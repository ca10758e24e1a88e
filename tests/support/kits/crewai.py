"""CrewAI: a crew of one agent, guarded by the block around it."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

os.environ |= {"CREWAI_DISABLE_TELEMETRY": "true", "CREWAI_TRACING_ENABLED": "false"}

from crewai import Agent, Crew, Task
from crewai.llms.base_llm import BaseLLM
from crewai.tools import tool
from pydantic import SkipValidation

from guardrail_crewai import guarded
from support.kits.stage import Mode, Scene, Script, call_id


class Scripted(BaseLLM):
    """A model that says what the script says."""

    script: SkipValidation[Script]

    def call(self, messages: Any, *args: Any, **kwargs: Any) -> Any:
        number, turn = self.script.next([str(m["content"]) for m in messages if m["role"] == "tool"])
        if isinstance(turn, str):
            return turn
        return [
            {"id": call_id(number, n), "function": {"name": a.name, "arguments": json.dumps(dict(a.args))}}
            for n, a in enumerate(turn)
        ]

    async def acall(self, messages: Any, *args: Any, **kwargs: Any) -> Any:
        return self.call(messages)

    def supports_function_calling(self) -> bool:
        return True


class CrewAI:
    """A crew whose only agent does its only task."""

    name = "crewai"
    modes: Sequence[Mode] = ("sync", "async", "sync stream", "async stream")
    limits: Mapping[str, str] = {
        "test_a_call_is_recorded_under_the_id_that_the_model_gave_it": (
            "CrewAI tells neither hooks nor tools the id of a call: crewai.hooks.tool_hooks:ToolCallHookContext"
        ),
    }
    nests = True

    def play(self, scene: Scene, mode: Mode) -> str:
        with block(scene):
            made: Any = self.crew(scene, mode).kickoff()
            if mode == "sync stream":
                for _ in made:
                    pass
                made = made.result
            return str(made.raw)

    async def aplay(self, scene: Scene, mode: Mode) -> str:
        with block(scene):
            made: Any = await self.crew(scene, mode).akickoff()
            if mode == "async stream":
                async for _ in made:
                    pass
                made = made.result
            return str(made.raw)

    def crew(self, scene: Scene, mode: Mode) -> Crew:
        """The crew; its agent has another one as a tool, if there is one."""
        tools = [tool(f.__name__)(f) for f in scene.functions(mode)]
        if scene.inner is not None:
            tools = [*tools, clerk(self.agent(scene.inner, tools))]
        return crew([self.agent(scene.script, tools)], stream=mode.endswith("stream"))

    def agent(self, script: Script, tools: Sequence[Any], **options: Any) -> Agent:
        """An agent; it does not answer a repeated call from its cache."""
        model = Scripted(model="scripted", script=script)
        described = {"role": "clerk", "goal": "do it", "backstory": "you are one"}
        return Agent(**described, llm=model, tools=[*tools], cache=False, max_retry_limit=0, **options)


def block(scene: Scene) -> AbstractContextManager[None]:
    return nullcontext() if scene.runs is None else guarded(scene.runs)


def crew(agents: Sequence[Agent], **options: Any) -> Crew:
    """A crew with one task for its first agent."""
    task = Task(description="Do it.", expected_output="What was done.", agent=agents[0])
    return Crew(agents=[*agents], tasks=[task], cache=False, **options)


def clerk(agent: Agent) -> Any:
    def ask_clerk(question: str) -> str:
        """Ask the clerk."""
        return str(crew([agent]).kickoff().raw)

    return tool("ask_clerk")(ask_clerk)


KITS = [CrewAI()]
