"""DSPy: `guarded` for a module with tools, such as `ReAct`."""

from guardrail_dspy.modules import guarded

__all__ = ["guarded"]
