"""`guardrail runs`: what the ledger knows of runs."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from guardrail.cli.exits import Exit, Misuse
from guardrail.cli.histories import as_json, show_history
from guardrail.cli.moments import age, iso, local
from guardrail.cli.options import Config, Json
from guardrail.cli.places import opened_ledger
from guardrail.cli.screen import Screen, counted, joined, print_json, shown
from guardrail.cli.selection import find_run, short
from guardrail.cli.states import state_of, state_text
from guardrail.cli.tables import Cell, table
from guardrail.cli.verdicts import stop_json

if TYPE_CHECKING:
    from rich.text import Text

    from guardrail.ledger.records import RunSummary

Place: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--ledger", metavar="PLACE", help="The ledger, by its path or URL; else the one of the configuration."
    ),
]
Id: TypeAlias = Annotated[str, typer.Argument(metavar="ID", help="The run's id, or the beginning of it.")]

runs = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    help="List, show and delete the runs of a ledger.",
)


class VerdictName(StrEnum):
    """The verdicts that a run can have."""

    stopped = "stopped"
    agent_error = "agent_error"
    silent_failure = "silent_failure"
    unverified = "unverified"
    verified = "verified"


def _verdict(said: str) -> VerdictName:
    """The verdict that is meant, however its words are put together: `silent-failure`."""
    try:
        return VerdictName("_".join(said.lower().replace("-", " ").replace("_", " ").split()))
    except ValueError as error:
        raise typer.BadParameter(f"{said!r} is none of {', '.join(VerdictName)}") from error


@runs.command("list")
def list_runs(
    open_only: Annotated[bool, typer.Option("--open", help="Only runs that have not been closed.")] = False,
    task: Annotated[str | None, typer.Option("--task", metavar="NAME", help="Only runs of this task.")] = None,
    verdict: Annotated[
        VerdictName | None,
        typer.Option(
            "--verdict", metavar="V", parser=_verdict, help=f"Only runs with this verdict: {', '.join(VerdictName)}."
        ),
    ] = None,
    limit: Annotated[int, typer.Option("--limit", metavar="N", min=1, help="At most so many, the latest first.")] = 20,
    ledger: Place = None,
    config: Config = None,
    json: Json = False,
) -> None:
    """List runs, the latest first; one whose process has gone without closing it is cut off."""
    wanted = None if verdict is None else verdict.value
    with opened_ledger(ledger, config) as opened:
        found = opened.runs(open_only=open_only, task=task, verdict=wanted, limit=limit)
    if json:
        print_json({"runs": [_summary_json(summary) for summary in found]})
    elif not found:
        Screen().say(shown("there are no such runs"))
    else:
        heads = ("run", "started", "task", "calls", "came to")
        Screen().print(table(heads, map(_row, found), numbers=("calls",)))


@runs.command("show")
def show_run(id: Id, ledger: Place = None, config: Config = None, json: Json = False) -> None:
    """Show a run: its calls with outcome and decision, holds, stop and findings."""
    with opened_ledger(ledger, config) as opened:
        history = find_run(opened, id)
    if json:
        print_json(as_json(history))
    else:
        show_history(Screen(), history)


@runs.command("delete")
def delete_runs(
    id: Annotated[str | None, typer.Argument(metavar="ID", help="The run's id, or the beginning of it.")] = None,
    older_than: Annotated[
        str | None, typer.Option("--older-than", metavar="AGE", help="All that ended longer ago: 30d, 12h, 2w.")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    ledger: Place = None,
    config: Config = None,
    json: Json = False,
) -> None:
    """Delete a run, or all that are older, with everything recorded of them; a run that is still open stays."""
    if (id is None) == (older_than is None):
        raise Misuse("give the ID of a run, or --older-than AGE, one of them")
    seconds = None if older_than is None else age(older_than)
    with opened_ledger(ledger, config) as opened:
        run = None if id is None else find_run(opened, id).run.id
        _confirm(
            f"Delete run {run}" if run else f"Delete all runs that ended more than {older_than} ago", yes, json=json
        )
        deleted = opened.delete(run, older_than=seconds)
    if json:
        print_json({"deleted": deleted})
    else:
        Screen().say(shown(f"deleted {counted(deleted, 'run')}"))


def _confirm(question: str, agreed: bool, *, json: bool) -> None:
    """Ask before something is lost; who cannot answer, or reads nothing but JSON, must have agreed before."""
    if agreed:
        return
    if json or not sys.stdin.isatty():
        raise Misuse(f"{question}? There is nobody to ask: say --yes")
    if not typer.confirm(f"{shown(question)}?", err=True):
        Screen(stderr=True).say(shown("nothing was deleted"))
        raise typer.Exit(Exit.GOOD)


def _row(summary: RunSummary) -> Sequence[Cell]:
    run = summary.run
    return short(run.id), local(run.started, seconds=False), run.task or "-", f"{summary.calls:,}", _came_to(summary)


def _came_to(summary: RunSummary) -> Text:
    """What a run came to, and what else should be known of it."""
    notes = ", ".join(_notes(summary))
    text = state_text(state_of(summary.ended, summary.alive, summary.verdict))
    return joined(text, f": {notes}" if notes else "")


def _notes(summary: RunSummary) -> Iterator[str]:
    if summary.stop is not None:
        yield summary.stop.replace("_", " ")
    if summary.would_stop is not None:
        yield f"would stop: {summary.would_stop.reason.replace('_', ' ')} at call {summary.would_stop.call}"
    if summary.findings:
        yield counted(summary.findings, "finding")
    if summary.in_doubt:
        yield f"{counted(summary.in_doubt, 'write')} in doubt"
    if summary.open_holds:
        yield counted(summary.open_holds, "open hold")
    if summary.lost:
        yield f"{counted(summary.lost, 'record')} lost"


def _summary_json(summary: RunSummary) -> dict[str, Any]:
    run = summary.run
    return {
        "id": run.id,
        "task": run.task,
        "state": state_of(summary.ended, summary.alive, summary.verdict),
        "verdict": summary.verdict,
        "started": iso(run.started),
        "ended": iso(summary.ended),
        "policy": run.policy,
        "mode": run.mode,
        "calls": summary.calls,
        "findings": summary.findings,
        "writes_in_doubt": summary.in_doubt,
        "open_holds": summary.open_holds,
        "stop": summary.stop,
        "would_stop": stop_json(summary.would_stop),
        "records_lost": summary.lost,
        "trace_id": run.trace_id,
    }
