"""`guardrail verify`: is the state as a task's contract wants it, now or at the end of a run that was cut off?"""

from __future__ import annotations

import json as jsons
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from guardrail.cli.exits import Exit, Misuse
from guardrail.cli.inputs import read_inputs
from guardrail.cli.options import Config, Inputs, Json
from guardrail.cli.places import configuration_file, find_modules, live
from guardrail.cli.screen import Screen, print_json, shown
from guardrail.cli.selection import find_run
from guardrail.cli.verdicts import as_json, show, show_stop

if TYPE_CHECKING:
    from guardrail.calls import Verdict
    from guardrail.ledger.records import RunHistory, RunRecord
    from guardrail.run.guard import Guard


def verify(
    task: Annotated[
        str | None, typer.Argument(metavar="TASK", help="The task whose contract is held against the state.")
    ] = None,
    input: Inputs = None,
    run: Annotated[
        str | None, typer.Option("--run", metavar="ID", help="Judge and close this run, whose process was cut off.")
    ] = None,
    config: Config = None,
    force: Annotated[
        bool, typer.Option("--force", help="With --run: the run was opened on another host, and has ended there.")
    ] = False,
    json: Json = False,
) -> None:
    """Look at the live state: TASK as it is now, or a run that was cut off as it left it.

    Of TASK, the checks are judged, and what can be told without
    a picture from before; the rest is listed as not checkable.
    Exit codes: 0 verified, 1 wrong, 3 not all could be checked.
    """
    if (task is None) == (run is None):
        raise Misuse("give a TASK to look at, or a run by --run ID, one of them")
    file = configuration_file(config)
    if run is not None:
        record, verdict = _judged(file, run, input or (), force=force)
        _report(record.task, verdict, run=record.id, json=json)
    elif task is not None:
        _report(task, _looked(file, task, input or ()), run=None, json=json)


def _looked(file: Path, task: str, inputs: Sequence[str]) -> Verdict:
    """The state of now under a task's contract."""
    from guardrail.run.looking import look_now

    with live(file) as made:
        declared = made.configuration.tasks.get(task)
        return look_now(made, task, read_inputs(declared.inputs if declared else {}, inputs))


def _judged(file: Path, run: str, inputs: Sequence[str], *, force: bool) -> tuple[RunRecord, Verdict]:
    """Take up a run that was cut off, and close it: the run and its verdict."""
    from guardrail.run.guard import Guard

    find_modules()
    with Guard.load(file) as guard:
        history = _cut_off(guard, run, force=force)
        task = history.run.task
        declared = guard.configuration.tasks.get(task) if task is not None else None
        known = {name: value for name, value in jsons.loads(history.run.inputs).items() if not _is_hidden(value)}
        return history.run, _closed(
            guard, history, {**known, **read_inputs(declared.inputs if declared else {}, inputs)}
        )


def _cut_off(guard: Guard, run: str, *, force: bool) -> RunHistory:
    """The run's history; raises `Misuse` for one that was not cut off."""
    history = find_run(guard.ledger, run)
    run = history.run.id
    if history.ended is not None:
        raise Misuse(f"the run {run} has ended and was judged: see `guardrail runs show {run}`")
    record = history.run
    if history.alive:
        there = f"process {record.pid} on {record.host}"
        raise Misuse(f"the run {run} is still open in {there}: it is judged when it ends there")
    if history.alive is None and not force:
        raise Misuse(
            f"the run {run} was opened on {record.host}, and whether process {record.pid} still lives cannot be told "
            "from here: judge it there, or, if it has ended, add --force"
        )
    return history


def _closed(guard: Guard, history: RunHistory, inputs: Mapping[str, object]) -> Verdict:
    from guardrail.errors import RunStopped, SilentFailure

    run = guard.run(history.run.task, id=history.run.id, inputs=inputs)
    with suppress(RunStopped, SilentFailure), run:
        pass
    assert run.verdict is not None
    return run.verdict


def _report(task: str | None, verdict: Verdict, *, run: str | None, json: bool) -> None:
    if json:
        print_json({"task": task, "run": run, **as_json(verdict)})
    else:
        screen = Screen()
        screen.say(shown(task or "no task", "bold"), shown("as it is now" if run is None else f"run {run}", "dim"))
        if verdict.stop is not None:
            show_stop(screen, verdict.stop)
        # No run has failed where only the state of now was looked at.
        show(screen, verdict, "wrong" if run is None and verdict.kind == "silent_failure" else "")
    raise typer.Exit(Exit.of_verdict(verdict))


def _is_hidden(value: object) -> bool:
    """Whether a recorded input is not the one that was given: it was redacted, as a whole or in part."""
    return "[redacted]" in jsons.dumps(value)
