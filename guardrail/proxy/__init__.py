"""A guard between any MCP client and any MCP server."""
