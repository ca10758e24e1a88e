"""The proof that a query only reads: what it allows, what it refuses, and what it says then."""

from __future__ import annotations

import logging
import re
import sys

import pytest

from guardrail.errors import QueryRefused
from guardrail.query.proof import Dialect, Query, prove, prove_condition
from support.statements import TABLES, Statement, in_every_dialect

DEEP = "SELECT " + "(" * 200 + "1" + ")" * 200


def assert_proved(query: Query, expected: Statement) -> None:
    assert query.text == expected.sql
    if expected.rendered is not None:
        assert query.rendered == expected.rendered
    if expected.parameters is not None:
        assert query.parameters == expected.parameters
    if expected.tables is not None:
        assert query.tables == expected.tables


@pytest.mark.parametrize(("dialect", "statement"), in_every_dialect("statements", "allowed"))
def test_a_reading_statement_passes(dialect: Dialect, statement: Statement) -> None:
    assert_proved(prove(statement.sql, dialect), statement)


@pytest.mark.parametrize(("dialect", "statement"), in_every_dialect("statements", "refused"))
def test_any_other_statement_is_refused(dialect: Dialect, statement: Statement) -> None:
    with pytest.raises(QueryRefused) as refusal:
        prove(statement.sql, dialect)
    assert statement.says in str(refusal.value)


@pytest.mark.parametrize(("dialect", "statement"), in_every_dialect("conditions", "allowed"))
def test_one_expression_passes_as_a_condition(dialect: Dialect, statement: Statement) -> None:
    assert_proved(prove_condition(statement.sql, dialect), statement)


@pytest.mark.parametrize(("dialect", "statement"), in_every_dialect("conditions", "refused"))
def test_anything_but_one_expression_is_refused_as_a_condition(dialect: Dialect, statement: Statement) -> None:
    with pytest.raises(QueryRefused) as refusal:
        prove_condition(statement.sql, dialect)
    assert statement.says in str(refusal.value)


@pytest.mark.parametrize(("dialect", "statement"), in_every_dialect("statements", "refused"))
def test_what_is_refused_as_a_query_does_nothing_as_a_condition(dialect: Dialect, statement: Statement) -> None:
    try:
        condition = prove_condition(statement.sql, dialect)
    except QueryRefused:
        return
    assert re.fullmatch(r"([\"`])[\w ]+\1", condition.rendered), "only a bare word is a column's name"


def test_enough_statements_are_told_apart() -> None:
    assert sum(len(table.refused) for table in TABLES.values()) >= 150
    assert all(len(table.allowed) >= 60 for table in TABLES.values())


@pytest.mark.parametrize("dialect", ["sqlite", "postgres", "mysql"])
@pytest.mark.parametrize(
    "text",
    [
        DEEP,
        "SELECT " + "NOT " * 5_000 + "1",
        "SELECT " + "CASE WHEN " * 900 + "1" + " THEN 1 END" * 900,
        "SELECT '" + "x" * 60_000 + "'",
        "SELECT 1\0",
        "SELECT '\ud800'",
    ],
    ids=["brackets", "negations", "cases", "length", "NUL", "surrogate"],
)
def test_a_text_that_would_break_the_parser_is_refused(text: str, dialect: str) -> None:
    with pytest.raises(QueryRefused):
        prove(text, dialect)


def test_many_cases_side_by_side_pass() -> None:
    assert prove("SELECT " + ", ".join(["CASE WHEN 1 THEN 1 END"] * 100), "sqlite").rendered.count("CASE") == 100


def test_running_out_of_stack_is_a_refusal() -> None:
    def deeper() -> None:
        try:
            deeper()
        except RecursionError:
            prove("SELECT 1 + 2 AS close_to_the_limit", "sqlite")

    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(400)
    try:
        with pytest.raises(QueryRefused, match="nested too deeply"):
            deeper()
    finally:
        sys.setrecursionlimit(limit)


def test_many_comments_are_read_in_one_pass() -> None:
    comments = "-- a -- b " * 2_000 + "\n" + "/* a */ " * 2_000
    assert prove(f"SELECT 1 {comments}", "mysql").rendered == "SELECT 1"
    with pytest.raises(QueryRefused, match="no comment"):
        prove(f"SELECT 1 {comments} /* /* */", "mysql")


@pytest.mark.parametrize("dialect", [None, "", "oracle", "tsql"])
def test_a_query_without_a_known_dialect_is_refused_with_the_known_ones(dialect: str | None) -> None:
    with pytest.raises(QueryRefused, match=r"dialect.*sqlite, postgres, mysql"):
        prove("SELECT * FROM `members`", dialect)


def test_a_function_that_the_caller_vouches_for_passes() -> None:
    query = prove("SELECT vat(amount) FROM orders", "sqlite", functions=frozenset({"vat"}))
    assert query.rendered == "SELECT VAT(`amount`) FROM `orders`"
    assert query.functions == {"vat"}


def test_the_same_text_is_proved_once() -> None:
    assert prove("SELECT 1 AS once", "sqlite") is prove("SELECT 1 AS once", "sqlite")
    assert prove("SELECT 1 AS once", "sqlite") is not prove("SELECT 1 AS once", "postgres")


def test_what_a_refusal_suggests_passes() -> None:
    with pytest.raises(QueryRefused) as refusal:
        prove("SELECT sum(id) OVER (w ROWS UNBOUNDED PRECEDING) FROM t WINDOW w AS (ORDER BY id)", "sqlite")
    _, suggestion = str(refusal.value).split("what it means: ")
    prove(suggestion, "sqlite")


def test_a_long_offending_part_is_clipped_in_the_refusal() -> None:
    with pytest.raises(QueryRefused) as refusal:
        prove(f"SELECT * FROM t WHERE a = (SELECT 1 FROM u FOR UPDATE OF {'x' * 1_000})", "postgres")
    assert len(str(refusal.value)) < 200


def test_the_parser_is_not_heard_in_the_hosts_log(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        prove("SELECT document ->> '$.l[#-2]' FROM orders", "sqlite")
    assert caplog.records == []
    logging.getLogger("sqlglot").warning("of the host's own use of it")
    assert [record.message for record in caplog.records] == ["of the host's own use of it"]
