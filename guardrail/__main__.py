"""`python -m guardrail`: the command line."""

from __future__ import annotations

from guardrail.cli.main import main

if __name__ == "__main__":  # worker processes import this module and must not start over
    main()
