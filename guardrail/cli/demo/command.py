"""The command: play, and show or print."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from shutil import which
from typing import TYPE_CHECKING, Annotated, Any

import typer

from guardrail.cli.options import Json
from guardrail.cli.screen import Screen, print_json

if TYPE_CHECKING:
    from collections.abc import Sequence

    from guardrail.cli.demo.changes import Change
    from guardrail.cli.demo.place import Place
    from guardrail.cli.demo.playing import Played


def demo(
    into: Annotated[
        Path, typer.Option("--into", metavar="DIR", help="The folder for what the demo leaves behind.")
    ] = Path("guardrail-demo"),
    svg: Annotated[Path | None, typer.Option("--svg", metavar="FILE", hidden=True)] = None,
    json: Json = False,
) -> None:
    """Show the guard at work: a small shop, a scripted agent, five runs."""
    from guardrail.cli.demo.photo import photograph
    from guardrail.cli.demo.place import Place
    from guardrail.cli.demo.playing import play
    from guardrail.cli.demo.scenes import show

    place = Place(into)
    played = play(place)
    if svg is not None:
        photograph(svg, place, played)
    if json:
        print_json(_document(place, played))
    else:
        show(Screen(), place, played, _program())


def _program() -> str:
    """How the command line is called from here: by its name, its path, or as a module of the running Python."""
    if which("guardrail") is not None:
        return "guardrail"
    python = Path(sys.executable)
    program = python.with_name("guardrail")
    return shlex.quote(_from_here(program)) if program.is_file() else f"{shlex.quote(_from_here(python))} -m guardrail"


def _from_here(path: Path) -> str:
    """A path below the working directory relative to it, any other as it is."""
    here = Path.cwd()
    return str(path.relative_to(here) if path.is_relative_to(here) else path)


def _document(place: Place, played: Sequence[Played]) -> dict[str, Any]:
    files = {"configuration": place.configuration, "shop": place.shop, "ledger": place.ledger, "trace": place.trace}
    return {
        "folder": str(place.folder),
        "files": {name: str(file) for name, file in files.items()},
        "runs": [_run(one) for one in played],
    }


def _run(played: Played) -> dict[str, Any]:
    """A run as `guardrail runs show --json` gives it, and its story."""
    from guardrail.cli.histories import as_json

    told = {"title": played.story.title, "request": played.story.request, "answer": played.answer}
    return {**as_json(played.history), **told, "changes": [_change(change) for change in played.changes]}


def _change(change: Change) -> dict[str, Any]:
    return {"table": change.table, "id": change.id, "before": change.before, "after": change.after}
