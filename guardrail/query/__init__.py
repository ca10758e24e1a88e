"""Proving that a query only reads, and binding its parameters."""
