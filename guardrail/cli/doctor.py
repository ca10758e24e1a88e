"""`guardrail doctor`: will a guard with this configuration work here?"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from guardrail.cli.exits import Exit
from guardrail.cli.inputs import read_inputs
from guardrail.cli.options import Config, Inputs, Json
from guardrail.cli.places import configuration_file, live
from guardrail.cli.screen import Screen, counted, print_json, shown
from guardrail.cli.tables import LEVELS, table, word
from guardrail.errors import ConfigurationError, LedgerError, StoreError
from guardrail.stores.store import Remark

if TYPE_CHECKING:
    from guardrail.declare.configuration import Configuration
    from guardrail.ledger.ledger import Ledger


def doctor(input: Inputs = None, config: Config = None, json: Json = False) -> None:
    """Examine the configuration, its stores, its tasks in them, and the ledger.

    Resources of HTTP APIs that take inputs are tried with those
    that are given.
    Exit codes: 0 all well, or nothing but notes and warnings; 1 an error.
    """
    file = configuration_file(config)
    remarks = tuple(_remarks(file, input or ()))
    counts = {level: sum(remark.level == level for remark in remarks) for level in ("error", "warning")}
    if json:
        told = [{"level": remark.level, "place": remark.place, "text": remark.text} for remark in remarks]
        print_json({"file": str(file), "errors": counts["error"], "warnings": counts["warning"], "remarks": told})
    else:
        _show(file, remarks, counts["error"], counts["warning"])
    raise typer.Exit(Exit.WRONG if counts["error"] else Exit.GOOD)


def _show(file: Path, remarks: Sequence[Remark], errors: int, warnings: int) -> None:
    screen = Screen()
    if remarks:
        rows = [(word(remark.level, LEVELS), remark.place, remark.text) for remark in remarks]
        screen.print(table(("", "where", "what"), rows))
        screen.print()
    style = LEVELS["error"] if errors else LEVELS["warning"] if warnings else LEVELS["ok"]
    said = f"{counted(errors, 'error')}, {counted(warnings, 'warning')}" if errors or warnings else "all is well"
    screen.say(shown(f"{file}: {said}", style))


def _remarks(file: Path, given: Sequence[str]) -> Iterator[Remark]:
    from guardrail.run.examination import examine, input_types

    try:
        with live(file) as made:
            yield from examine(made, read_inputs(input_types(made.configuration.tasks), given))
            configuration = made.configuration
    except ConfigurationError as error:
        yield from (Remark("error", "configuration", str(mistake)) for mistake in error.mistakes)
        return
    except StoreError as error:
        yield Remark("error", "stores", str(error))
        return
    yield from _of_ledger(configuration, file)


def _of_ledger(configuration: Configuration, file: Path) -> Iterator[Remark]:
    from guardrail.ledger.ledger import Ledger
    from guardrail.ledger.opening import is_url
    from guardrail.run.live import ledger_place

    place = ledger_place(configuration, file.parent)
    if place == "memory":
        yield Remark("warning", "ledger", "it is kept in memory: after a crash nothing is left to judge a run by")
    elif not is_url(place) and not Path(place).exists():
        yield from _of_folder(Path(place).absolute().parent)
    else:
        try:
            yield from _of_database(Ledger(place))
        except LedgerError as error:
            yield Remark("error", "ledger", str(error))


def _of_folder(folder: Path) -> Iterator[Remark]:
    """Whether a ledger that is not there yet can be made."""
    there = next(parent for parent in (folder, *folder.parents) if parent.exists())
    if not there.is_dir() or not os.access(there, os.W_OK | os.X_OK):
        yield Remark("error", "ledger", f"it cannot be made in {folder}: this process may not write in {there}")


def _of_database(ledger: Ledger) -> Iterator[Remark]:
    with closing(ledger):
        yield from (Remark("warning", "ledger", text) for text in ledger.remarks())
        cut_off = [summary for summary in ledger.runs(open_only=True, limit=1000) if summary.alive is False]
        if cut_off:
            text = f"{counted(len(cut_off), 'run')} cut off and never judged: see `guardrail runs list --open`"
            yield Remark("warning", "ledger", text)
