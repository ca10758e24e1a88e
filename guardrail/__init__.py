"""Guard an agent's tool calls: hard stops, live state checks, a durable record."""
