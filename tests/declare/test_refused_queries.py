"""Every statement that the proof refuses, in every place of a file and of a check where SQL can stand."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import pytest

from guardrail import ConfigurationError, State
from guardrail.declare.loading import load
from guardrail.errors import QueryRefused
from guardrail.pictures import Answer
from guardrail.query.proof import Dialect, prove_condition
from guardrail.stores.store import Question, Store
from support.queries import URLS
from support.statements import DIALECTS, TABLES


def passes_as_a_condition(text: str, dialect: Dialect) -> bool:
    """A bare word such as COMMIT is a column's name there."""
    try:
        prove_condition(text, dialect)
    except QueryRefused:
        return False
    return True


@pytest.mark.parametrize("dialect", DIALECTS)
def test_no_refused_statement_is_let_in_anywhere(dialect: Dialect, tmp_path: Path) -> None:
    texts = [statement.sql for statement in TABLES[dialect].refused]
    watch = {"db.members": {"key": "id"}}
    asked = {f"q{number}": {"store": "db", "sql": text} for number, text in enumerate(texts)}
    conditions = {
        f"c{number}": text
        for number, text in enumerate([*texts, *(statement.sql for statement in TABLES[dialect].conditions["refused"])])
        if not passes_as_a_condition(text, dialect)
    }
    whole = {"watch": watch, "expect": "nothing"}
    document = {
        "stores": {"db": {"url": URLS[dialect]}},
        "tools": {name: {"effect": "write", "requires": [query]} for name, query in asked.items()},
        "tasks": {
            "all": {
                **whole,
                "let": {name: {"store": "db", "rows": query["sql"]} for name, query in asked.items()},
                "checks": list(asked.values()),
            },
            "any": {
                "watch": watch,
                "any_of": {name: {"when": query, "expect": "nothing"} for name, query in asked.items()},
            },
        }
        | {
            name: {"watch": {"db.members": {"key": "id", "where": text}}, "expect": "nothing"}
            for name, text in conditions.items()
        },
    }
    file = tmp_path / "guardrail.yaml"
    file.write_text(json.dumps(document))
    with pytest.raises(ConfigurationError) as raised:
        load(file)
    mistakes = [str(mistake) for mistake in raised.value.mistakes]
    places = [
        *(f"tools.{name}.requires[0].sql: the query is refused: " for name in asked),
        *(f"tasks.all.let.{name}.rows: the query is refused: " for name in asked),
        *(f"tasks.all.checks[{number}].sql: the query is refused: " for number in range(len(asked))),
        *(f"tasks.any.any_of.{name}.when.sql: the query is refused: " for name in asked),
        *(f"tasks.{name}.watch.db.members.where: the condition is refused: " for name in conditions),
    ]
    told = {place for place in places if any(place in mistake for mistake in mistakes)}
    assert told == set(places)


@dataclass(frozen=True)
class Unasked:
    """The part of a store that a Python check's query meets first; it must not come further."""

    dialect: Dialect

    def look(self, questions: Sequence[Question]) -> list[Answer]:
        raise AssertionError(f"asked: {questions}")


@pytest.mark.parametrize("dialect", DIALECTS)
def test_no_refused_statement_of_a_python_check_reaches_the_store(dialect: Dialect) -> None:
    state = State(inputs={}, before={}, after={}, stores={"db": cast("Store", Unasked(dialect))})
    for statement in TABLES[dialect].refused:
        with pytest.raises(QueryRefused):
            state.rows("db", statement.sql)
