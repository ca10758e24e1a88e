"""Verification: the live state before and after a run, held against the contract of its task."""
