"""Haystack: `guarded` for an `Agent`."""

from guardrail_haystack.agents import guarded

__all__ = ["guarded"]
