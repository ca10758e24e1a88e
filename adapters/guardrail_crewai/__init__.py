"""CrewAI: `guarded`, in whose block crews and agents are guarded."""

from guardrail_crewai.hooks import guarded

__all__ = ["guarded"]
