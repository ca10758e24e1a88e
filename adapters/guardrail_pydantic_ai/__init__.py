"""Pydantic AI: `GuardrailCapability` for an agent or one of its runs, `GuardrailToolset` around a single toolset."""

from guardrail_pydantic_ai.toolset import GuardrailCapability, GuardrailToolset

__all__ = ["GuardrailCapability", "GuardrailToolset"]
