"""LlamaIndex: `guarded` for a `FunctionAgent`, a `ReActAgent`, or an `AgentWorkflow` of several agents."""

from guardrail_llama_index.agents import guarded

__all__ = ["guarded"]
