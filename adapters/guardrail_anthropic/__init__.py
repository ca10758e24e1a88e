"""Anthropic: `ToolCalls` for loops over messages, `guarded_runner` for the tool runner."""

from guardrail_anthropic.loop import ToolCalls
from guardrail_anthropic.runner import guarded_runner

__all__ = ["ToolCalls", "guarded_runner"]
