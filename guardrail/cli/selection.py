"""Which run is meant: by its id, or by the beginning of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from guardrail.cli.exits import Misuse

if TYPE_CHECKING:
    from guardrail.ledger.ledger import Ledger
    from guardrail.ledger.records import RunHistory

MOST = 10_000
"""Among how many of the latest runs the beginning of an id is looked for."""


def find_run(ledger: Ledger, name: str) -> RunHistory:
    """The run of this id, or the one whose id begins so. Raises `Misuse` when there is none, or several."""
    history = ledger.load_run(name)
    if history is not None:
        return history
    ids = [summary.run.id for summary in ledger.runs(limit=MOST) if name and summary.run.id.startswith(name)]
    if len(ids) > 1:
        raise Misuse(f"{len(ids)} runs begin with {name}: {', '.join(ids[:5])}{', …' if len(ids) > 5 else ''}")
    found = ledger.load_run(ids[0]) if ids else None
    if found is None:
        raise Misuse(f"there is no run {name} in the ledger: see `guardrail runs list`")
    return found


def short(run: str) -> str:
    """An id as it is listed: one that was made up is cut where it still tells runs apart."""
    return run[:12] if len(run) == 32 and set(run) <= set("0123456789abcdef") else run
