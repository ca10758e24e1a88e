"""The table of statements that the proof allows and refuses, as parameters of tests."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import pytest
from pydantic import BaseModel, ConfigDict, TypeAdapter
from ruamel.yaml import YAML

QUERY_TESTS = Path(__file__).parents[1] / "query"
SHOP = (QUERY_TESTS / "shop.sql").read_text()
"""The tables that the statements for SQLite are about."""


class Statement(BaseModel):
    """One statement and what becomes of it; the table explains the fields."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    sql: str
    values: dict[str, str | int | float] = {}
    rendered: str | None = None
    parameters: tuple[str, ...] | None = None
    tables: tuple[str, ...] | None = None
    runs: bool = True
    says: str = ""
    harmful: bool = False
    case: Literal["B22", "B23"] | None = None


Part = Literal["sqlite", "postgres", "mysql", "conditions"]
_Table = TypeAdapter(dict[Part, dict[Literal["allowed", "refused"], list[Statement]]])
_TABLE = _Table.validate_python(YAML(typ="safe").load(QUERY_TESTS / "statements.yaml"))  # pyright: ignore[reportUnknownMemberType]


def statements(part: Part, verdict: Literal["allowed", "refused"]) -> list[Any]:
    """The statements of one part of the table, each as a parameter named by its text."""
    return [pytest.param(statement, id=statement.sql or "nothing") for statement in _TABLE[part][verdict]]
