"""The tables of statements that the proof allows and refuses, as parameters of tests."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, Literal, TypeAlias

import pytest
from pydantic import BaseModel, ConfigDict
from ruamel.yaml import YAML

from guardrail.query.proof import Dialect

QUERY_TESTS = Path(__file__).parents[1] / "query"
SHOPS = QUERY_TESTS / "shops"
"""What the statements are about, for each dialect."""

SHOP = (SHOPS / "sqlite.sql").read_text()
"""The same for SQLite."""


class Statement(BaseModel):
    """One statement and what becomes of it; the tables explain the fields."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    sql: str
    values: dict[str, Any] = {}
    rendered: str | None = None
    parameters: tuple[str, ...] | None = None
    tables: tuple[str, ...] | None = None
    runs: bool = True
    compares: bool = True
    needs: str | None = None
    says: str = ""
    harmful: bool = False
    harm: str | None = None
    does: Literal["changes", "runs", "fails", "never"] | None = None
    case: Literal["B22", "B23"] | None = None


Verdict: TypeAlias = Literal["allowed", "refused"]


class Table(BaseModel):
    """The statements of one dialect."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    allowed: tuple[Statement, ...]
    refused: tuple[Statement, ...]
    conditions: dict[Verdict, tuple[Statement, ...]]


DIALECTS: tuple[Dialect, ...] = ("sqlite", "postgres", "mysql")


def _read(dialect: Dialect) -> Table:
    text = (QUERY_TESTS / "statements" / f"{dialect}.yaml").read_text(encoding="utf-8")
    return Table.model_validate(YAML(typ="safe").load(text))  # pyright: ignore[reportUnknownMemberType]


TABLES = {dialect: _read(dialect) for dialect in DIALECTS}


def statements(dialect: Dialect, verdict: Verdict) -> list[Any]:
    """The statements of a dialect, each as a parameter named by its text."""
    return _named(TABLES[dialect].allowed if verdict == "allowed" else TABLES[dialect].refused)


def conditions(dialect: Dialect, verdict: Verdict) -> list[Any]:
    """The conditions of a dialect likewise."""
    return _named(TABLES[dialect].conditions[verdict])


def in_every_dialect(of: Literal["statements", "conditions"], verdict: Verdict) -> list[Any]:
    """Pairs of a dialect and a statement, of all dialects."""
    listed = {"statements": statements, "conditions": conditions}[of]
    return [
        pytest.param(dialect, *statement.values, id=f"{dialect}: {statement.id}")
        for dialect in DIALECTS
        for statement in listed(dialect, verdict)
    ]


def _named(found: Iterable[Statement]) -> list[Any]:
    return [pytest.param(statement, id=statement.sql or "nothing") for statement in found]
