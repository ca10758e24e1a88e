"""Recorded runs: their format, and their replay against a policy."""
