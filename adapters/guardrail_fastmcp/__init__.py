"""FastMCP: `GuardrailClient` for an agent that calls tools, `GuardrailMiddleware` for a server that has them."""

from guardrail_fastmcp.client import GuardrailClient
from guardrail_fastmcp.middleware import GuardrailMiddleware

__all__ = ["GuardrailClient", "GuardrailMiddleware"]
