"""OpenAI Agents SDK: `guarded(guard, agent)` is the agent with all its tools, MCP servers and handoffs guarded."""

from guardrail_openai_agents.agents import guarded

__all__ = ["guarded"]
