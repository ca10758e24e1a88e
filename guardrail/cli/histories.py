"""A recorded run told from beginning to end, on the terminal and as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from rich.table import Table
from rich.text import Text

from guardrail.cli.moments import iso, lasting, local
from guardrail.cli.screen import Screen, counted, joined, shown
from guardrail.cli.selection import short
from guardrail.cli.states import state_of, state_text
from guardrail.cli.tables import ACTIONS, OUTCOMES, Cell, grid, table, word
from guardrail.cli.verdicts import show, show_stop, stop_json
from guardrail.run.history import inputs_of, stop_of

if TYPE_CHECKING:
    from guardrail.calls import Stop
    from guardrail.ledger.records import CallRecord, RecordedCall, RecordedHold, RunHistory, VerdictRecord


def show_history(screen: Screen, history: RunHistory) -> None:
    """Print all that is known of a run."""
    run = history.run
    screen.say(shown(run.task or "no task", "bold"), state_text(_state(history)))
    screen.print(grid(list(_facts(history))))
    if history.calls:
        screen.print()
        screen.print(_calls(history))
    screen.print()
    _show_end(screen, history)


def _facts(history: RunHistory) -> Iterator[tuple[str, Cell]]:
    run = history.run
    yield "run", run.id
    if inputs := {**_mapping(run.inputs), **inputs_of(history)}:
        yield "inputs", _pairs(inputs)
    yield "policy", f"{run.policy} ({run.mode})"
    took = "" if history.ended is None else f", {lasting(history.ended - run.started)}"
    yield "started", f"{local(run.started)}{took}"
    yield "process", f"{run.pid} on {run.host}"
    if run.trace_id:
        yield "trace", run.trace_id
    if history.lost:
        yield "lost", shown(f"{counted(history.lost, 'record')}: what follows has gaps", "yellow")


def _calls(history: RunHistory) -> Table:
    """The calls in order, with turns of the user between them, and what belongs to a call below it."""
    holds = {recorded.hold.call: recorded for recorded in history.holds}
    turns = list(history.turns)
    rows: list[Sequence[Cell]] = []
    for recorded in history.calls:
        while turns and turns[0] <= recorded.call.started:
            rows.append(_turn(turns.pop(0)))
        rows.append(_call(recorded, holds.get(recorded.call.number), history))
    rows += map(_turn, turns)
    return table(("#", "call", "effect", "outcome", "decision", "took"), rows, numbers=("#", "took"))


def _turn(at: float) -> Sequence[Cell]:
    return "", shown("— the user spoke —", "dim"), "", "", "", ""


def _call(recorded: RecordedCall, hold: RecordedHold | None, history: RunHistory) -> Sequence[Cell]:
    call, outcome = recorded.call, recorded.outcome
    told = joined(shown(call.tool, "bold"), f"({_pairs(_mapping(call.args))})")
    for line in _below(recorded, hold, history):
        told.append("\n").append_text(line)
    if outcome is None:
        missing = "running" if history.alive else "in_doubt" if call.effect != "read" else "cut_off"
        return str(call.number), told, call.effect, word(missing, OUTCOMES), "", ""
    took = lasting(outcome.ended - call.started) if outcome.executed else "-"
    decision = word(outcome.action, ACTIONS)
    return str(call.number), told, call.effect, word(outcome.outcome, OUTCOMES), decision, took


def _below(recorded: RecordedCall, hold: RecordedHold | None, history: RunHistory) -> Iterator[Text]:
    """What there is to say of a call beside its line."""
    outcome, stop = recorded.outcome, history.stop
    if stop is not None and stop.call == recorded.call.number:
        yield shown("the run was stopped here", "bold red")
    elif outcome is not None and outcome.message:
        yield shown(outcome.message, "dim")
    if outcome is not None and outcome.rule:
        yield shown(outcome.rule.replace("_", " "), "yellow")
    if hold is not None and hold.resolved is None:
        yield shown("held to the end", "yellow")
    elif hold is not None and hold.resolved is not None:
        by = "the user spoke" if hold.resolved.by == "user" else hold.resolved.by
        yield shown(f"held until {by}", "green")


def _show_end(screen: Screen, history: RunHistory) -> None:
    """How the run ended, and what of it is not settled."""
    stop = stop_of(history)
    if stop is not None:
        show_stop(screen, stop)
    if history.would_stop is not None:
        screen.item("□", shown(f"would have been {history.would_stop}", "yellow"), "yellow", indent=0)
    if history.ended is None:
        screen.say(_open_text(history))
    if history.verdict is not None:
        show(screen, _without_spared(history.verdict, history.would_stop))
    for call in _writes_in_doubt(history):
        screen.item(*_doubt(call, history))


def _without_spared(verdict: VerdictRecord, spared: Stop | None) -> VerdictRecord:
    """The verdict without what stands in a line of its own: the stop that the run was spared."""
    told = f"only observed, it would have been {spared}"
    return replace(verdict, because=verdict.because.removesuffix(told).removesuffix("; "))


def _doubt(call: CallRecord, history: RunHistory) -> tuple[str, Text, str]:
    """What is known of a write in doubt, with its mark: where the state is verified, nothing was done twice."""
    named = f"call {call.number} ({call.tool})"
    if history.verdict is not None and history.verdict.kind == "verified":
        told = f"{named} was in doubt; the state is verified, so what the task wants was done, once"
        return "✓", shown(told), "green"
    return "!", shown(f"{named} may or may not have been carried out"), "red"


def _open_text(history: RunHistory) -> Text:
    said = {
        "open": "the run is going on",
        "open_elsewhere": f"the run is open, or was cut off: {history.run.host} can tell",
        "cut_off": f"its process has gone; `guardrail verify --run {short(history.run.id)}` judges what it left",
    }
    return joined(state_text(_state(history)), f": {said[_state(history)]}")


def _writes_in_doubt(history: RunHistory) -> list[CallRecord]:
    return [call for call in history.in_doubt if call.effect != "read"]


def as_json(history: RunHistory) -> dict[str, Any]:
    """All that is known of a run as plain data."""
    run, verdict = history.run, history.verdict
    return {
        "id": run.id,
        "task": run.task,
        "state": _state(history),
        "inputs": {**_mapping(run.inputs), **inputs_of(history)},
        "policy": run.policy,
        "mode": run.mode,
        "started": iso(run.started),
        "ended": iso(history.ended),
        "pid": run.pid,
        "host": run.host,
        "trace_id": run.trace_id,
        "calls": [_call_json(recorded) for recorded in history.calls],
        "holds": [_hold_json(recorded) for recorded in history.holds],
        "user_turns": [iso(at) for at in history.turns],
        "writes_in_doubt": [call.number for call in _writes_in_doubt(history)],
        "stop": stop_json(stop_of(history)),
        "would_stop": stop_json(history.would_stop),
        "verdict": None if verdict is None else _verdict_json(verdict),
        "records_lost": history.lost,
    }


def _call_json(recorded: RecordedCall) -> dict[str, Any]:
    call, outcome = recorded.call, recorded.outcome
    made = {
        "number": call.number,
        "tool": call.tool,
        "call_id": call.call_id,
        "effect": call.effect,
        "args": _value(call.args),
        "started": iso(call.started),
    }
    if outcome is None:
        return {**made, "outcome": None}
    return {
        **made,
        "outcome": outcome.outcome,
        "sign": outcome.sign,
        "message": outcome.message,
        "decision": outcome.action,
        "executed": outcome.executed,
        "rule": outcome.rule,
        "ended": iso(outcome.ended),
    }


def _hold_json(recorded: RecordedHold) -> dict[str, Any]:
    hold, resolved = recorded.hold, recorded.resolved
    return {
        "call": hold.call,
        "tool": hold.tool,
        "outcome": hold.outcome,
        "detail": hold.detail,
        "resolved_by": None if resolved is None else resolved.by,
    }


def _verdict_json(verdict: VerdictRecord) -> dict[str, Any]:
    return {
        "kind": verdict.kind,
        "because": verdict.because,
        "open_holds": verdict.open_holds,
        "alternative": verdict.alternative,
        "findings": [
            {
                "kind": finding.kind,
                "place": finding.place,
                "key": _value(finding.key),
                "column": finding.column,
                "expected": _value(finding.expected),
                "actual": _value(finding.actual),
                "warning": finding.warning,
                "text": finding.text,
            }
            for finding in verdict.findings
        ],
    }


def _state(history: RunHistory) -> str:
    return state_of(history.ended, history.alive, None if history.verdict is None else history.verdict.kind)


def _value(text: str | None) -> Any:
    """What a recorded JSON text holds."""
    return None if text is None else json.loads(text)


def _mapping(text: str) -> Mapping[str, Any]:
    found = _value(text)
    return cast("Mapping[str, Any]", found) if isinstance(found, dict) else {}


def _pairs(values: Mapping[str, Any]) -> str:
    """Names and values in one line: `order_id=17, amount='19.90'`."""
    from guardrail.state.wording import show_row

    return show_row(values)
