"""The durable record of runs, calls, holds, pictures and verdicts."""
