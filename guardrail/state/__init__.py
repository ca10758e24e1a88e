"""What changed, and how it differs from the contract: pure functions over pictures."""
