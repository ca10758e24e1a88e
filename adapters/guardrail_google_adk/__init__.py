"""Google's Agent Development Kit: `GuardrailPlugin` for a runner or an app."""

from guardrail_google_adk.plugin import GuardrailPlugin

__all__ = ["GuardrailPlugin"]
