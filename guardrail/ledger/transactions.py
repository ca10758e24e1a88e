"""What the durable operations do to the tables, each inside of one transaction."""

from __future__ import annotations

from collections.abc import Iterable

from guardrail.errors import LedgerError
from guardrail.ledger.database import Execute, RowRefused
from guardrail.ledger.histories import holders
from guardrail.ledger.records import CallRecord, RunRecord, VerdictRecord
from guardrail.ledger.rows import ENDED, FINDING, INTENT, RUN, TAKEN_UP, VERDICT


class RunTaken(LedgerError):
    """A run cannot be taken up, because it is open in another process that still lives."""


_REASONS = {
    "duplicate": "is recorded already: two processes may have taken the run up at once",
    "orphan": "cannot be recorded, because its run is not in this ledger: open the run first",
    "value": "holds a value that cannot be stored",
}


def open_run(execute: Execute, run: RunRecord) -> None:
    """Open a run, or take it up unless another living process has it."""
    for earlier, alive in holders(execute, "r.id = ?", run.id):
        if alive and earlier.pid != run.pid:
            raise RunTaken(f"the run {run.id} is open in process {earlier.pid}: end it there before it is taken up")
        TAKEN_UP(execute, (run,))
        return
    RUN(execute, (run,))


def intend(execute: Execute, call: CallRecord) -> None:
    """Record that a write is about to run; its run must be there, its number not."""
    try:
        execute(INTENT, call)
    except RowRefused as refused:
        raise LedgerError(
            f"call {call.number} ({call.tool}) of the run {call.run} {_REASONS[refused.why]}"
        ) from refused


def close_run(execute: Execute, verdict: VerdictRecord, *, keep_pictures: bool = False) -> None:
    """Close a run with a verdict, in place of an earlier one."""
    run = verdict.run
    try:
        VERDICT(execute, (verdict,))
        ENDED(execute, (verdict,))
        execute("DELETE FROM findings WHERE run = ?", (run,))
        FINDING(execute, [(run, number, finding) for number, finding in enumerate(verdict.findings, 1)])
    except RowRefused as refused:
        raise LedgerError(f"the verdict of the run {run} {_REASONS[refused.why]}") from refused
    if verdict.kind == "verified" and not keep_pictures:
        execute("DELETE FROM pictures WHERE run = ?", (run,))


def delete(execute: Execute, runs: Iterable[str]) -> None:
    """Delete runs with everything that belongs to them."""
    for run in runs:
        execute("DELETE FROM runs WHERE id = ?", (run,))


def no_more(execute: Execute, _: None) -> None:
    """Do nothing beyond what waits anyway."""
