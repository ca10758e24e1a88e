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


_LOCK = "UPDATE runs SET lost = lost WHERE id = ?"
"""Nobody else changes the run from here to the end of the transaction, and what is read of it is the latest."""

_REASONS = {
    "duplicate": "is recorded already: two processes may have taken the run up at once",
    "orphan": "cannot be recorded, because its run is not in this ledger: open the run first",
    "value": "holds a value that cannot be stored",
}


def open_run(execute: Execute, run: RunRecord, presence: int | None) -> None:
    """Open a run, or take it up unless another living process has it. `presence` is that of this process."""
    execute(_LOCK, (run.id,))
    for holder in holders(execute, "r.id = ?", run.id):
        if holder.alive and not holder.is_that_of(run, presence):
            there = f"process {holder.run.pid} on {holder.run.host}"
            raise RunTaken(f"the run {run.id} is open in {there}: end it there before it is taken up")
        TAKEN_UP(execute, ((run, presence),))
        return
    try:
        RUN(execute, ((run, presence),))
    except RowRefused as refused:
        raise LedgerError(f"the run {run.id} {_REASONS[refused.why]}") from refused


def intend(execute: Execute, call: CallRecord, opened: float | None) -> None:
    """Record that a write is about to run; its number must be new, and its run as this process `opened` it, and when.

    That makes it safe to take a run up whose process is believed to be gone: if it is not, it cannot go on.
    """
    try:
        execute(INTENT, (call.run, opened, *call[1:]))
    except RowRefused as refused:
        reason = _objection(execute, call.run, opened) or _REASONS[refused.why]
        raise LedgerError(f"call {call.number} ({call.tool}) of the run {call.run} {reason}") from refused


def close_run(execute: Execute, verdict: VerdictRecord, opened: float | None, *, keep_pictures: bool = False) -> None:
    """Close a run as this process `opened` it, and when, with a verdict in place of an earlier one."""
    run = verdict.run
    execute(_LOCK, (run,))
    objection = _objection(execute, run, opened)
    if objection:
        raise LedgerError(f"the verdict of the run {run} {objection}")
    try:
        VERDICT(execute, (verdict,))
        ENDED(execute, (verdict,))
        execute("DELETE FROM findings WHERE run = ?", (run,))
        FINDING(execute, [(run, number, finding) for number, finding in enumerate(verdict.findings, 1)])
    except RowRefused as refused:
        raise LedgerError(f"the verdict of the run {run} {_REASONS[refused.why]}") from refused
    if verdict.kind == "verified" and not keep_pictures:
        execute("DELETE FROM pictures WHERE run = ?", (run,))


def _objection(execute: Execute, run: str, opened: float | None) -> str:
    """Why nothing can be recorded of a run by the process that opened it then; "" when nothing speaks against it."""
    for pid, host, since in execute("SELECT pid, host, opened FROM runs WHERE id = ?", (run,)):
        if opened is None:
            return "cannot be recorded, because its run is not open here: open the run first"
        if since != opened:
            return f"cannot be recorded, because process {pid} on {host} has taken its run up: leave the run to that"
        return ""
    return _REASONS["orphan"]


def delete(execute: Execute, runs: Iterable[str]) -> None:
    """Delete runs with everything that belongs to them."""
    for run in runs:
        execute("DELETE FROM runs WHERE id = ?", (run,))
