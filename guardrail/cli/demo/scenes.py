"""How the demo looks on the terminal: a panel a run, a table of all, and where to look next."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from rich import box
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from guardrail.cli.screen import counted, shown
from guardrail.cli.tables import ACTIONS, OUTCOMES, VERDICTS, Cell, table, word
from guardrail.run.history import stop_of
from guardrail.state.wording import show_row

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

    from guardrail.cli.demo.changes import Change
    from guardrail.cli.demo.place import Place
    from guardrail.cli.demo.playing import Played
    from guardrail.ledger.records import RecordedCall, VerdictRecord

WIDEST: Final = 100
"""How wide panels become; on a wider terminal the rest is left free, as long lines are hard to read."""


@dataclass(frozen=True, slots=True)
class Signs:
    """What stands before a call or a finding, and between two values."""

    good: str
    wrong: str
    doubt: str
    stopped: str
    becomes: str


SIGNS: Final = Signs("✓", "✗", "?", "■", "→")
ASCII: Final = Signs("+", "x", "?", "#", "->")
"""For a terminal whose encoding has no others."""


def show(console: Console, place: Place, played: Sequence[Played]) -> None:
    """Show all runs and what they left."""
    signs = ASCII if console.options.ascii_only else SIGNS
    width = min(console.width, WIDEST)
    console.print(shown("A support agent in a small shop: one task, five customers, every call through the guard."))
    for number, one in enumerate(played, 1):
        console.print(_panel(number, one, signs, width))
    console.print()
    console.print(_summary(played))
    console.print()
    for line in _next(place):
        console.print(line, soft_wrap=True)


def _panel(number: int, played: Played, signs: Signs, width: int) -> Panel:
    verdict = played.history.verdict
    assert verdict is not None
    rows = Table.grid(padding=(0, 2))
    rows.add_column(style="dim", min_width=8)
    rows.add_column(overflow="fold")
    rows.add_row("customer", shown(played.story.request))
    rows.add_row("calls", _calls(played, signs))
    rows.add_row("agent", _answer(played))
    rows.add_row("database", _changes(played.changes, signs))
    rows.add_row("guard", _judged(played, verdict, signs))
    title = Text.assemble((f" {number} ", "bold"), shown(f"{played.story.title} ", "bold"))
    colour = VERDICTS[verdict.kind].split()[-1]
    return Panel(rows, title=title, title_align="left", border_style=colour, box=box.ROUNDED, width=width, padding=(0, 1))


# The calls.


def _calls(played: Played, signs: Signs) -> Table:
    rows = Table.grid(padding=(0, 1), expand=True)
    rows.add_column()
    rows.add_column(overflow="fold", ratio=1)
    rows.add_column(min_width=8)
    rows.add_column(min_width=5)
    for recorded in played.history.calls:
        rows.add_row(*_call(recorded, played, signs))
    return rows


def _call(recorded: RecordedCall, played: Played, signs: Signs) -> Sequence[RenderableType]:
    call, outcome = recorded.call, recorded.outcome
    assert outcome is not None
    told = shown(call.tool, "bold").append_text(shown(f"({show_row(json.loads(call.args))})"))
    stop = played.history.stop
    if outcome.message and (stop is None or stop.call != call.number):
        told.append("\n").append_text(shown(outcome.message, "dim"))
    sign = {"ok": signs.good, "in_doubt": signs.doubt, "refused": signs.stopped}.get(outcome.outcome, signs.wrong)
    style = OUTCOMES[outcome.outcome]
    action = word(outcome.action, {**ACTIONS, "allow": "dim"})
    return shown(sign, style), told, word(outcome.outcome, OUTCOMES), action


# What is said.


def _answer(played: Played) -> Text:
    if played.answer is not None:
        return shown(f"“{played.answer}”")
    return shown("(stopped before it could say “", "dim").append_text(shown(f"{played.story.answer}”)", "dim"))


def _changes(changes: Sequence[Change], signs: Signs) -> RenderableType:
    if not changes:
        return shown("nothing has changed")
    rows = Table.grid(padding=(0, 2))
    for change in changes:
        rows.add_row(shown(f"{change.table} {change.id}"), shown(_change(change, signs)))
    return rows


def _change(change: Change, signs: Signs) -> str:
    if change.before is None or change.after is None:
        values = change.after or change.before or {}
        return f"{'new' if change.before is None else 'gone'}: {show_row(values)}"
    return ", ".join(f"{name} {old} {signs.becomes} {change.after[name]}" for name, old in change.before.items())


def _judged(played: Played, verdict: VerdictRecord, signs: Signs) -> Table:
    rows = Table.grid()
    rows.add_row(_verdict(played, verdict))
    for finding in verdict.findings:
        rows.add_row(Text.assemble((f"{signs.wrong} ", "red"), shown(finding.text)))
    return rows


def _verdict(played: Played, verdict: VerdictRecord) -> Text:
    kind = word(verdict.kind, VERDICTS)
    stop = stop_of(played.history)
    if stop is not None:
        return kind.append_text(shown(str(stop).removeprefix("stopped")))
    said = "all is as the task wants it" if verdict.kind == "verified" else "it ended cleanly, and the state is wrong"
    held = f", {counted(verdict.open_holds, 'hold')} still open" if verdict.open_holds else ""
    return kind.append_text(shown(f": {said}{held}"))


# The end.


def _summary(played: Sequence[Played]) -> Table:
    heads = ("run", "calls", "refused", "rows changed", "findings", "open holds", "verdict")
    return table(heads, map(_row, played), numbers=heads[1:-1])


def _row(played: Played) -> Sequence[Cell]:
    verdict, calls = played.history.verdict, played.history.calls
    assert verdict is not None
    refused = sum(recorded.outcome is not None and not recorded.outcome.executed for recorded in calls)
    counts = (len(calls), refused, len(played.changes), len(verdict.findings), verdict.open_holds)
    return played.history.run.id, *map(str, counts), word(verdict.kind, VERDICTS)


def _next(place: Place) -> Iterator[Text]:
    yield shown(f"Left in {place.folder}: the shop, the configuration, the ledger and the trace. Look further:")
    yield shown(f"  guardrail runs show wrong-amount --ledger {place.ledger}", "bold")
    yield shown(f"  {place.trace}")
