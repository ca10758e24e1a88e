"""Tables on the terminal: light, of 80 columns and more, with escaped cells."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich import box
from rich.table import Table
from rich.text import Text

from guardrail.cli.screen import shown

Cell = str | int | Text
"""What stands in a table; texts are escaped, `Text` is taken as escaped."""

OUTCOMES = {
    "ok": "green",
    "empty": "yellow",
    "incomplete": "yellow",
    "partial": "red",
    "rejected": "red",
    "error": "red",
    "in_doubt": "bold red",
    "cancelled": "yellow",
    "precondition_failed": "red",
    "refused": "red",
}
ACTIONS = {"allow": "", "hold": "yellow", "stop": "bold red"}
VERDICTS = {
    "verified": "bold green",
    "unverified": "bold yellow",
    "silent_failure": "bold red",
    "stopped": "bold red",
    "agent_error": "bold red",
}
LEVELS = {"ok": "green", "note": "dim", "warning": "yellow", "error": "bold red"}


def word(name: str, styles: dict[str, str]) -> Text:
    """A word of the library in its colour: `silent failure`."""
    return shown(name.replace("_", " "), styles.get(name, ""))


def table(
    heads: Sequence[str], rows: Iterable[Sequence[Cell]], *, numbers: Sequence[str] = (), title: str = ""
) -> Table:
    """A table; columns named in `numbers` are set to the right."""
    made = Table(
        box=box.SIMPLE_HEAD,
        title=shown(title, "bold") if title else None,
        title_justify="left",
        header_style="bold",
        show_edge=False,
        pad_edge=False,
        collapse_padding=True,
    )
    for head in heads:
        made.add_column(shown(head), justify="right" if head in numbers else "left", overflow="fold")
    add_rows(made, rows)
    return made


def add_rows(made: Table, rows: Iterable[Sequence[Cell]]) -> None:
    """Add rows to a table, apart from those that are there."""
    made.add_section()
    for row in rows:
        made.add_row(*(cell if isinstance(cell, Text) else shown(cell) for cell in row))


def grid(rows: Iterable[tuple[str, Cell]]) -> Table:
    """Names and what belongs to each, without heads."""
    made = Table.grid(padding=(0, 2))
    made.add_column(style="dim")
    made.add_column(overflow="fold")
    for name, cell in rows:
        made.add_row(shown(name), cell if isinstance(cell, Text) else shown(cell))
    return made
