"""The contract of a recorded task: its expected changes, every table watched, nothing else allowed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from guardrail.declare.contracts import Deleted, Expectation, Inserted, Task, Updated, Watch
from guardrail.recorded.format import RecordedTask, RowChange, Tables

STORE = "recorded"

RowKey = tuple[str, tuple[Any, ...]]


def contract(task: RecordedTask, tables: Tables) -> Task:
    """The task's contract over the store `recorded`."""
    free = task.free_text_columns
    expectations = tuple(_expectations(net(task.expected_changes, tables), tables, free))
    return Task(
        watch={
            f"{STORE}.{name}": Watch(key=table.key, ignore=tuple(free.get(name, ())), whole_rows=1_000_000)
            for name, table in tables.items()
        },
        expect=expectations or "nothing",
    )


def net(changes: Iterable[RowChange], tables: Tables) -> dict[RowKey, tuple[Mapping[str, Any] | None, Any]]:
    """What a series of changes comes to: the row before and after, for each row that differs in the end."""
    initial: dict[RowKey, Mapping[str, Any]] = {
        (name, tuple(row.get(column) for column in table.key)): row
        for name, table in tables.items()
        for row in table.rows
    }
    now: dict[RowKey, Mapping[str, Any] | None] = {}
    for change in changes:
        key = change.table, change.key
        old = now.get(key, initial.get(key))
        now[key] = None if change.kind == "delete" else {**(old or {}), **change.after}
    return {key: (initial.get(key), after) for key, after in now.items() if after != initial.get(key)}


def _expectations(
    changes: Mapping[RowKey, tuple[Mapping[str, Any] | None, Any]], tables: Tables, free: Mapping[str, Iterable[str]]
) -> Iterable[Expectation]:
    for (table, values), (before, after) in changes.items():
        place = f"{STORE}.{table}"
        hidden = set(free.get(table, ()))
        key = {name: _literal(value) for name, value in zip(tables[table].key, values, strict=True)}
        if after is None:
            yield Deleted(deleted=place, key=key)
        elif before is None:
            shown = {column: _literal(value) for column, value in after.items() if column not in hidden}
            yield Inserted(inserted=place, values=shown | key)
        else:
            changed = {c: _literal(v) for c, v in after.items() if c not in hidden and v != before.get(c)}
            if changed:
                yield Updated(updated=place, key=key, values=changed)


def _literal(value: Any) -> Any:
    """A value that stands for itself, even where it looks like one of a contract's forms."""
    return {"equals": value}
