"""Claude Agent SDK: `guarded` puts the guard into a session's options, as hooks around every tool call."""

from guardrail_claude_agent.hooks import guarded

__all__ = ["guarded"]
