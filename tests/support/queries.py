"""Queries in a configuration file, in every place where one can stand."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from guardrail import ConfigurationError
from guardrail.declare.loading import load

URLS = {"postgres": "postgresql://db.test/shop", "mysql": "mysql://db.test/shop", "sqlite": "sqlite:///shop.db"}
PLACES = 4


def loaded(folder: Path, sql: str, url: str) -> list[str]:
    """The mistakes of a file that asks `sql` in a precondition, a `let`, a `when` and a check of one store."""
    asked = {"store": "db", "sql": sql}
    watch = {"db.members": {"key": "id"}}
    document = {
        "stores": {"db": {"url": url}},
        "tools": {"join": {"effect": "write", "requires": [asked]}},
        "tasks": {
            "one": {"watch": watch, "expect": "nothing", "let": {"l": {"store": "db", "rows": sql}}, "checks": [asked]},
            "two": {"watch": watch, "any_of": {"only": {"when": asked, "expect": "nothing"}}},
        },
    }
    file = folder / "guardrail.yaml"
    file.write_text(json.dumps(document))
    try:
        load(file)
    except ConfigurationError as error:
        return [str(mistake) for mistake in error.mistakes]
    return []


def refused(folder: Path, sql: str, dialect: str) -> str:
    """The words with which a query is refused, the same wherever it stands; fails if it is let through anywhere."""
    mistakes = loaded(folder, sql, URLS[dialect])
    reasons = {mistake.partition("the query is refused: ")[2] for mistake in mistakes}
    if len(mistakes) != PLACES or len(reasons) != 1 or "" in reasons:
        pytest.fail(f"not refused in all of {PLACES} places: {mistakes}")
    return reasons.pop()
