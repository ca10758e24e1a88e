"""Whatever is in a table and whatever becomes of it, a contract judges alike on every database."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any, TypeAlias, cast

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from guardrail import Configuration, Guard
from support.contracts import line_of
from support.databases import KINDS, Database, opened

TABLE = """
create table things (id {integer} primary key, name {text}, n {integer}, amount {decimal}, share {float}, active {boolean},
    at {instant}, day {date}, meta {json}, kept {document}, raw {bytes})
"""
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)

documents = st.recursive(
    st.none() | st.booleans() | st.sampled_from([0, 1, 1.0, 2.5, "", "a", "1", "é\n\\"]),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["a", "b", "é", "any"]), inner, max_size=2)
    ),
    max_leaves=4,
)
COLUMNS: dict[str, st.SearchStrategy[Any]] = {
    "name": st.sampled_from(["", "a", "A", "a ", "b", "é", "e\u0301", "1", "NULL", "$a"]),
    "n": st.sampled_from([0, 1, -1, 2**63 - 1, -(2**63), 2**53 + 1]),
    "amount": st.sampled_from(["0", "1", "1.5", "-1", "19.90", "0.0000000001", "123456.789"]).map(Decimal),
    "share": st.sampled_from([0.0, -0.0, 0.3, 0.1 + 0.2, 2.5, -2.5, 1e300, 1 / 3]),
    "active": st.booleans(),
    "at": st.sampled_from(
        [NOON, NOON + timedelta(microseconds=1), NOON - timedelta(days=40), NOON + timedelta(days=1)]
    ),
    "day": st.sampled_from([date(2026, 3, 1), date(2026, 3, 2), date(1999, 12, 31)]),
    "meta": documents.filter(lambda document: document is not None),
    "kept": documents.filter(lambda document: document is not None),
    "raw": st.sampled_from([b"", b"\0", b"a", b"A", b"\xff"]),
}
rows = st.fixed_dictionaries({name: st.none() | values for name, values in COLUMNS.items()})
tables = st.dictionaries(st.integers(0, 5), rows, max_size=4)

Row: TypeAlias = Mapping[str, Any]
Table: TypeAlias = Mapping[int, Row]


@st.composite
def altered(draw: st.DrawFn, table: Table) -> Table:
    """A table that differs from another one in few places."""
    found = {key: dict(row) for key, row in table.items()}
    for _ in range(draw(st.integers(0, 3))):
        key = draw(st.integers(0, 5))
        match draw(st.sampled_from(["row", "gone", "value", "value", "value"])):
            case "row":
                found[key] = draw(rows)
            case "gone":
                found.pop(key, None)
            case _ if key in found:
                name = draw(st.sampled_from(list(COLUMNS)))
                found[key][name] = draw(st.none() | COLUMNS[name])
            case _:
                pass
    return found


Writing: TypeAlias = Callable[[Any], str]


def anew(document: object) -> str:
    """A document's text with other blanks, escapes and digits, and with names in another order."""
    match document:
        case dict():
            members = reversed(cast("dict[str, object]", document).items())
            return "{ " + ",".join(f"{anew(name)}:{anew(member)}" for name, member in members) + "}"
        case list():
            return "[" + " , ".join(map(anew, cast("list[object]", document))) + "\n]"
        case float():
            return f"{document}0"
        case _:
            return json.dumps(document, ensure_ascii=False)


def stored(values: Row, writing: Writing) -> tuple[object, ...]:
    """A row's values as statements take them, in the order of the table's columns."""
    documents = {name: None if values[name] is None else writing(values[name]) for name in ("meta", "kept")}
    return tuple({**values, **documents}[name] for name in COLUMNS)


Form: TypeAlias = Callable[[Any], object]

FORMS: dict[str, Form] = {
    "equals": lambda value: {"equals": value},
    "any": lambda value: {"any": True},
    "generated": lambda value: {"generated": True},
    "in": lambda value: {"in": [{"equals": value}, {"equals": "b"}, 1, None]},
    "not": lambda value: {"not": {"equals": value}},
    "at_least": lambda value: {"at_least": value} if is_ordered(value) else {"equals": value},
    "at_most": lambda value: {"at_most": value} if is_ordered(value) else {"equals": value},
    "unordered": lambda value: {"unordered" if is_list(value) else "equals": value},
    "json": lambda value: {"json": {"/a": {"any": True}}} if isinstance(value, dict) else {"equals": value},
    "text": lambda value: {"equals": str(value)} if is_ordered(value) else {"equals": value},
}
"""The forms in which a contract may say a value, or something of it."""


def is_ordered(value: object) -> bool:
    return isinstance(value, int | float | Decimal | datetime) and not isinstance(value, bool)


def is_list(value: object) -> bool:
    return isinstance(value, list)


@dataclass(frozen=True)
class Story:
    """A table before a run, as it is planned to be, and as it is after it, with its documents in some writing."""

    before: Table
    planned: Table
    after: Table
    writing: Writing


@st.composite
def stories(draw: st.DrawFn) -> Story:
    before = draw(tables)
    planned = draw(altered(before))
    after = draw(altered(draw(st.sampled_from([before, planned, planned]))))
    return Story(before, planned, after, anew if draw(st.booleans()) else json.dumps)


watches: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {},
    optional={
        "whole_rows": st.sampled_from([0, 1]),
        "ignore": st.sampled_from([["share"], ["meta", "kept", "raw"]]),
        "shared": st.just(True),
        "compare": st.fixed_dictionaries(
            {},
            optional={
                "name": st.sampled_from([{"case": "ignore"}, {"blanks": "ignore"}]),
                "amount": st.just({"tolerance": "0.5"}),
                "at": st.sampled_from([{"zone": "UTC"}, {"zone": "Europe/Paris"}]),
                "n": st.just({"tolerance": 1}),
            },
        ),
    },
)
forms = st.dictionaries(st.sampled_from(list(COLUMNS)), st.sampled_from(list(FORMS)), max_size=3)


def contract(story: Story, watch: Mapping[str, Any], forms: Mapping[str, str]) -> dict[str, object]:
    """What is expected where one table is to become another."""
    place = "shop.things"
    before, planned = (_without(table, watch.get("ignore", ())) for table in (story.before, story.planned))

    def written(values: Row) -> dict[str, object]:
        return {name: FORMS[forms.get(name, "equals")](value) for name, value in values.items()}

    expect: list[dict[str, object]] = []
    for key in {**before, **planned}:
        old, new = before.get(key), planned.get(key)
        if old is None and new is not None:
            expect.append({"inserted": place, "values": written({"id": key, **new})})
        elif old is not None and new is None:
            expect.append({"deleted": place, "key": {"id": key}})
        elif old is not None and new is not None and (changed := _changed(old, new)):
            expect.append({"updated": place, "key": {"id": key}, "values": written(changed)})
    return {"watch": {place: {"key": "id", **watch}}, "expect": expect or "nothing"}


def _changed(old: Row, new: Row) -> Row:
    return {name: value for name, value in new.items() if repr(value) != repr(old[name])}


def _without(table: Table, columns: Collection[str]) -> Table:
    return {key: {name: row[name] for name in row if name not in columns} for key, row in table.items()}


def fill(database: Database, table: Table, writing: Writing) -> None:
    """Let the table of a database be this one."""
    marks = ", ".join("?" * (len(COLUMNS) + 1))
    inserts = [(f"insert into things values ({marks})", key, *stored(row, writing)) for key, row in table.items()]
    database.transact(("delete from things",), *inserts)


def found(database: Database, story: Story, task: dict[str, object]) -> tuple[str, list[str]]:
    """What a run comes to."""
    fill(database, story.before, json.dumps)
    declared = {"ledger": "memory", "stores": {"shop": {"url": database.url}}, "tasks": {"task": task}}
    tools = {"write": {"effect": "write"}}
    with Guard(Configuration.model_validate({**declared, "tools": tools})) as guard, guard.run("task") as run:
        run.call("write", {}, lambda: fill(database, story.after, story.writing))
    assert run.verdict is not None
    return run.verdict.kind, list(map(line_of, run.verdict.findings))


@pytest.fixture(scope="module")
def databases(tmp_path_factory: pytest.TempPathFactory, postgres_folder: Path) -> Iterator[list[Database]]:
    with ExitStack() as opening:
        made = [opening.enter_context(opened(kind, tmp_path_factory.mktemp(kind), postgres_folder)) for kind in KINDS]
        for database in made:
            database.script(TABLE)
        yield made


@given(stories(), watches, forms)
@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_a_contract_judges_a_change_alike_on_every_database(
    databases: list[Database], story: Story, watch: dict[str, object], forms: dict[str, str]
) -> None:
    task = contract(story, watch, forms)
    [first, *others] = [found(database, story, task) for database in databases]
    assert others == [first] * len(others)
