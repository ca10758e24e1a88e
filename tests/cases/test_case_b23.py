"""B23: MySQL's executable comments, and good queries refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from guardrail import QueryRefused
from guardrail.query.proof import prove
from support.cases import variant
from support.queries import URLS, loaded, refused


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        variant(
            "B23",
            "versioned executable comment",
            "SELECT email FROM members /*!40100 INTO DUMPFILE '/var/spool/m.bin' */",
            "/*!",
        ),
        variant("B23", "whole statement in it", "/*! TRUNCATE TABLE members */", "/*!"),
        variant(
            "B23", "MariaDB form", "SELECT email FROM members /*M!100100 INTO DUMPFILE '/var/spool/m.bin' */", "/*M!"
        ),
        variant("B23", "REPLACE statement", "REPLACE INTO members VALUES (1)", "REPLACE"),
    ],
)
def test_what_mysql_would_carry_out_is_refused_with_the_part_that_is_not_allowed(
    tmp_path: Path, sql: str, words: str
) -> None:
    assert words in refused(tmp_path, sql, "mysql")


@pytest.mark.parametrize(
    ("dialect", "sql"),
    [
        variant("B23", "ordinary comment", "mysql", "SELECT id /* the key */ FROM members"),
        variant("B23", "marker inside a literal", "mysql", "SELECT '/*! not a comment */' AS t"),
        variant("B23", "REPLACE function", "mysql", "SELECT REPLACE(name, 'a', 'b') FROM members"),
        variant(
            "B23",
            "words in literal and quoted name",
            "postgres",
            "SELECT 'delete from members' AS note, \"update\" FROM audit WHERE action = 'drop table'",
        ),
        variant("B23", "semicolon and comment at the end", "postgres", "SELECT 1; -- done"),
        variant("B23", "semicolon in a literal", "postgres", "SELECT 'a; b' AS t"),
        variant("B23", "dollar quotes", "postgres", "SELECT $$; DELETE FROM x$$ AS t"),
    ],
)
def test_a_query_that_only_reads_is_not_refused_for_its_words(tmp_path: Path, dialect: str, sql: str) -> None:
    assert loaded(tmp_path, sql, URLS[dialect]) == []
    assert "/*" not in prove(sql, dialect).rendered.replace("'/*! not a comment */'", "")  # what is run has no comments


@pytest.mark.case("B23", "no dialect given, back quotes")
def test_without_a_known_dialect_no_query_is_read(tmp_path: Path) -> None:
    sql = "SELECT * FROM `members`"
    for dialect in (None, "", "oracle"):
        with pytest.raises(QueryRefused, match="dialect"):
            prove(sql, dialect)
    assert any("stores.db.url" in mistake for mistake in loaded(tmp_path, sql, "oracle://db.test/shop"))
