"""A run's history: how holds are recorded, and how a run is taken up again from what was recorded."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable
from typing import Any, cast

from guardrail.calls import Finding, Stop, Verdict
from guardrail.decide.holds import Hold
from guardrail.decide.operations import Operation, after
from guardrail.ledger.records import FindingRecord, HoldRecord, RecordedCall, RunHistory, VerdictRecord
from guardrail.telemetry.canonical import digest
from guardrail.telemetry.redaction import redact_text, snapshot_text
from guardrail.telemetry.secrecy import REDACTED


class Digested:
    """An argument that was not recorded as it is (secret, long, no plain value): equal to what has its digest."""

    def __init__(self, code: str, run: str) -> None:
        self._code = code
        self._secret = run.encode()

    def __eq__(self, other: object) -> bool:
        return digest("", other, self._secret) == self._code

    __hash__ = None  # type: ignore[assignment]


def hold_record(run: str, hold: Hold, redact: Collection[str]) -> HoldRecord:
    """A hold as the ledger keeps it; its number is that of the call that opened it."""
    shown = json.loads(snapshot_text(hold.args, redact))
    rest = {
        "digests": {
            name: digest("", value, run.encode()) for name, value in hold.args.items() if shown.get(name) != value
        },
        "effect": hold.effect,
        "looked_for": hold.looked_for,
        "retries": hold.retries,
        "idempotent": hold.idempotent,
        "series": None if hold.series is None else json.loads(snapshot_text(hold.series, redact)),
    }
    return HoldRecord(
        run,
        hold.call,
        hold.call,
        hold.tool,
        hold.outcome,
        redact_text(hold.detail),
        json.dumps(shown),
        json.dumps(rest),
    )


def verdict_record(run: str, verdict: Verdict, ended: float) -> VerdictRecord:
    """A verdict as the ledger keeps it."""
    return VerdictRecord(
        run,
        verdict.kind,
        verdict.because,
        verdict.open_holds,
        verdict.alternative,
        verdict.looks,
        ended,
        tuple(map(_finding_record, verdict.findings)),
    )


def _finding_record(finding: Finding) -> FindingRecord:
    return FindingRecord(
        finding.kind,
        finding.place,
        finding.text,
        snapshot_text(dict(finding.key)),
        finding.column,
        snapshot_text(finding.expected),
        snapshot_text(finding.actual),
        finding.warning,
    )


def holds_of(history: RunHistory) -> tuple[Hold, ...]:
    """The open holds of a run, and one for each write that an earlier process left in doubt."""
    recorded = [_hold(record) for record in history.open_holds]
    known = {hold.call for hold in recorded}
    cut_off = [
        Hold(call.number, call.tool, call.effect, "in_doubt", _arguments(call.args), "its process ended while it ran")
        for call in history.unfinished
        if call.number not in known
    ]
    return (*recorded, *cut_off)


def operations_of(calls: Iterable[RecordedCall]) -> dict[str, Operation]:
    """What is known of the writes of a run, by operation key; the last one of a key counts."""
    known = (_operation(recorded) for recorded in calls)
    return {operation.key: operation for operation in known if operation is not None}


def _operation(recorded: RecordedCall) -> Operation | None:
    """What is known of one write: without an outcome, nobody knows what became of it."""
    call, outcome = recorded.call, recorded.outcome
    if call.operation is None or (outcome is not None and not outcome.executed):
        return None
    begun = Operation(call.operation, call.digest, call.operation != call.digest, "in_doubt", call.number)
    return begun if outcome is None else after(begun, outcome.outcome)


def stop_of(history: RunHistory) -> Stop | None:
    """The stop that ended the run: it stays stopped."""
    stop = history.stop
    return None if stop is None else Stop(stop.reason, stop.call, stop.tool, stop.detail)


def inputs_of(history: RunHistory) -> dict[str, Any]:
    """The inputs that the run was opened with or that were bound during it; those that were redacted are not known."""
    bound = {name: json.loads(text).get(name) for name, text in history.inputs.items()}
    known = {**_arguments(history.run.inputs), **bound}
    return {name: value for name, value in known.items() if value != REDACTED}


def _hold(record: HoldRecord) -> Hold:
    rest = json.loads(record.rest)
    return Hold(
        record.call,
        record.tool,
        rest["effect"],
        record.outcome,
        {**_arguments(record.args), **{n: Digested(code, record.run) for n, code in rest["digests"].items()}},
        record.detail,
        rest["looked_for"],
        rest["retries"],
        rest["series"],
        rest["idempotent"],
    )


def _arguments(text: str) -> dict[str, Any]:
    """Redacted arguments read back: enough to tell a retry, unless what tells it is a secret."""
    found = json.loads(text)
    return cast("dict[str, Any]", found) if isinstance(found, dict) else {}
