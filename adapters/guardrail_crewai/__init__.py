"""CrewAI: `guarded` for an agent or a crew."""

from guardrail_crewai.crews import guarded

__all__ = ["guarded"]
