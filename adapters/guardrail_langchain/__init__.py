"""LangChain and LangGraph: `GuardrailMiddleware` for `create_agent`, `guarded_node` for a bare `ToolNode`."""

from guardrail_langchain.middleware import GuardrailMiddleware, guarded_node

__all__ = ["GuardrailMiddleware", "guarded_node"]
