"""Recorded runs replayed on servers: what they come to must not depend on where the state lies."""

from __future__ import annotations

import os
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest

from guardrail.errors import StoreError
from guardrail.recorded.backtest import BacktestReport, Replayed, backtest
from support.servers import connect_mariadb

FOLDERS = ("airline", "workbench", "thinkingbox_retail", "thinkingbox_booking")
SERVERS = ("postgres_url", "mariadb_url")
LIMIT = None if os.environ.get("GUARDRAIL_WHOLE_CORPORA") else 40
"""How many runs of a folder are replayed on each server; all of them take some minutes."""


@pytest.fixture(scope="module", params=FOLDERS)
def on_sqlite(request: pytest.FixtureRequest, corpus: Path) -> BacktestReport:
    return backtest(corpus / request.param, limit=LIMIT)


def come_to(run: Replayed) -> Replayed:
    """A run without the words of its findings, in which a value may be spelled as its database spells it."""
    return replace(run, findings=())


@pytest.mark.parametrize("server", SERVERS)
@pytest.mark.timeout(1800)
def test_a_run_comes_to_the_same_on_every_database(
    request: pytest.FixtureRequest, corpus: Path, on_sqlite: BacktestReport, server: str
) -> None:
    report = backtest(corpus / on_sqlite.name, limit=LIMIT, store=request.getfixturevalue(server))
    assert list(map(come_to, report.replayed)) == list(map(come_to, on_sqlite.replayed))


def test_nothing_is_left_on_postgresql(corpus: Path, postgres_url: str) -> None:
    backtest(corpus / "airline", limit=3, store=postgres_url, jobs=1)
    with psycopg.connect(postgres_url) as connection:
        found = connection.execute(
            "SELECT 1 FROM pg_namespace WHERE nspname LIKE %s", (f"guardrail_backtest_{os.getpid()}%",)
        )
        assert found.fetchall() == []


def test_a_schema_that_is_not_empty_is_refused_and_left_alone(corpus: Path, postgres_url: str) -> None:
    name = f"guardrail_backtest_{os.getpid()}_0"
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {name}".encode())
        connection.execute(f"CREATE TABLE {name}.precious (id int)".encode())
        try:
            with pytest.raises(StoreError, match=f"the schema {name} is not empty"):
                backtest(corpus / "airline", limit=3, store=postgres_url, jobs=1)
            assert connection.execute(f"SELECT count(*) FROM {name}.precious".encode()).fetchall() == [(0,)]
        finally:
            connection.execute(f"DROP SCHEMA {name} CASCADE".encode())


def test_a_database_that_is_not_empty_is_refused_and_left_alone(corpus: Path, mariadb_url: str) -> None:
    name = f"guardrail_backtest_{os.getpid()}_0"
    with closing(connect_mariadb(mariadb_url)) as connection, connection.cursor() as cursor:
        cursor.execute(f"CREATE DATABASE {name}")
        cursor.execute(f"CREATE TABLE {name}.precious (id int)")
        try:
            with pytest.raises(StoreError, match=f"the database {name} is not empty"):
                backtest(corpus / "airline", limit=3, store=mariadb_url, jobs=1)
            cursor.execute(f"SELECT count(*) FROM {name}.precious")
            assert cursor.fetchall() == ((0,),)
        finally:
            cursor.execute(f"DROP DATABASE {name}")


@pytest.mark.parametrize("where", ["sqlite:///somewhere.db", "oracle://host/x", "somewhere.db"])
def test_any_other_place_is_refused(corpus: Path, where: str) -> None:
    with pytest.raises(StoreError, match="on PostgreSQL or on MariaDB"):
        backtest(corpus / "airline", limit=3, store=where)
