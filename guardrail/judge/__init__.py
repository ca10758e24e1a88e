"""What a result came to: pure functions from result and declaration to outcome."""
