"""Strands Agents: `GuardrailPlugin` for an agent."""

from guardrail_strands.plugin import GuardrailPlugin

__all__ = ["GuardrailPlugin"]
