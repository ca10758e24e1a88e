"""Recorded runs: contracts made of what should have changed give every run's label."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from guardrail.declare.contracts import Deleted, Expectation, Inserted, Task, Updated, Watch
from guardrail.pictures import ColumnKind, Key, Picture
from guardrail.state import Contract, Evidence, Verified, verify

Tables = Mapping[str, Mapping[str, Any]]
Changes = Sequence[Mapping[str, Any]]

FIGURES = {
    "airline": (32, 68),
    "workbench": (334, 818),
    "thinkingbox_retail": (615, 484),
    "thinkingbox_booking": (796, 607),
}
"""How many runs of each folder ended in the right state and in a wrong one; uncertain labels are left out."""


def lines(path: Path) -> Iterator[Any]:
    packed = path.with_name(f"{path.name}.gz")
    with gzip.open(packed, "rt", encoding="utf-8") if packed.exists() else path.open(encoding="utf-8") as file:
        yield from map(json.loads, file)


def initial_tables(folder: Path) -> Tables | None:
    shared = folder / "database.json"
    return json.loads(shared.read_text(encoding="utf-8"))["tables"] if shared.exists() else None


def key_columns(tables: Tables, changes: Changes) -> dict[str, tuple[str, ...]]:
    """The key of every table; one that only changes name has its first column for a key."""
    keys = {name: tuple(table["key"]) for name, table in tables.items()}
    for change in changes:
        keys.setdefault(change["table"], ("id",))
    return keys


def rows_of(tables: Tables, table: str, key: tuple[str, ...], changes: Changes) -> dict[Key, dict[str, Any]]:
    """The rows of a table after changes."""
    rows: dict[Key, dict[str, Any]] = {
        tuple(row[column] for column in key): row for row in tables.get(table, {"rows": ()})["rows"]
    }
    for change in changes:
        named = tuple(change["key"])
        if change["table"] == table and change["kind"] == "delete":
            rows.pop(named, None)
        elif change["table"] == table:
            rows[named] = {**dict(zip(key, named, strict=True)), **rows.get(named, {}), **change.get("after", {})}
    return rows


def kind_of(values: Sequence[Any]) -> ColumnKind:
    types: set[type] = {type(value) for value in values if value is not None}
    if types & {dict, list}:
        return "json"
    if types == {bool}:
        return "boolean"
    return "text" if str in types else "float" if float in types else "integer"


def pictures(keys: Mapping[str, tuple[str, ...]], tables: Tables, *states: Changes) -> list[dict[str, Picture]]:
    """Pictures of all tables after each series of changes, with the same columns."""
    found: list[dict[str, Picture]] = [{} for _ in states]
    for table, key in keys.items():
        all_rows = [rows_of(tables, table, key, changes) for changes in states]
        every = [row for rows in all_rows for row in rows.values()]
        columns = tuple(dict.fromkeys([*key, *(column for row in every for column in row)]))
        kinds: dict[str, ColumnKind] = {column: kind_of([row.get(column) for row in every]) for column in columns}
        for pictured, rows in zip(found, all_rows, strict=True):
            whole = {named: tuple(row.get(column) for column in columns) for named, row in rows.items()}
            pictured[f"s.{table}"] = Picture(f"s.{table}", key, columns, kinds, whole)
    return found


def contract(task: Mapping[str, Any], keys: Mapping[str, tuple[str, ...]]) -> Contract:
    """The contract of a recorded task: its expected changes and nothing else, but for free texts."""
    free: Mapping[str, Sequence[str]] = task.get("free_text_columns") or {}
    expect = [each for change in task["expected_changes"] for each in expectations(change, keys, free)]
    watch = {f"s.{table}": Watch(key=key, ignore=tuple(free.get(table, ()))) for table, key in keys.items()}
    return Contract.of(Task(watch=watch, expect=tuple(expect) or "nothing"), task["task_id"])


def expectations(
    change: Mapping[str, Any], keys: Mapping[str, tuple[str, ...]], free: Mapping[str, Sequence[str]]
) -> Iterator[Expectation]:
    table = change["table"]
    key = literally(dict(zip(keys[table], change["key"], strict=True)))
    values = literally({c: value for c, value in change.get("after", {}).items() if c not in free.get(table, ())})
    if change["kind"] == "delete":
        yield Deleted(deleted=f"s.{table}", key=key)
    elif change["kind"] == "insert":
        yield Inserted(inserted=f"s.{table}", values={**key, **values})
    elif values:
        yield Updated(updated=f"s.{table}", key=key, values=values)


def literally(values: Mapping[str, Any]) -> dict[str, Any]:
    return {column: {"equals": value} for column, value in values.items()}


def judged(task: Mapping[str, Any], run: Mapping[str, Any], shared: Tables | None) -> Verified:
    tables: Tables = shared if shared is not None else task["tables"]
    changes = [change for call in run["calls"] for change in call.get("changes", ())]
    keys = key_columns(tables, [*changes, *task["expected_changes"]])
    # The expected state is pictured too: it may have columns that no other row has.
    before, after, _ = pictures(keys, tables, [], changes, task["expected_changes"])
    return verify(contract(task, keys), Evidence(before=before, after=after))


@pytest.mark.parametrize("folder", FIGURES)
def test_the_state_alone_tells_which_recorded_runs_went_wrong(folder: str, corpus: Path) -> None:
    tasks = {task["task_id"]: task for task in lines(corpus / folder / "tasks.jsonl")}
    shared = initial_tables(corpus / folder)
    count: Counter[bool] = Counter()
    for run in lines(corpus / folder / "runs.jsonl"):
        if run.get("label_uncertain"):
            continue
        found = judged(tasks[run["task_id"]], run, shared).findings
        label = run["state_ok"] if run.get("state_ok") is not None else run["passed"]
        assert (found == ()) is label, (run["run_id"], [str(finding) for finding in found])
        assert not [finding for finding in found if finding.kind == "check_error"], run["run_id"]
        count[label] += 1
    assert (count[True], count[False]) == FIGURES[folder]
