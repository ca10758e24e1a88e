"""Client sessions of the official MCP SDK, 1.x and 2.x: `guarded` guards the calls of a session, in place."""

from guardrail_mcp.sessions import CALL_ID, guarded

__all__ = ["CALL_ID", "guarded"]
