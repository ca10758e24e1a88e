"""CrewAI's agents and crews, guarded in their tools and in front of their models."""

from __future__ import annotations

from typing import Any, TypeVar

from crewai import Agent, Crew
from crewai.agents.agent_builder.base_agent import BaseAgent
from crewai.tools import BaseTool
from crewai.utilities.llm_utils import create_llm

from guardrail.run.adapter import Runs
from guardrail_crewai.calls import Calls
from guardrail_crewai.models import gate_model, leaving
from guardrail_crewai.twins import Twin, guarded_tools, kind

A = TypeVar("A", Agent, Crew)


def guarded(agent: A, runs: Runs) -> A:
    """Guard the tools of an agent, or of all agents of a crew, and give it back: it is the same object, changed.

    `runs` is a guard, to whose run that is open where the agent works its calls then belong, or one run. A stop leaves
    `kickoff` as `HookAborted`, and no model is asked again; `RunStopped` leaves `guard.run()`. Raises `TypeError` for
    what is no `Agent`, such as an agent that another framework runs.
    """
    agents: list[BaseAgent | None] = _agents(agent) if isinstance(agent, Crew) else [agent]
    guarding: list[Calls] = []
    for one in {id(each): each for each in agents if each is not None}.values():
        if not isinstance(one, Agent):
            raise TypeError(f"what is guarded is CrewAI's Agent, or a Crew of them, and not {type(one).__name__}")
        calls = Calls(runs)
        guarding.append(calls)
        object.__setattr__(one, "__class__", kind(_Agent, one, calls))
        one.tools = guarded_tools(one.tools, calls)
        gate_model(one.llm, calls)
        gate_model(one.function_calling_llm, calls)
    if isinstance(agent, Crew) and agent.manager_llm is not None:  # a manager is made with it, whose tools are agents
        agent.manager_llm = create_llm(agent.manager_llm)
        for calls in guarding:
            gate_model(agent.manager_llm, calls)
    return agent


def _agents(crew: Crew) -> list[BaseAgent | None]:
    return [*crew.agents, crew.manager_agent, *(task.agent for task in crew.tasks)]


class _Agent(Twin):
    """An agent: whatever tools it is given are guarded."""

    def execute_task(self, *args: Any, **options: Any) -> Any:
        with leaving():
            return self.guarded_class.execute_task(self, *args, **options)

    async def aexecute_task(self, *args: Any, **options: Any) -> Any:
        with leaving():
            return await self.guarded_class.aexecute_task(self, *args, **options)

    def kickoff(self, *args: Any, **options: Any) -> Any:
        with leaving():
            return self.guarded_class.kickoff(self, *args, **options)

    async def kickoff_async(self, *args: Any, **options: Any) -> Any:
        with leaving():
            return await self.guarded_class.kickoff_async(self, *args, **options)

    def create_agent_executor(self, tools: list[BaseTool] | None = None, task: Any = None) -> None:
        self.guarded_class.create_agent_executor(
            self, None if tools is None else guarded_tools(tools, self.guarding), task
        )

    def get_mcp_tools(self, mcps: Any) -> list[BaseTool]:
        return guarded_tools(self.guarded_class.get_mcp_tools(self, mcps), self.guarding)

    def get_platform_tools(self, apps: Any) -> list[BaseTool]:
        return guarded_tools(self.guarded_class.get_platform_tools(self, apps), self.guarding)
