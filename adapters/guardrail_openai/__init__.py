"""OpenAI: `ToolCalls` for loops over chat completions and responses; `guardrail_openai.runner` for its tool runner."""

from guardrail_openai.loop import ToolCalls

__all__ = ["ToolCalls"]
