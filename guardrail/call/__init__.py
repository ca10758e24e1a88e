"""One tool call, from intent to decision."""
