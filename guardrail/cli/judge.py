"""`guardrail judge`: what would the guard make of this result?"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from enum import StrEnum
from errno import ENAMETOOLONG, ENOENT
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from guardrail.cli.exits import Exit, Misuse
from guardrail.cli.judging import Judged, cut_off, judged, undeclared
from guardrail.cli.labelled import OUTCOMES, Labelled, Measured, is_labelled, measure
from guardrail.cli.options import Config, Json
from guardrail.cli.places import chosen_file, live
from guardrail.cli.screen import Screen, counted, joined, percent, print_json, shown
from guardrail.cli.tables import ACTIONS, Cell, grid, table, word
from guardrail.cli.tables import OUTCOMES as STYLES
from guardrail.telemetry.redaction import redact_text

if TYPE_CHECKING:
    from guardrail.calls import Effect
    from guardrail.declare.policies import Policy


class EffectName(StrEnum):
    """The effects that a call can have."""

    read = "read"
    write = "write"
    unknown = "unknown"


def judge(
    file: Annotated[str, typer.Argument(metavar="FILE|-", help="A file, or - for standard input.")] = "-",
    tool: Annotated[
        str | None, typer.Option("--tool", metavar="NAME", help="The tool whose declaration counts.")
    ] = None,
    effect: Annotated[
        EffectName | None, typer.Option("--effect", help="The call's effect; else what is declared, else unknown.")
    ] = None,
    config: Config = None,
    wrong: Annotated[
        bool, typer.Option("--wrong", help="List the labelled results that are judged otherwise than labelled.")
    ] = False,
    json: Json = False,
) -> None:
    """Judge a tool's result: its outcome, the sign that it is told by, and what the policy does.

    A file of labelled results (JSON lines with tool, writes, result
    and label) gives a table of what each label is judged as.
    Exit codes: 0 the policy lets it pass, 1 it holds or stops the run;
    of labelled results always 0.
    """
    text = _text(file)
    known: Effect | None = None if effect is None else effect.value
    with live(chosen_file(config)) as made:
        if is_labelled(text):
            _report_all(file, measure(file, text, made, known), made.policy, wrong=wrong, json=json)
        else:
            it = judged(made, tool or "", text.strip(), effect=known)
            notes = (undeclared(made, it.tool) if it.tool else "", cut_off(text.strip()))
            _report_one(it, made.policy, "; ".join(filter(None, notes)), json=json)
            raise typer.Exit(Exit.GOOD if it.action == "allow" else Exit.WRONG)


def _text(file: str) -> str:
    """What a file, or standard input, holds; what is no UTF-8 in it is replaced."""
    try:
        content = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
    except OSError as error:
        if error.errno not in (ENOENT, ENAMETOOLONG):
            raise
        raise Misuse(f"{file}: there is no such file: name one, or pipe the result to `guardrail judge -`") from error
    return content.decode("utf-8-sig", "replace")


def _report_one(it: Judged, policy: Policy, note: str, *, json: bool) -> None:
    judgement = it.judgement
    if json:
        print_json({**judged_json(it), "policy": policy.name, "mode": policy.mode, "note": note})
        return
    rows: list[tuple[str, Cell]] = [("outcome", word(judgement.outcome, STYLES))]
    rows += [("told by", judgement.sign)] if judgement.sign else []
    rows += [("message", redact_text(judgement.message))] if judgement.message else []
    rows += [("not done", ", ".join(judgement.failed_items))] if judgement.failed_items else []
    rows += [("policy", joined(word(it.action, ACTIONS), f", by {policy.name} ({policy.mode})"))]
    rows += [("judged as", f"a call of {it.tool or 'an unnamed tool'}, {it.effect}")]
    rows += [("note", shown(note, "yellow"))] if note else []
    Screen().print(grid(rows))


def judged_json(it: Judged) -> dict[str, Any]:
    """A judged result as plain data."""
    judgement = it.judgement
    return {
        "tool": it.tool or None,
        "effect": it.effect,
        "outcome": judgement.outcome,
        "sign": judgement.sign,
        "message": redact_text(judgement.message),
        "listed": judgement.listed,
        "failed_items": list(judgement.failed_items),
        "action": it.action,
    }


def _report_all(name: str, measured: Measured, policy: Policy, *, wrong: bool, json: bool) -> None:
    if json:
        _print_measured(name, measured, policy, wrong=wrong)
        return
    screen = Screen()
    screen.say(shown(f"{counted(len(measured.results), 'labelled result')} judged under {policy.name}", "bold"))
    screen.print()
    screen.print(_confusion(measured))
    screen.print()
    screen.say(shown(_words(measured.not_ok)))
    if wrong and measured.wrong:
        screen.print()
        screen.print(table(("line", "tool", "label", "judged", "told by", "message"), _wrong_rows(measured)))


def _print_measured(name: str, measured: Measured, policy: Policy, *, wrong: bool) -> None:
    data: dict[str, Any] = {
        "file": name,
        "policy": policy.name,
        "results": len(measured.results),
        "not_ok": measured.not_ok,
        "by_label": measured.by_label,
    }
    if wrong:
        data["wrong"] = [_wrong_json(result, it) for result, it in measured.wrong]
    print_json(data)


def _wrong_json(result: Labelled, it: Judged) -> dict[str, Any]:
    return {"line": result.line, "label": result.label, **judged_json(it)}


def _confusion(measured: Measured) -> Any:
    """Labels down, outcomes across."""
    by_label = measured.by_label
    outcomes = [outcome for outcome in OUTCOMES if any(outcome in counts for counts in by_label.values())]
    heads = [outcome.replace("_", " ") for outcome in outcomes]
    rows: list[Sequence[Cell]] = [
        (label.replace("_", " "), *(f"{counts[o]:,}" if o in counts else "·" for o in outcomes))
        for label, counts in by_label.items()
    ]
    return table(("label", *heads), rows, numbers=heads)


def _words(not_ok: dict[str, Any]) -> str:
    return (
        f"not ok: precision {percent(not_ok['precision'])}, recall {percent(not_ok['recall'])} "
        f"({not_ok['true_positive']:,} found, {not_ok['false_negative']:,} missed, "
        f"{not_ok['false_positive']:,} false alarms)"
    )


def _wrong_rows(measured: Measured) -> Iterator[Sequence[Cell]]:
    for result, it in measured.wrong:
        judgement = it.judgement
        message = redact_text(judgement.message or result.result)[:80]
        yield result.line, result.tool, result.label, judgement.outcome, judgement.sign, message
