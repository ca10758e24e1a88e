"""The verdict of a run, from what its state came to and from how it ended."""

from __future__ import annotations

from guardrail.calls import Finding, Stop, Verdict, VerdictKind
from guardrail.verification.verification import Judged

UNSEEN = (
    "a write of the run came out well, and nothing that was expected is visible to another connection: "
    "was it committed, to this database, and into a watched table?"
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
        _because(kind, state, agent_error) or (UNSEEN if written and not failed and _is_unseen(state) else ""),
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


def _is_unseen(state: Judged) -> bool:
    """Whether something is missing, and nothing at all has changed."""
    return state.untouched and any(finding.kind == "missing_change" for finding in state.findings)


def _not_checked(findings: tuple[Finding, ...]) -> str:
    missed = [finding for finding in findings if finding.kind == "check_error" and not finding.warning]
    if not missed:
        return ""
    more = f" (and {len(missed) - 1} more)" if len(missed) > 1 else ""
    return f"{missed[0].text}{more}"
