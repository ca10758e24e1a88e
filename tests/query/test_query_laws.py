"""Laws of the proof, over texts that nobody thought of."""

from __future__ import annotations

import sqlite3
from contextlib import closing, suppress

from hypothesis import assume, given
from hypothesis import strategies as st

from guardrail.errors import QueryRefused
from guardrail.query.proof import prove, prove_condition
from guardrail.query.vocabulary import is_internal

SETUP = "CREATE TABLE t (a, b); INSERT INTO t VALUES (1, 'x'), (2, 'y'); CREATE TABLE u (a);"

writes = st.sampled_from(
    [
        "INSERT INTO t VALUES (3, 'z')",
        "INSERT INTO t SELECT * FROM t",
        "INSERT OR REPLACE INTO t VALUES (1, 'z') RETURNING a",
        "REPLACE INTO t VALUES (1, 'z')",
        "UPDATE t SET b = 'z'",
        "UPDATE t SET b = 'z' WHERE a = 1 RETURNING a",
        "DELETE FROM t",
        "DELETE FROM t WHERE a IN (SELECT a FROM t) RETURNING *",
        "DROP TABLE t",
        "CREATE TABLE v AS SELECT * FROM t",
        "CREATE TEMP TABLE v (a)",
        "CREATE TRIGGER r AFTER INSERT ON t BEGIN DELETE FROM t; END",
        "ALTER TABLE t ADD COLUMN c DEFAULT 1",
        "PRAGMA user_version = 7",
        "REINDEX",
        "ANALYZE",
    ]
)
fillers = st.sampled_from([" ", "\n", "\t", " /* c */ ", " -- c\n", "\r\n", " /* ; */ ", " /**/ ", "\f"])
wrappings = st.sampled_from(
    [
        "{0}",
        "{0};",
        ";{0}",
        "SELECT 1;{0}",
        "{0};SELECT 1",
        "({0})",
        "(({0}))",
        "WITH x AS (SELECT 1){1}{0}",
        "WITH RECURSIVE x(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM x WHERE n < 3){1}{0}",
        "WITH x AS ({0}){1}SELECT * FROM x",
        "WITH x AS MATERIALIZED ({0}){1}SELECT * FROM x",
        "SELECT * FROM ({0})",
        "SELECT ({0})",
        "SELECT * FROM t WHERE a IN ({0})",
        "SELECT 1{1}UNION{1}{0}",
        "SELECT 1 FROM t{1}{0}",
        "SELECT 1 AS x{1}{0}",
        "VALUES (1){1}{0}",
        "EXPLAIN{1}{0}",
        "/*!{0}*/",
        "/*!50000{1}{0}*/ SELECT 1",
        "SELECT 1 /*!{1};{0}*/",
        "SELECT '{0}'",
        'SELECT "{0}" FROM t',
        "SELECT [{0}] FROM t",
        "SELECT `{0}` FROM t",
        "SELECT 1 -- {0}",
        "SELECT 1 /*{0}*/",
        "SELECT 1 --{1}\n{0}",
        "SELECT CAST(1 AS [{0}])",
        "SELECT 1 AS [a]]{1};{0}]",
        "SELECT 'it''s';{0}",
        "SELECT 'back\\';{0}; --'",
        'SELECT "a"";{0}" FROM t',
    ]
)


@st.composite
def disguised(draw: st.DrawFn) -> str:
    """A write in a wrapping, with blanks and comments put in and the case of letters changed."""
    text = draw(writes)
    for wrapping in draw(st.lists(wrappings, min_size=1, max_size=2)):
        text = wrapping.format(text, draw(fillers))
    text = draw(fillers).join(text.split(" "))
    return draw(st.sampled_from([text, text.lower(), text.upper(), text.swapcase()]))


def assert_changes_nothing(sql: str) -> None:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        connection.executescript(SETUP)
        before, made = [*connection.iterdump()], connection.total_changes
        try:
            connection.execute(sql).fetchall()
        except sqlite3.Error:
            return
        assert [*connection.iterdump()] == before
        assert connection.total_changes == made
        assert connection.execute("PRAGMA user_version").fetchone() == (0,)
        assert connection.execute("SELECT count(*) FROM sqlite_temp_master").fetchone() == (0,)


@settings(deadline=None)  # the first text imports the parser
@given(disguised())
def test_no_write_survives_the_proof(text: str) -> None:
    try:
        query = prove(text, "sqlite")
    except QueryRefused:
        return
    assert_changes_nothing(query.rendered)


@settings(deadline=None)  # the first text imports the parser
@given(disguised())
def test_no_write_survives_as_a_condition(text: str) -> None:
    try:
        query = prove_condition(text, "sqlite")
    except QueryRefused:
        return
    assert_changes_nothing(f"SELECT 1 FROM t WHERE ({query.rendered})")


@given(st.text(max_size=60), st.sampled_from(["sqlite", "postgres", "mysql"]))
def test_any_text_is_proved_or_refused(text: str, dialect: str) -> None:
    with suppress(QueryRefused):
        assert prove(f"SELECT {text}", dialect).rendered.startswith("SELECT ")


names = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1, max_size=12)


@given(names, names)
def test_a_quoted_name_reaches_the_database_as_it_was_written(table: str, column: str) -> None:
    assume(not is_internal(table))
    quoted = [f'"{name.replace(chr(34), chr(34) * 2)}"' for name in (table, column)]
    with closing(sqlite3.connect(":memory:")) as connection:
        try:
            connection.execute(f"CREATE TABLE {quoted[0]} ({quoted[1]})")
        except sqlite3.Error:  # a name that SQLite keeps for itself
            return
        connection.execute(f"INSERT INTO {quoted[0]} VALUES (7)")
        query = prove(f"SELECT {quoted[1]} FROM {quoted[0]} WHERE {quoted[1]} = 7", "sqlite")
        found = connection.execute(query.rendered)
        assert [column[0] for column in found.description] == [column]
        assert found.fetchall() == [(7,)]
        assert query.tables == (table,)


@given(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=30))
def test_a_text_literal_reaches_the_database_as_it_was_written(text: str) -> None:
    query = prove(f"SELECT '{text.replace(chr(39), chr(39) * 2)}'", "sqlite")
    with closing(sqlite3.connect(":memory:")) as connection:
        assert connection.execute(query.rendered).fetchone() == (text,)


@given(st.text(st.characters(exclude_characters="\0$\\", exclude_categories=["Cs"]), max_size=30))
def test_what_a_dollar_quote_holds_is_only_text(text: str) -> None:
    query = prove(f"SELECT $q${text}$q$", "postgres")
    assert query.rendered == f"SELECT '{text.replace(chr(39), chr(39) * 2)}'"
