"""Allow, hold or stop: pure decisions over outcomes, policy and holds."""
