"""How the demo looks on the terminal: a panel a run, a table of all, and where to look next."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from rich.console import Group
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from guardrail.cli.demo.example import CODE
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
"""How wide a panel becomes; what a terminal has beyond that stays free, as long lines are hard to read."""


@dataclass(frozen=True, slots=True)
class Signs:
    """What stands before a call or a finding, around what is said, and between what was and what is."""

    good: str
    wrong: str
    doubt: str
    refused: str
    quotes: tuple[str, str]
    becomes: str


SIGNS: Final = Signs("✓", "✗", "?", "■", ("“", "”"), "→")
ASCII: Final = Signs("+", "x", "?", "#", ('"', '"'), "->")
"""For a terminal whose encoding has no others."""


def show(console: Console, place: Place, played: Sequence[Played], program: str = "guardrail") -> None:
    """Show all runs and what they left; `program` is how the command line is called."""
    signs = ASCII if console.options.ascii_only else SIGNS
    console.print(shown("A support agent in a small shop: five customers, every tool call guarded."))
    for number, one in enumerate(played, 1):
        console.print(_panel(number, one, signs, min(console.width, WIDEST)))
    console.print()
    console.print(_summary(played))
    console.print()
    for name, what in _further(place, program):
        console.print(Text.assemble(shown(f"{name:8}", "dim"), what), soft_wrap=True)


def _panel(number: int, played: Played, signs: Signs, width: int) -> Panel:
    verdict = _verdict(played)
    rows = Table.grid(padding=(0, 2, 0, 0), expand=True)
    rows.add_column(style="dim", width=8)
    rows.add_column(overflow="fold", ratio=1)
    rows.add_row("customer", shown(_quoted(played.story.request, signs)))
    rows.add_row("calls", _calls(played, signs))
    rows.add_row("agent", _answer(played, signs))
    rows.add_row("database", _changes(played.changes, verdict, signs))
    rows.add_row("guard", _judged(played, verdict, signs))
    return Panel(
        rows,
        title=shown(f"{number} {played.story.title}", "bold default"),
        title_align="left",
        subtitle=shown(f"run {played.history.run.id}", "dim default"),
        subtitle_align="right",
        border_style=VERDICTS[verdict.kind].removeprefix("bold "),
        width=width,
    )


def _quoted(said: str, signs: Signs) -> str:
    return said.join(signs.quotes)


def _verdict(played: Played) -> VerdictRecord:
    verdict = played.history.verdict
    assert verdict is not None
    return verdict


# The calls.


def _calls(played: Played, signs: Signs) -> Table:
    rows = Table.grid(padding=(0, 1, 0, 0), expand=True)
    rows.add_column()
    rows.add_column(overflow="fold", ratio=1)
    rows.add_column(min_width=9)
    rows.add_column(min_width=6)
    for recorded in played.history.calls:
        rows.add_row(*_call(recorded, played, signs))
    return rows


def _call(recorded: RecordedCall, played: Played, signs: Signs) -> Sequence[RenderableType]:
    call, outcome, stop = recorded.call, recorded.outcome, played.history.stop
    assert outcome is not None
    told = Text.assemble(shown(call.tool, "bold"), shown(f"({show_row(json.loads(call.args))})"))
    if outcome.message and (stop is None or stop.call != call.number):
        told = Text.assemble(told, "\n", shown(outcome.message, "dim"))
    sign = {"ok": signs.good, "in_doubt": signs.doubt, "refused": signs.refused}.get(outcome.outcome, signs.wrong)
    action = word(outcome.action, {**ACTIONS, "allow": "dim"})
    return shown(sign, OUTCOMES[outcome.outcome]), told, word(outcome.outcome, OUTCOMES), action


# What is said of it.


def _answer(played: Played, signs: Signs) -> Text:
    if played.answer is not None:
        return shown(_quoted(played.answer, signs))
    return shown(f"was stopped before it could say {_quoted(played.story.answer, signs)}", "dim")


def _changes(changes: Sequence[Change], verdict: VerdictRecord, signs: Signs) -> RenderableType:
    if not changes:
        return shown("nothing has changed")
    found = {(finding.place, json.loads(finding.key).get("id")) for finding in verdict.findings}
    rows = Table.grid(padding=(0, 2, 0, 0))
    for change in changes:
        style = "red" if (f"shop.{change.table}", change.id) in found else ""
        rows.add_row(shown(f"{change.table} {change.id}", style), shown(_change(change, signs), style))
    return rows


def _change(change: Change, signs: Signs) -> str:
    if change.before is None:
        return f"new: {show_row(change.after or {})}"
    if change.after is None:
        return "gone"
    return ", ".join(f"{name} {old} {signs.becomes} {change.after[name]}" for name, old in change.before.items())


def _judged(played: Played, verdict: VerdictRecord, signs: Signs) -> RenderableType:
    said = Text.assemble(word(verdict.kind, VERDICTS), shown(_because(played, verdict)))
    if not verdict.findings:
        return said
    rows = Table.grid(padding=(0, 1, 0, 0))
    for finding in verdict.findings:
        rows.add_row(shown(signs.wrong, "red"), shown(finding.text, "red"))
    return Group(said, rows)


def _because(played: Played, verdict: VerdictRecord) -> str:
    stop = stop_of(played.history)
    if stop is not None:
        return str(stop).removeprefix("stopped")
    if verdict.findings:
        return f": it ended cleanly, with {counted(len(verdict.findings), 'finding')}"
    made = ", so the write in doubt was made, once" if played.history.in_doubt else ""
    return f": the state is as the task wants it{made}"


# The end.


def _summary(played: Sequence[Played]) -> Table:
    heads = ("run", "calls", "refused", "ended", "changes", "findings", "holds", "verdict")
    return table(heads, map(_row, played), numbers=("calls", "refused", "changes", "findings", "holds"))


def _row(played: Played) -> Sequence[Cell]:
    verdict, calls = _verdict(played), played.history.calls
    refused = sum(recorded.outcome is not None and not recorded.outcome.executed for recorded in calls)
    return (
        played.history.run.id,
        str(len(calls)),
        str(refused),
        "stopped" if played.answer is None else "cleanly",
        str(len(played.changes)),
        str(len(verdict.findings)),
        str(verdict.open_holds),
        word(verdict.kind, VERDICTS),
    )


def _further(place: Place, program: str) -> Iterator[tuple[str, Text]]:
    yield "ledger", shown(f"{program} runs show wrong-amount --ledger {shlex.quote(str(place.ledger))}", "bold")
    yield "trace", shown(f"{place.trace}, one OpenTelemetry span a line")
    yield "shop", shown(f"{place.shop}, as the five runs left it")
    yield "code", shown(f"{CODE} of the source: the same story, to copy")
