"""`guardrail backtest`: what would a policy have done with recorded runs?"""

from __future__ import annotations

import json as jsons
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from guardrail.cli.exits import Misuse
from guardrail.cli.options import Json
from guardrail.cli.places import configuration
from guardrail.cli.screen import Screen, counted, percent, print_json, shown
from guardrail.cli.tables import VERDICTS, Cell, add_rows, table, word
from guardrail.cli.verdicts import show_finding, stop_json

if TYPE_CHECKING:
    from rich.table import Table

    from guardrail.declare.configuration import Configuration
    from guardrail.recorded.backtest import BacktestReport, Replayed, Share


def backtest(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="A folder of recorded runs.")],
    policy: Annotated[
        str, typer.Option("--policy", metavar="P", help="A bundled policy, or the file of a policy or configuration.")
    ] = "balanced",
    jobs: Annotated[
        int | None, typer.Option("--jobs", metavar="N", min=1, help="Processes; as many as there are processors.")
    ] = None,
    limit: Annotated[int | None, typer.Option("--limit", metavar="N", min=1, help="Only so many runs.")] = None,
    store: Annotated[
        str | None,
        typer.Option("--store", metavar="URL", help="Replay on this PostgreSQL or MariaDB, in a schema made for it."),
    ] = None,
    runs: Annotated[bool, typer.Option("--runs", help="List every flagged run: its stop, its findings.")] = False,
    json: Json = False,
) -> None:
    """Replay recorded runs against a real database, to see what a policy would have done."""
    from guardrail.recorded.backtest import backtest

    tried = tried_policy(policy)
    with _progress() as progress:
        report = backtest(folder, tried, jobs=jobs, limit=limit, store=store, progress=progress)
    if json:
        flagged = {"flagged": [_flagged_json(run) for run in _flagged(report)]} if runs else {}
        print_json({**report.as_json(), **flagged})
    else:
        _show(report, policy, runs=runs)


def tried_policy(named: str) -> str | Configuration:
    """A bundled policy's name, or what a file says. Raises `Misuse` and `ConfigurationError`."""
    from guardrail.declare.bundled import names
    from guardrail.declare.documents import read

    if named in names():
        return named
    path = Path(named)
    if not path.is_file():
        raise Misuse(f"{named} is no bundled policy ({', '.join(names())}) and no file")
    value = read(path).value
    # Only a policy has a name; what is neither is told as a configuration.
    return _with_policy(path) if isinstance(value, dict) and "name" in value else configuration(path)


def _with_policy(path: Path) -> Configuration:
    """A configuration that declares nothing but the policy of a file."""
    with TemporaryDirectory(prefix="guardrail-") as folder:
        file = Path(folder) / "guardrail.yaml"
        file.write_text(f"policy: {jsons.dumps(str(path.absolute()))}\n", "utf-8")
        return configuration(file)


@contextmanager
def _progress() -> Generator[Callable[[int, int], None]]:
    """A bar on stderr, when it is a terminal."""
    screen = Screen(stderr=True)
    if not screen.is_terminal:
        yield lambda done, total: None
        return
    columns = (TextColumn("replaying"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=screen, transient=True) as bar:
        task = bar.add_task("replaying", total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def _show(report: BacktestReport, named: str, *, runs: bool) -> None:
    screen = Screen()
    policy = report.policy if named == report.policy else f"{report.policy} of {named}"
    count = counted(len(report.replayed), "run")
    screen.say(shown(report.name, "bold"), shown(f"under {policy}: {count} in {report.seconds:.1f} s"))
    screen.print()
    screen.print(_state_table(report.state))
    screen.print()
    screen.print(_stops_table(report))
    if runs:
        _show_flagged(screen, _flagged(report))


def _state_table(state: dict[str, int]) -> Table:
    heads = ("end state", "judged wrong", "judged right", "unverified")
    rows: list[Sequence[Cell]] = [
        ("is wrong", f"{state['true_positive']:,}", _alarm(state["false_negative"]), ""),
        ("is right", _alarm(state["false_positive"]), f"{state['true_negative']:,}", ""),
        ("either", "", "", _alarm(state["unverified"])),
    ]
    return table(heads, rows, numbers=heads[1:])


def _alarm(count: int) -> Cell:
    """A count that should be 0."""
    return shown(f"{count:,}", "bold red" if count else "")


def _stops_table(report: BacktestReport) -> Table:
    stops, holds = report.stops, report.open_holds
    heads = ("runs", "all", "stopped", "%", "open hold", "% ")
    made = table(
        heads,
        [_row("passed", stops.passed, holds.passed), _row("failed", stops.failed, holds.failed)],
        numbers=heads[1:],
    )
    add_rows(made, (_row(fault, share, holds.by_fault[fault]) for fault, share in stops.by_fault.items()))
    return made


def _row(name: str, stopped: Share, held: Share) -> Sequence[Cell]:
    return name, f"{stopped.total:,}", *_cells(stopped), *_cells(held)


def _cells(share: Share) -> tuple[str, str]:
    return f"{share.count:,}", percent(share.count / share.total if share.total else None).removesuffix(" %")


def _flagged(report: BacktestReport) -> list[Replayed]:
    """The runs that somebody would want to look at."""
    return [run for run in report.replayed if run.verdict != "verified" or run.stop is not None or run.open_holds]


def _flagged_json(run: Replayed) -> dict[str, Any]:
    return {
        "run_id": run.run_id,
        "passed": run.passed,
        "state_is_right": run.state_is_right,
        "fault": run.fault,
        "verdict": run.verdict,
        "stop": stop_json(run.stop),
        "open_holds": run.open_holds,
        "findings": list(run.findings),
    }


def _show_flagged(screen: Screen, flagged: Sequence[Replayed]) -> None:
    for run in flagged:
        screen.print()
        label = f"{'passed' if run.passed else 'failed'}{f', {run.fault}' if run.fault else ''}"
        screen.say(shown(run.run_id, "bold"), shown(label, "dim"), word(run.verdict, VERDICTS))
        if run.stop is not None:
            screen.item("■", shown(f"would have been {run.stop}", "yellow"), "yellow")
        elif run.open_holds:
            screen.item("!", shown(f"ended with {counted(run.open_holds, 'open hold')}", "yellow"), "yellow")
        for finding in run.findings:
            show_finding(screen, "check_error" if run.verdict == "unverified" else "", finding)
    screen.print()
    screen.say(shown(f"{counted(len(flagged), 'flagged run')}"))
