"""B22: queries that look like reads.

Each stands in a file wherever a query can stand. What the engine itself makes of them is shown for SQLite with the
store; for the servers, with their stores.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from support.cases import variant
from support.queries import URLS, loaded, refused
from support.shop import Guards


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        variant(
            "B22",
            "writing CTE",
            "WITH gone AS (DELETE FROM members RETURNING id) SELECT count(*) FROM gone",
            "DELETE is not allowed",
        ),
        variant("B22", "CTE before a write", "WITH one AS (SELECT 1) UPDATE members SET level = 2", "UPDATE"),
        variant("B22", "explain analyze of a write", "EXPLAIN ANALYZE DELETE FROM members", "EXPLAIN"),
        variant("B22", "select into", "SELECT * INTO copy_of_members FROM members", "INTO"),
        variant("B22", "row locks", "SELECT * FROM members FOR UPDATE", "FOR UPDATE"),
        variant("B22", "two statements", "SELECT 1; DROP TABLE members", "one statement"),
        variant("B22", "comment first", "/* note */ UPDATE members SET level = 2", "UPDATE"),
        variant("B22", "leave the read-only transaction", "COMMIT", "COMMIT"),
        variant("B22", "session setting", "SET default_transaction_read_only = off", "SET"),
        variant("B22", "anonymous block", "DO $$ BEGIN DELETE FROM members; END $$", "DO"),
        variant("B22", "copy to program", "COPY members TO PROGRAM 'cat > /var/spool/m'", "COPY"),
        variant("B22", "LISTEN parses as an alias expression", "LISTEN ch", "LISTEN is not allowed"),
        variant("B22", "nothing", "-- only a comment", "no statement"),
        variant("B22", "too deep to parse", f"SELECT {'(' * 200}1{')' * 200}", "deep"),
    ],
)
def test_what_does_more_than_read_is_refused_wherever_it_stands(tmp_path: Path, sql: str, words: str) -> None:
    assert words in refused(tmp_path, sql, "postgres")


@pytest.mark.parametrize(
    "sql",
    [
        variant(
            "B22",
            "good: recursive CTE",
            "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 3) SELECT n FROM r",
        ),
        variant("B22", "good: VALUES", "VALUES (1), (2)"),
    ],
)
def test_what_only_reads_is_allowed_wherever_it_stands_and_answers(tmp_path: Path, guards: Guards, sql: str) -> None:
    for dialect in ("postgres", "sqlite"):
        assert loaded(tmp_path, sql, URLS[dialect]) == []
    equals = [{"n": n} for n in (1, 2, 3)] if "RECURSIVE" in sql else [{"column1": n} for n in (1, 2)]
    guard = guards(tasks={"asked": {"checks": [{"store": "shop", "sql": sql, "equals": equals}]}})
    with guard.run("asked") as run:
        pass
    assert run.verdict is not None
    assert (run.verdict.kind, run.verdict.findings) == ("verified", ())
