"""smolagents: `guarded` for a `ToolCallingAgent` or a `CodeAgent`."""

from guardrail_smolagents.agents import guarded

__all__ = ["guarded"]
