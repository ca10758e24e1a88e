"""A verdict on the terminal and as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING

from guardrail.cli.screen import Screen, counted, joined, shown
from guardrail.cli.tables import VERDICTS, word
from guardrail.telemetry.redaction import snapshot

if TYPE_CHECKING:
    from guardrail.calls import Finding, Stop, Verdict
    from guardrail.ledger.records import FindingRecord, VerdictRecord


def as_json(verdict: Verdict) -> dict[str, object]:
    """A verdict as plain data; what could not be checked stands apart from what is wrong."""
    return {
        "verdict": verdict.kind,
        "because": verdict.because,
        "alternative": verdict.alternative,
        "open_holds": verdict.open_holds,
        "stop": stop_json(verdict.stop),
        "findings": [finding_json(finding) for finding in verdict.findings if not _is_unchecked(finding)],
        "not_checkable": [finding_json(finding) for finding in verdict.findings if _is_unchecked(finding)],
    }


def stop_json(stop: Stop | None) -> dict[str, object] | None:
    """A stop as plain data."""
    if stop is None:
        return None
    return {"reason": stop.reason, "call": stop.call, "tool": stop.tool, "detail": stop.detail}


def finding_json(finding: Finding) -> dict[str, object]:
    """A finding as plain data."""
    return {
        "kind": finding.kind,
        "place": finding.place,
        "key": snapshot(dict(finding.key)),
        "column": finding.column,
        "expected": snapshot(finding.expected),
        "actual": snapshot(finding.actual),
        "warning": finding.warning,
        "text": finding.text,
    }


def show(screen: Screen, verdict: Verdict | VerdictRecord, called: str = "") -> None:
    """Print a verdict, by its kind or as it is called: what it came to, what is wrong, what could not be checked."""
    kind = shown(called, VERDICTS[verdict.kind]) if called else word(verdict.kind, VERDICTS)
    screen.say(joined(kind, _rest(verdict)))
    for finding in sorted(verdict.findings, key=_is_unchecked):
        show_finding(screen, finding.kind, finding.text, warning=finding.warning)


def show_stop(screen: Screen, stop: Stop) -> None:
    """Print where and why a run was stopped."""
    screen.item("■", shown(stop, "bold red"), "bold red", indent=0)


def show_finding(screen: Screen, kind: str, text: str, *, warning: bool = False) -> None:
    """Print a finding behind its mark: ✗ is wrong, ? could not be checked, ! is a warning."""
    mark, style = ("!", "yellow") if warning else ("?", "yellow") if kind == "check_error" else ("✗", "red")
    screen.item(mark, shown(text), style)


def _rest(verdict: Verdict | VerdictRecord) -> str:
    """What belongs to the kind, after it."""
    unchecked = sum(map(_is_unchecked, verdict.findings))
    warnings = sum(finding.warning for finding in verdict.findings)
    wrong = len(verdict.findings) - unchecked - warnings
    parts = [
        # Why a run is unverified stands in its findings, where it has any.
        "" if verdict.kind == "unverified" and verdict.findings else verdict.because,
        counted(wrong, "finding") if wrong else "",
        counted(warnings, "warning") if warnings else "",
        f"{counted(unchecked, 'thing')} could not be checked" if unchecked else "",
        counted(verdict.open_holds, "open hold") if verdict.open_holds else "",
        f"alternative {verdict.alternative}" if verdict.alternative else "",
    ]
    said = ", ".join(part for part in parts if part)
    return f": {said}" if said else ""


def _is_unchecked(finding: Finding | FindingRecord) -> bool:
    return finding.kind == "check_error"
