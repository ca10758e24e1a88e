"""Agents with everything that they can reach: their tools, their MCP servers, and the agents they hand over to."""

from __future__ import annotations

import functools
import weakref
from collections.abc import Awaitable, Callable
from copy import copy
from typing import Any, ClassVar, TypeVar, cast

from agents import Agent, Handoff, RunContextWrapper, Tool
from agents.mcp import MCPServer

from guardrail.errors import GuardrailError
from guardrail.run.adapter import Runs
from guardrail_openai_agents.tools import Heard, Tools

A = TypeVar("A", bound=Agent[Any])


def guarded(runs: Runs, agent: A) -> A:
    """A copy of the agent whose calls of tools are guarded, and with it those of all agents that it hands over to.

    `runs` is a guard, whose open run each call then belongs to, or one run. An agent that is another's tool is guarded
    by itself: `guarded(guard, clerk).as_tool(...)`. After a stop no model is asked again. Raises `GuardrailError` for
    a tool that is an agent which is not guarded.
    """
    return _Reach(Tools(runs)).guarded(agent)


class _Guarded(Agent[Any]):
    """What a guarded agent is beside what it was."""

    reach: ClassVar[_Reach]

    @property
    def handoffs(self) -> list[Agent[Any] | Handoff[Any, Any]]:
        """The agents that it hands over to, guarded where they are read: some may have been added since."""
        kept: list[Agent[Any] | Handoff[Any, Any]] = vars(self)["handoffs"]
        kept[:] = [self.reach.handoff(handoff) for handoff in kept]
        return kept

    @handoffs.setter
    def handoffs(self, handoffs: list[Agent[Any] | Handoff[Any, Any]]) -> None:
        vars(self)["handoffs"] = [*handoffs]

    async def get_all_tools(self, run_context: RunContextWrapper[Any]) -> list[Tool]:
        """The tools, among them those of MCP servers. They are asked for before each request to the model."""
        self.reach.tools.gate()
        return [self.reach.tool(tool) for tool in await super().get_all_tools(run_context)]


class _Reach:
    """The agents that can be reached from one, each guarded once: they may hand over in circles."""

    def __init__(self, tools: Tools) -> None:
        self.tools = tools
        self._made: dict[int, tuple[Agent[Any], Agent[Any]]] = {}

    def guarded(self, agent: A) -> A:
        if isinstance(agent, _Guarded):
            return agent
        _, made = self._made.get(id(agent), (None, None))
        return self._copy(agent) if made is None else cast("A", made)

    def tool(self, tool: Tool) -> Tool:
        inner = getattr(tool, "_agent_instance", None)
        if isinstance(inner, Agent) and not isinstance(inner, _Guarded):
            raise GuardrailError(
                f"the tool {tool.name} is an agent that is not guarded: make it by guarded(guard, agent).as_tool(...)"
            )
        return self.tools.guarded(tool)

    def _copy(self, agent: A) -> A:
        kind = type(agent)
        made: Any = copy(agent)
        # A class of its own: the SDK copies agents again, and a copy must not lose its guard.
        made.__class__ = type(f"Guarded{kind.__name__}", (_Guarded, kind), {"reach": self, "__module__": __name__})
        self._made[id(agent)] = agent, made
        made.tools = [self.tool(tool) for tool in agent.tools]
        made.mcp_servers = [cast("MCPServer", Heard(server)) for server in agent.mcp_servers]
        made.handoffs = agent.handoffs
        return cast("A", made)

    def handoff(self, handoff: Agent[Any] | Handoff[Any, Any]) -> Agent[Any] | Handoff[Any, Any]:
        if isinstance(handoff, Agent):
            return self.guarded(handoff)
        if getattr(handoff.on_invoke_handoff, "func", None) == self._hand_over:
            return handoff
        made = copy(handoff)
        made.on_invoke_handoff = functools.partial(self._hand_over, handoff.on_invoke_handoff)
        known: Any = getattr(handoff, "_agent_ref", None)  # by which the SDK finds its agents when it resumes a run
        agent = None if known is None else known()
        if agent is not None:
            made.__dict__["_agent_ref"] = weakref.ref(self.guarded(agent))
        return made

    async def _hand_over(self, invoke: Callable[[Any, str], Awaitable[Agent[Any]]], context: Any, text: str) -> Any:
        agent = await invoke(context, text)
        _, made = self._made.get(id(agent), (None, None))
        return made or _Reach(self.tools).guarded(agent)  # one that was made just now is kept by nobody
