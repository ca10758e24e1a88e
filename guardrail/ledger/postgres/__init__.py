"""The ledger on a PostgreSQL server."""
