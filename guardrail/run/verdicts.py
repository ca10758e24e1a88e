"""The verdict of a run, from what its state came to and from how it ended."""

from __future__ import annotations

from guardrail.calls import Finding, Stop, Verdict, VerdictKind
from guardrail.verification.verification import Judged

UNSEEN = (
    "a write of the run came out well, and nothing that was expected is visible to another connection: "
    "was it committed, to this database, and into a watched table?"
)

UNSEEN_IN_API = (
    "a write of the run came out well, and the API answers as it did before: did the write go to this API, is it done "
    "by now (else give it time by `settle`), and does the watched resource show what was written?"
)


def verdict_of(
    state: Judged,
    *,
    stop: Stop | None,
    agent_error: str | None,
    open_holds: int,
    would: Stop | None = None,
    written: int = 0,
) -> Verdict:
    """The first that applies of stopped, agent_error, silent_failure, unverified, verified.

    Findings are attached whatever the kind: a proven wrong value is not hidden by a check that could not
    be made, nor by a stop. `written` counts the writes of the run that came out well; `would`
    is the stop that a run which is only observed was spared.
    """
    kind = _kind(state, stop, agent_error)
    failed = stop is not None or would is not None or open_holds > 0  # then that is why nothing is there
    reasons = (
        _because(kind, state, agent_error) or ("" if failed else _unseen(state, written)),
        f"only observed, it would have been {would}" if would is not None else "",
    )
    return Verdict(
        kind,
        state.findings,
        stop=stop,
        open_holds=open_holds,
        alternative=state.alternative,
        because="; ".join(filter(None, reasons)),
        looks=state.looks,
    )


def _kind(state: Judged, stop: Stop | None, agent_error: str | None) -> VerdictKind:
    counted = [finding for finding in state.findings if not finding.warning]
    if stop is not None:
        return "stopped"
    if agent_error is not None:
        return "agent_error"
    if any(finding.kind != "check_error" for finding in counted):
        return "silent_failure"
    return "unverified" if counted or state.because else "verified"


def _because(kind: VerdictKind, state: Judged, agent_error: str | None) -> str:
    match kind:
        case "agent_error":
            return agent_error or ""
        case "unverified":
            return state.because or state.note or _not_checked(state.findings)
        case _:
            return state.note


def _unseen(state: Judged, written: int) -> str:
    """What to look for where something is missing and nothing at all has changed; else nothing.

    What is warned of the very place where something is missing is the likeliest reason, whether the run wrote or not.
    """
    missing = {finding.place for finding in state.findings if finding.kind == "missing_change"}
    if not state.untouched or not missing:
        return ""
    hints = [f.text for f in state.findings if f.warning and f.kind == "check_error" and f.place in missing]
    if hints or not written:
        return "; ".join(hints)
    return UNSEEN_IN_API if missing <= state.apis else UNSEEN


def _not_checked(findings: tuple[Finding, ...]) -> str:
    missed = [finding for finding in findings if finding.kind == "check_error" and not finding.warning]
    if not missed:
        return ""
    more = f" (and {len(missed) - 1} more)" if len(missed) > 1 else ""
    return f"{missed[0].text}{more}"
