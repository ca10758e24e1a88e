"""PostgreSQL as a store."""
