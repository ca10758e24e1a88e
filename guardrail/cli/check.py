"""`guardrail check`: is the configuration right, and what does it declare?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from guardrail.cli.exits import Exit, Misuse
from guardrail.cli.options import Config, Json
from guardrail.cli.places import configuration_file, live
from guardrail.cli.screen import Screen, counted, print_json, shown
from guardrail.cli.tables import Cell, table
from guardrail.errors import ConfigurationError, Mistake, StoreError

if TYPE_CHECKING:
    from guardrail.declare.contracts import Task
    from guardrail.declare.tools import Tool
    from guardrail.run.live import Live


def check(
    named: Annotated[
        Path | None, typer.Argument(metavar="FILE", help="The configuration; else guardrail.yaml.", show_default=False)
    ] = None,
    config: Config = None,
    json: Json = False,
) -> None:
    """Check a configuration: every mistake with its file, line and field, all at once."""
    if named is not None and config is not None:
        raise Misuse("give the configuration as FILE or by --config FILE, one of them")
    file = configuration_file(named or config, "`guardrail check FILE`")
    declared, mistakes = examined(file)
    if json:
        print_json({"file": str(file), "ok": not mistakes, "mistakes": mistakes_json(mistakes), **declared})
    else:
        _show(file, declared, mistakes)
    raise typer.Exit(Exit.WRONG if mistakes else Exit.GOOD)


def examined(file: Path) -> tuple[dict[str, Any], tuple[Mistake, ...]]:
    """What a configuration file declares; or, with nothing of that, its mistakes."""
    try:
        with live(file) as made:
            return _declared(made), ()
    except ConfigurationError as error:
        return {}, error.mistakes
    except StoreError as error:
        return {}, (Mistake(str(file), None, "stores", str(error)),)


def mistakes_json(mistakes: Sequence[Mistake]) -> list[dict[str, object]]:
    """Mistakes as plain data."""
    return [{"file": m.file, "line": m.line, "field": m.field, "what": m.what, "advice": m.advice} for m in mistakes]


def _declared(made: Live) -> dict[str, Any]:
    """What is declared, without URLs: they may hold passwords."""
    return {
        "policy": {"name": made.policy.name, "mode": made.policy.mode},
        "stores": {name: dialect or "http" for name, dialect in made.dialects.items()},
        "tools": {name: _effect(tool) for name, tool in made.configuration.tools.items()},
        "tasks": {name: _task(task) for name, task in made.configuration.tasks.items()},
    }


def _effect(tool: Tool) -> str:
    """A tool's effect in a word, or how an argument decides it."""
    if tool.effect is None and tool.sql is not None:
        return f"by the statements in {tool.sql}"
    if tool.effect is None or isinstance(tool.effect, str):
        return tool.effect or "unknown"
    return f"by {tool.effect.by}"


def _task(task: Task) -> dict[str, object]:
    return {
        "inputs": list(task.inputs),
        "watch": None if task.watch is None else list(task.watch),
        "expect": task.expect if task.expect in (None, "nothing") else len(task.expect),
        "any_of": list(task.any_of or {}),
        "checks": len(task.checks),
    }


def _show(file: Path, declared: dict[str, Any], mistakes: Sequence[Mistake]) -> None:
    screen = Screen()
    for mistake in mistakes:
        screen.say(shown(mistake))
    if mistakes:
        screen.say(shown(f"{file} has {counted(len(mistakes), 'mistake')}", "bold red"))
        return
    screen.print(table(("what", "name", "declared as"), _rows(declared)))
    screen.say()
    screen.say(shown(f"{file} is right", "bold green"))


def _rows(declared: dict[str, Any]) -> Iterator[Sequence[Cell]]:
    yield "policy", declared["policy"]["name"], declared["policy"]["mode"]
    for name, dialect in declared["stores"].items():
        yield "store", name, dialect
    for name, effect in declared["tools"].items():
        yield "tool", name, effect
    for name, task in declared["tasks"].items():
        yield "task", name, "; ".join(_words(task))


def _words(task: dict[str, Any]) -> Iterator[str]:
    """A task in a few words."""
    yield counted(len(task["inputs"]), "input")
    if task["watch"] is not None:
        yield f"watches {counted(len(task['watch']), 'table')}"
    elif task["expect"] or task["any_of"]:
        yield "watches every table"
    if isinstance(task["expect"], int):
        yield f"expects {counted(task['expect'], 'change')}"
    elif task["expect"]:
        yield "expects nothing to change"
    if task["any_of"]:
        yield f"one of {', '.join(task['any_of'])}"
    if task["checks"]:
        yield counted(task["checks"], "check")
