"""The format of recorded runs: a folder of tasks, runs and the tables they began with.

tasks.jsonl                  one task a line: task_id, instruction, expected_changes, tables?, free_text_columns?
runs.jsonl or runs.jsonl.gz  one run a line: run_id, task_id, passed, state_ok?, calls, ...
database.json                the initial tables of all tasks; or each task has its own `tables`
tools.json                   the effect of each tool; or each call says whether it `writes`
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from guardrail.calls import Effect
from guardrail.declare.faults import dotted
from guardrail.errors import GuardrailError

M = TypeVar("M", bound=BaseModel)


class RecordedRunsError(GuardrailError):
    """A folder of recorded runs cannot be read; says which file, which line and what is wrong."""


class Recorded(BaseModel):
    """A recorded thing; fields that the format does not name are left alone."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class RowChange(Recorded):
    """A change of one row; an update lists changed columns only, nested JSON whole."""

    table: str
    kind: Literal["insert", "update", "delete"]
    key: tuple[Any, ...]
    before: Mapping[str, Any] = {}
    after: Mapping[str, Any] = {}


class RecordedTable(Recorded):
    """A table as it was at the beginning: its key columns and its rows."""

    key: tuple[str, ...]
    rows: tuple[Mapping[str, Any], ...]


Tables = Mapping[str, RecordedTable]


class RecordedTask(Recorded):
    """A task: `expected_changes` is the complete right outcome, nothing else may change.

    `free_text_columns` names, by table, the columns whose wording is left open.
    """

    task_id: str
    instruction: str = ""
    expected_changes: tuple[RowChange, ...]
    tables: Tables | None = None
    free_text_columns: Mapping[str, tuple[str, ...]] = {}


class RecordedCall(Recorded):
    """A call: what the model was given, how many user messages came before it, and what it changed."""

    tool: str
    args: Mapping[str, Any]
    result: Any
    writes: bool = False
    turn: int | None = None
    changes: tuple[RowChange, ...] = ()


class RecordedRun(Recorded):
    """A run and its label: `passed`, and `state_ok` where the state alone is labelled."""

    run_id: str
    task_id: str
    passed: bool
    state_ok: bool | None = None
    ended: str = ""
    fault: str | None = None
    label_uncertain: bool = False
    calls: tuple[RecordedCall, ...]

    @property
    def state_is_right(self) -> bool:
        """The label of the final state."""
        return self.passed if self.state_ok is None else self.state_ok


class _Database(Recorded):
    tables: Tables


class _ToolEffect(Recorded):
    effect: Effect


class _Tools(Recorded):
    tools: Mapping[str, _ToolEffect]


class Recording(Recorded):
    """A folder of recorded runs, read whole; runs of uncertain label are left out."""

    name: str
    tasks: Mapping[str, RecordedTask]
    runs: tuple[RecordedRun, ...]
    effects: Mapping[str, Effect]
    tables: Tables | None
    keys: Mapping[str, tuple[str, ...]]

    def tables_of(self, task: RecordedTask) -> Tables:
        """The tables that a run of this task begins with; one that is only known from elsewhere is empty."""
        tables = self.tables if task.tables is None else task.tables
        if tables is None:
            raise RecordedRunsError(
                f"{self.name}: task {task.task_id} has no tables: give it its own, or the folder a database.json"
            )
        return {**{name: RecordedTable(key=key, rows=()) for name, key in self.keys.items()}, **tables}


def read(folder: Path) -> Recording:
    """Read a folder of recorded runs; raises `RecordedRunsError`."""
    if not folder.is_dir():
        raise RecordedRunsError(f"{folder} is no folder: give the folder that holds tasks.jsonl and runs.jsonl")
    tasks = {task.task_id: task for task in _lines(_first(folder, "tasks.jsonl", "tasks.jsonl.gz"), RecordedTask)}
    path = _first(folder, "runs.jsonl", "runs.jsonl.gz")
    runs = tuple(run for run in _lines(path, RecordedRun) if not run.label_uncertain)
    for run in runs:
        if run.task_id not in tasks:
            raise RecordedRunsError(
                f"{path}: run {run.run_id} is of task {run.task_id}, which tasks.jsonl does not have"
            )
    database = folder / "database.json"
    tables = _whole(database, _Database).tables if database.exists() else None
    return Recording(
        name=folder.name,
        tasks=tasks,
        runs=runs,
        effects=_effects(folder / "tools.json", runs),
        tables=tables,
        keys=_keys(
            path, [tables or {}, *(task.tables or {} for task in tasks.values())], _changes(tasks.values(), runs)
        ),
    )


def _changes(tasks: Iterable[RecordedTask], runs: Iterable[RecordedRun]) -> Iterator[RowChange]:
    for task in tasks:
        yield from task.expected_changes
    for run in runs:
        for call in run.calls:
            yield from call.changes


def _keys(path: Path, tables: Iterable[Tables], changes: Iterable[RowChange]) -> dict[str, tuple[str, ...]]:
    """The key of every table of the recording; of one that is nowhere declared, by an insert that shows it."""
    keys = {name: table.key for known in tables for name, table in known.items()}
    unknown: dict[str, RowChange] = {}
    for change in changes:
        if change.table not in keys:
            key = _shown_key(change)
            if key is None:
                unknown[change.table] = change
            else:
                keys[change.table] = key
    for name in unknown.keys() - keys.keys():
        raise RecordedRunsError(
            f"{path}: the table {name} is changed, but nothing says what its key is: give the table in {_declaring(path)}"
        )
    return keys


def _declaring(path: Path) -> str:
    """The file that tells the keys of tables, and whether it is missing."""
    return "database.json" if path.with_name("database.json").exists() else "database.json, which is missing"


def _shown_key(change: RowChange) -> tuple[str, ...] | None:
    columns = tuple(next((c for c, v in change.after.items() if v == value), "") for value in change.key)
    return columns if change.kind == "insert" and all(columns) else None


def _effects(path: Path, runs: tuple[RecordedRun, ...]) -> dict[str, Effect]:
    """The effect of each tool: as declared beside the runs, else a write if any call of it wrote."""
    if path.exists():
        return {name: tool.effect for name, tool in _whole(path, _Tools).tools.items()}
    effects: dict[str, Effect] = {}
    for run in runs:
        for call in run.calls:
            if call.writes or call.tool not in effects:
                effects[call.tool] = "write" if call.writes else "read"
    return effects


def _first(folder: Path, *names: str) -> Path:
    for name in names:
        if (folder / name).exists():
            return folder / name
    raise RecordedRunsError(f"{folder} has no {names[0]}: see the format in docs/recorded-runs.md")


def _lines(path: Path, model: type[M]) -> Iterator[M]:
    number = 1
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            for line in file:
                if line.strip():
                    yield model.model_validate(json.loads(line))
                number += 1
    except (ValidationError, ValueError, OSError, EOFError, RecursionError) as error:
        raise RecordedRunsError(f"{path}:{number}: {_short(error)}") from error


def _whole(path: Path, model: type[M]) -> M:
    try:
        return model.model_validate(json.loads(path.read_bytes()))
    except (ValidationError, ValueError, OSError, RecursionError) as error:
        raise RecordedRunsError(f"{path}: {_short(error)}") from error


_SAID: Final = {
    "missing": "is missing",
    "model_type": "must be an object",
    "mapping_type": "must be an object",
    "tuple_type": "must be a list",
    "string_type": "must be a text",
    "bool_type": "must be true or false",
    "bool_parsing": "must be true or false",
}
"""What is said of a value instead of the validator's own words, which are those of Python."""


def _short(error: Exception) -> str:
    if isinstance(error, ValidationError):
        first = error.errors()[0]
        said = _SAID.get(first["type"]) or first["msg"].replace("Input should be", "must be")
        place = dotted(first["loc"])
        return f"{place}: {said}" if place else f"it {said}"
    if isinstance(error, json.JSONDecodeError):
        return f"it is no JSON: {error}"
    return "it is nested too deeply to be read" if isinstance(error, RecursionError) else str(error)
