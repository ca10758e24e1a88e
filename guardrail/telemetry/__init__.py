"""Spans, metrics and logs: best effort, never touching the run."""
