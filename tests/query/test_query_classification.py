"""What the statements of a text do: the tables of examples, and what is refused because of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from guardrail.query.classification import Statement, classify
from guardrail.query.proved import LONGEST, Dialect
from support.statements import in_every_dialect

EXAMPLES: dict[Dialect, list[dict[str, Any]]] = YAML(typ="safe").load(Path(__file__).with_name("classified.yaml"))  # pyright: ignore[reportUnknownMemberType]


def examples() -> list[Any]:
    return [
        pytest.param(dialect, each, id=f"{dialect}: {each['sql']}")
        for dialect, listed in EXAMPLES.items()
        for each in listed
    ]


def word(statement: Statement) -> str:
    return " ".join([statement.effect, *sorted(statement.traits)]) if statement.legible else "illegible"


@pytest.mark.parametrize(("dialect", "example"), examples())
def test_each_statement_is_told_for_what_it_does(dialect: Dialect, example: dict[str, Any]) -> None:
    found = classify(example["sql"], dialect)
    assert [word(statement) for statement in found.statements] == example["is"]
    assert list(found.tables) == example["tables"]
    assert found.effect == ("read" if example["is"] and set(example["is"]) == {"read"} else "write")


def test_enough_statements_are_told_apart() -> None:
    assert sum(map(len, EXAMPLES.values())) >= 100


@pytest.mark.parametrize(("dialect", "statement"), in_every_dialect("statements", "allowed"))
def test_what_is_proved_to_read_is_a_read_unless_a_session_may_read_it_otherwise(
    dialect: Dialect, statement: Any
) -> None:
    found = classify(statement.sql, dialect)
    assert found.effect == "read" or [each.because for each in found.statements] == [
        "a backslash before a quote ends a text or not, as the session is set"
    ]


TOLD = ("EXPLAIN SELECT", "EXPLAIN QUERY", "PRAGMA table_", "SHOW ", "DESC ")
MARKED = ("?", "$1", "%s", "%(x)s")


@pytest.mark.parametrize(("dialect", "statement"), in_every_dialect("statements", "refused"))
def test_what_is_not_proved_to_read_is_a_write_unless_it_only_tells_or_marks_its_parameters_otherwise(
    dialect: Dialect, statement: Any
) -> None:
    if classify(statement.sql, dialect).effect == "read":
        assert statement.does in (None, "runs", "fails")
        several = statement.sql == "SELECT 1; SELECT 2"
        assert several or statement.sql.startswith(TOLD) or any(mark in statement.sql for mark in MARKED)


@pytest.mark.parametrize(
    ("text", "forbids", "said"),
    [
        ("DELETE FROM t WHERE id = 1", ("no_where", "ddl"), None),
        ("SELECT * FROM t", ("no_where", "ddl"), None),
        ("DELETE FROM t", ("ddl",), None),
        ("DROP TABLE t", ("no_where",), None),
        (
            "SELECT 1; DELETE FROM secret WHERE 1 = 1",
            ("no_where",),
            "statement 2 has no WHERE that names a column, and would change every row",
        ),
        ("CREATE TABLE secret (a int)", ("ddl",), "statement 1 would change the schema or the rights in it"),
        ("DO $$ $$", ("ddl",), "statement 1 cannot be read, so that nobody can tell what it would do"),
        ("", ("ddl", "no_where"), None),
    ],
)
def test_what_a_policy_forbids_is_named_by_the_number_of_its_statement_and_without_its_text(
    text: str, forbids: Any, said: str | None
) -> None:
    assert classify(text, "postgres").forbidden(forbids) == said


@pytest.mark.parametrize(
    "text",
    [
        "SELECT 1 -- " + "x" * LONGEST,
        "SELECT " + "(" * 300 + "1" + ")" * 300,
        "SELECT " + "NOT " * 5_000 + "1",
        "SELECT \0",
        "SELECT \ud800",
        "SELECT 'unfinished",
        "\u00a0SELECT 1",
    ],
    ids=["long", "brackets", "nots", "nul", "surrogate", "unfinished", "blank"],
)
@pytest.mark.parametrize("dialect", ["sqlite", "postgres", "mysql"])
def test_what_cannot_be_read_counts_as_a_write_and_raises_nothing(dialect: Dialect, text: str) -> None:
    found = classify(text, dialect)
    assert (found.effect, found.tables) == ("write", ())
    assert found.forbidden(["ddl"]) is not None


def test_a_text_is_classified_once() -> None:
    assert classify("SELECT 'kept'", "sqlite") is classify("SELECT 'kept'", "sqlite")
