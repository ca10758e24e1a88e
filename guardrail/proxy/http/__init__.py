"""The proxy over streamable HTTP: many clients, one server behind. Needs the extra `mcp`."""
