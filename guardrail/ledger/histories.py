"""How runs are read back from the ledger's tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from guardrail.calls import Stop
from guardrail.ledger.database import Execute, Row
from guardrail.ledger.processes import is_alive
from guardrail.ledger.records import (
    CallRecord,
    FindingRecord,
    HoldRecord,
    HoldResolved,
    OutcomeRecord,
    RecordedCall,
    RecordedHold,
    RunHistory,
    RunRecord,
    RunSummary,
    StopRecord,
    VerdictRecord,
)
from guardrail.ledger.rows import CALL_COLUMNS, FINDING_COLUMNS, OUTCOME_COLUMNS, RUN_COLUMNS, names

_RUN = (
    ", ".join(f"r.{column}" for column in (*RUN_COLUMNS, "opened", "ended"))
    + ", CASE WHEN r.ended IS NULL THEN present(r.presence) END"
)
_WIDTH = len(RUN_COLUMNS) + 3
_DOUBTFUL = """SELECT COUNT(*) FROM calls c WHERE c.run = r.id AND c.effect <> 'read'
    AND (c.outcome IS NULL OR c.outcome = 'in_doubt')
    AND NOT EXISTS (SELECT 1 FROM holds h WHERE h.run = c.run AND h.call = c.number AND h.resolved_at IS NOT NULL)"""
_SPARED = "w.number, w.tool, w.rule, w.sign, w.outcome, v.because"
# The first call that an enforced policy would have stopped: by what stood against it, or by what it came to.
_WITH_SPARED = """LEFT JOIN verdicts v ON v.run = r.id LEFT JOIN calls w ON w.run = r.id AND w.number = (
    SELECT MIN(c.number) FROM calls c
    WHERE c.run = r.id AND (SUBSTR(c.rule, 1, 11) = 'would_stop:' OR (r.mode = 'observe' AND c.action = 'stop')))"""
_SUMMARY = f"""SELECT {_RUN},
    (SELECT COUNT(*) FROM calls c WHERE c.run = r.id),
    ({_DOUBTFUL}),
    (SELECT COUNT(*) FROM holds h WHERE h.run = r.id AND h.resolved_at IS NULL),
    (SELECT s.reason FROM stops s WHERE s.run = r.id),
    v.kind,
    (SELECT COUNT(*) FROM findings f WHERE f.run = r.id),
    r.lost, {_SPARED}
    FROM runs r {_WITH_SPARED}"""


def history(execute: Execute, run: str) -> RunHistory | None:
    """Everything that is kept of a run but its pictures."""
    for row in execute(f"SELECT {_RUN}, r.lost, {_SPARED} FROM runs r {_WITH_SPARED} WHERE r.id = ?", (run,)):
        record, ended, alive = _run(row[:_WIDTH])
        return RunHistory(
            run=record,
            ended=ended,
            alive=alive,
            calls=_calls(execute, run),
            holds=_holds(execute, run),
            inputs={row[0]: row[1] for row in _of_run(execute, run, "inputs", ("name", "value"), "name")},
            turns=tuple(row[0] for row in _of_run(execute, run, "turns", ("at",), "at")),
            stop=next((StopRecord(*row) for row in _of_run(execute, run, "stops", names(StopRecord), "run")), None),
            verdict=_verdict(execute, run),
            lost=row[_WIDTH],
            would_stop=_spared(*row[_WIDTH + 1 :]),
        )
    return None


def summaries(
    execute: Execute, *, open_only: bool, task: str | None, verdict: str | None, limit: int
) -> tuple[RunSummary, ...]:
    """The runs that fit, the latest first."""
    wanted = {"r.task = ?": task, "v.kind = ?": verdict}
    wanted = {condition: value for condition, value in wanted.items() if value is not None}
    conditions = [*wanted, *(["r.ended IS NULL"] if open_only else [])]
    where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    rows = execute(f"{_SUMMARY}{where} ORDER BY r.started DESC, r.id LIMIT ?", (*wanted.values(), limit))
    return tuple(_summary(row) for row in rows)


class Holder(NamedTuple):
    """A run as a process has it: by what that is known to be there, whether it is, and whether it still has the run.

    `present` as in `is_alive`, `alive` as in `RunHistory`.
    """

    run: RunRecord
    presence: int | None
    present: bool | None
    alive: bool | None

    def is_that_of(self, run: RunRecord, presence: int | None) -> bool:
        """Whether it is the process that opens the run now, or was one that had its number."""
        if self.present:
            return self.presence == presence
        return (self.run.host, self.run.pid) == (run.host, run.pid)


def holders(execute: Execute, condition: str, value: object) -> list[Holder]:
    """The runs that meet a condition, and who has them."""
    rows = execute(f"SELECT {_RUN}, r.presence FROM runs r WHERE {condition}", (value,))
    return [_holder(*row) for row in rows]


def contents(execute: Execute, run: str) -> list[bytes]:
    """The pictures of a run in their stored form."""
    return [bytes(row[0]) for row in _of_run(execute, run, "pictures", ("content",), "place")]


def _of_run(execute: Execute, run: str, table: str, columns: Sequence[str], order: str) -> list[Row]:
    return execute(f"SELECT {', '.join(columns)} FROM {table} WHERE run = ? ORDER BY {order}", (run,))


def _run(row: Sequence[Any]) -> tuple[RunRecord, float | None, bool | None]:
    *values, opened, ended, present = row
    record = RunRecord(*values)
    return record, ended, is_alive(record.pid, record.host, opened, present) if ended is None else None


def _holder(*row: Any) -> Holder:
    record, _, alive = _run(row[:_WIDTH])
    return Holder(record, row[_WIDTH], row[_WIDTH - 1], alive)


def _summary(row: Row) -> RunSummary:
    record, ended, alive = _run(row[:_WIDTH])
    values: list[Any] = [*row[_WIDTH:-6], _spared(*row[-6:])]
    return RunSummary(record, ended, alive, *values)


def _spared(
    number: int | None, tool: str, rule: str | None, sign: str, outcome: str, because: str | None
) -> Stop | None:
    """The stop that an observed run was spared at a call; its detail is known once the run has its verdict."""
    if number is None:
        return None
    reason = (rule or "").removeprefix("would_stop: ") or ("guard_error" if sign == "guard_error" else outcome)
    stop = Stop(reason, number, tool)
    return replace(stop, detail=(because or "").partition(f"would have been {stop}")[2].removeprefix(": "))


def _calls(execute: Execute, run: str) -> tuple[RecordedCall, ...]:
    return tuple(_call(row) for row in _of_run(execute, run, "calls", CALL_COLUMNS + OUTCOME_COLUMNS, "number"))


def _call(row: Row) -> RecordedCall:
    call = CallRecord(*row[: len(CALL_COLUMNS)])
    outcome, sign, message, action, executed, *rest = row[len(CALL_COLUMNS) :]
    if outcome is None:
        return RecordedCall(call, None)
    return RecordedCall(
        call, OutcomeRecord(call.run, call.number, outcome, sign, message, action, bool(executed), *rest)
    )


def _holds(execute: Execute, run: str) -> tuple[RecordedHold, ...]:
    columns = (*names(HoldRecord), "resolved_by", "resolved_at")
    return tuple(_hold(row) for row in _of_run(execute, run, "holds", columns, "number"))


def _hold(row: Row) -> RecordedHold:
    *values, by, at = row
    hold = HoldRecord(*values)
    return RecordedHold(hold, None if at is None else HoldResolved(hold.run, hold.number, by, at))


def _verdict(execute: Execute, run: str) -> VerdictRecord | None:
    for row in _of_run(execute, run, "verdicts", names(VerdictRecord), "run"):
        found = _of_run(execute, run, "findings", FINDING_COLUMNS, "number")
        return replace(VerdictRecord(*row), findings=tuple(map(_finding, found)))
    return None


def _finding(row: Row) -> FindingRecord:
    finding = FindingRecord(*row)
    return replace(finding, warning=bool(finding.warning))  # SQLite has no truth values, only 0 and 1
