"""Microsoft Agent Framework: `guardrail_middleware` for an `Agent`."""

from guardrail_agent_framework.middleware import guardrail_middleware

__all__ = ["guardrail_middleware"]
