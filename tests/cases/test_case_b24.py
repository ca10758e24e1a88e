"""B24: the same value in another form."""

from __future__ import annotations

import sqlite3
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from guardrail import Configuration, Guard, Verdict
from support.cases import variant


# Columns whose values reach the guard as a server's driver would give them: kept as texts, read as Python's own types.
def as_decimal(raw: bytes) -> Decimal:
    return Decimal(raw.decode())


def as_instant(raw: bytes) -> datetime:
    return datetime.fromisoformat(raw.decode())


sqlite3.register_converter("text_decimal", as_decimal)
sqlite3.register_converter("text_instant", as_instant)
KINDS = {"text_decimal": "decimal", "text_instant": "instant"}
"""What such a column compares as; the names that SQLite knows speak for themselves."""

UNTOUCHED: dict[str, object] = {
    "text_decimal": "1.00",
    "text_instant": "2026-01-01T00:00:00+00:00",
    "double": 7.5,
    "time": "01:00:00",
    "json": '"before"',
    "text": "before",
    "integer": 5,
}


def verdict(folder: Path, kind: str, expected: object, live: object, **loosely: object) -> Verdict:
    """What a run comes to that leaves `live` in a column of this declared type where `expected` was expected."""
    path = folder / "values.db"

    def connect() -> sqlite3.Connection:
        return sqlite3.connect(path, detect_types=sqlite3.PARSE_DECLTYPES)

    def execute(sql: str, *values: object) -> None:
        connection = sqlite3.connect(path)
        connection.execute(sql, values)
        connection.commit()
        connection.close()

    execute(f"create table cells (id integer primary key, v {kind})")
    execute("insert into cells values (1, ?)", UNTOUCHED[kind])
    how: dict[str, object] = {"kind": KINDS[kind], **loosely} if kind in KINDS else loosely
    task: dict[str, Any] = {
        "watch": {"db.cells": {"key": "id", "compare": {"v": how}}},
        "expect": [{"updated": "db.cells", "key": {"id": 1}, "values": {"v": expected}}],
    }
    configuration = {
        "ledger": "memory",
        "stores": {"db": {"url": "sqlite:///values.db"}},
        "tools": {"write": {"effect": "write"}},
        "tasks": {"change": task},
    }
    guard = Guard(Configuration.model_validate(configuration), stores={"db": connect})
    with guard, guard.run("change") as run:
        run.call("write", {}, lambda: execute("update cells set v = ? where id = 1", live))
    assert run.verdict is not None
    return run.verdict


@pytest.mark.parametrize(
    ("kind", "expected", "live"),
    [
        variant("B24", "decimal against float literal", "text_decimal", 19.9, "19.90"),
        variant("B24", "decimal against text", "text_decimal", "19.90", "19.9"),
        variant("B24", "double noise", "double", 0.3, 0.30000000000000004),
        variant("B24", "offsets", "text_instant", "2026-11-30T12:00:00Z", "2026-11-30T14:00:00+02:00"),
        variant("B24", "fraction digits", "time", "09:00:00", "09:00:00.000"),
        variant("B24", "JSON text column, key order", "json", {"a": 1, "b": 2}, '{"b": 2, "a": 1}'),
        variant("B24", "1 against '1' in a text column", "text", "1", "1"),
        variant("B24", "not-equal expectation on NULL", "integer", {"not": 5}, None),
    ],
)
def test_the_same_value_in_another_form_is_no_finding(
    tmp_path: Path, kind: str, expected: object, live: object
) -> None:
    found = verdict(tmp_path, kind, expected, live)
    assert (found.kind, found.findings) == ("verified", ())


@pytest.mark.parametrize(
    ("kind", "expected", "live", "words"),
    [
        variant(
            "B24",
            "decimal really other",
            "text_decimal",
            "12345678901234567.89",
            "12345678901234567.90",
            ("v is 12345678901234567.90", "12345678901234567.89"),
        ),
        variant("B24", "numeric column, tiny difference", "text_decimal", "0.30", "0.31", ("v is 0.31", "0.30")),
        variant("B24", "JSON array order", "json", [1, 2], "[2, 1]", ("v/0 is 2", "expected 1")),
        variant("B24", "true against 1 in JSON", "json", True, "1", ("v is 1", "expected true")),
        variant("B24", "null against ''", "text", None, "", ("v is ''", "expected NULL")),
    ],
)
def test_another_value_is_a_finding_that_shows_both(
    tmp_path: Path, kind: str, expected: object, live: object, words: tuple[str, str]
) -> None:
    found = verdict(tmp_path, kind, expected, live)
    assert found.kind == "silent_failure"
    [finding] = found.findings
    assert (finding.kind, finding.place) == ("wrong_value", "db.cells")
    assert all(word in finding.text for word in words)


@pytest.mark.case("B24", "naive against aware")
def test_a_time_without_a_zone_is_compared_only_with_a_declared_zone(tmp_path: Path) -> None:
    def compared(folder: str, **loosely: object) -> Verdict:
        (tmp_path / folder).mkdir()
        return verdict(tmp_path / folder, "text_instant", "2026-11-30T12:00:00Z", "2026-11-30T12:00:00", **loosely)

    undeclared = compared("undeclared")
    assert undeclared.kind == "unverified"
    assert {finding.kind for finding in undeclared.findings} == {"check_error"}
    assert "zone" in undeclared.because
    assert compared("utc", zone="UTC").kind == "verified"
    assert compared("paris", zone="Europe/Paris").kind == "silent_failure"


def test_values_that_look_alike_are_shown_with_their_types(tmp_path: Path) -> None:
    found = verdict(tmp_path, "json", "1", "1")
    assert [finding.text for finding in found.findings] == ["db.cells id=1: v is 1 (integer), expected '1' (text)"]
