"""What is written to the terminal: escaped texts, and JSON."""

from __future__ import annotations

import json
import os
import sys
from typing import NoReturn

import typer
from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from guardrail.telemetry.redaction import printable


class Screen(Console):
    """A console that shows data as it is: no markup, no colours but on a terminal."""

    def __init__(self, *, stderr: bool = False) -> None:
        stream = sys.stderr if stderr else sys.stdout
        super().__init__(stderr=stderr, markup=False, emoji=False, highlight=False, force_terminal=stream.isatty())

    def on_broken_pipe(self) -> NoReturn:
        """Let the command end as for any other writer: rich would end the process with code 1."""
        raise BrokenPipeError

    def say(self, *parts: RenderableType) -> None:
        """Print a line that is not broken where the terminal ends, so that it can be searched and copied."""
        self.print(*parts, soft_wrap=True)

    def item(self, mark: str, text: Text, style: str = "", indent: int = 2) -> None:
        """Print a text behind a mark; on a terminal, its further lines are indented like the first."""
        if not self.is_terminal:
            self.say(joined(f"{' ' * indent}{mark} ", text))
            return
        row = Table.grid(padding=(0, 1))
        row.add_row(shown(f"{' ' * indent}{mark}", style), text)
        self.print(row)


def shown(value: object, style: str = "", *, lines: bool = False) -> Text:
    """A value as text that a terminal neither acts on nor hides; with `lines`, line breaks stay."""
    return Text(printable(str(value), lines=lines), style)


def joined(*parts: Text | str) -> Text:
    """Texts in one, each in its own style; a `str` is shown as data."""
    return Text.assemble(*(shown(part) if isinstance(part, str) else part for part in parts))


def counted(number: int, thing: str) -> str:
    """So many things: `1 finding`, `2 findings`."""
    return f"{number:,} {thing}{'' if number == 1 else 's'}"


def percent(rate: float | None) -> str:
    """A rate from 0 to 1 in percent; a dash where there is none."""
    return "-" if rate is None else f"{100 * rate:.1f} %"


def print_json(data: object) -> None:
    """Print one JSON document, in ASCII, so that neither a terminal nor an encoding can come to harm."""
    typer.echo(json.dumps(data, indent=2))


def hang_up() -> None:
    """Let nothing more be written to a reader that has gone, not even when the process ends."""
    silence = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silence, sys.stdout.fileno())
