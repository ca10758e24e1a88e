"""SQLite as a store."""
