"""Benchmarks of the ledger: what a durable intent costs, in a file and on a server."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from functools import partial
from pathlib import Path

import psycopg

from benchmarks.measuring import beside, cpu, say, wall
from guardrail.ledger.ledger import Ledger
from guardrail.ledger.processes import this_host
from guardrail.ledger.records import CallRecord, OutcomeRecord, RunRecord
from support.ledgers import in_schema
from support.servers import empty_schema, postgres

_ROW = CallRecord("r" * 32, 0, "pay", None, "write", '{"order_id": 17, "amount": "19.90"}', "d" * 64, "o" * 64, 1.5)
_TABLE = """CREATE TABLE bare (run TEXT NOT NULL, number BIGINT NOT NULL, tool TEXT NOT NULL, call_id TEXT,
    effect TEXT NOT NULL, args TEXT NOT NULL, digest TEXT NOT NULL, operation TEXT, started DOUBLE PRECISION NOT NULL,
    PRIMARY KEY (run, number))"""


def intents(folder: Path) -> None:
    """A durable intent beside the bare commit of such a row: by itself, and with the outcome of the write before."""
    file = sqlite3.connect(folder / "bare.db", isolation_level=None)
    file.execute("pragma journal_mode = wal")
    file.execute("pragma synchronous = full")
    file.execute(_TABLE)
    marks = ", ".join("?" * len(_ROW))
    _intents("SQLite", str(folder / "intents.db"), partial(file.execute, f"insert into bare values ({marks})"))
    where = postgres(folder / "postgres")
    with empty_schema(where) as url, empty_schema(where) as own, psycopg.connect(own, autocommit=True) as server:
        server.execute(_TABLE.encode())
        insertion = f"insert into bare values ({marks})".replace("?", "%s").encode()
        _intents("PostgreSQL", in_schema(url), partial(server.cursor().execute, insertion))


def _intents(name: str, place: str, bare: Callable[[CallRecord], object]) -> None:
    ledger = Ledger(place)
    ledger.open_run(RunRecord(_ROW.run, None, "{}", "balanced", "enforce", 1.0, os.getpid(), this_host()))
    number = iter(range(1, 10**9))

    def alone() -> None:
        ledger.intend(_ROW._replace(number=next(number)))

    def after_an_outcome() -> None:
        now = next(number)
        ledger.record(OutcomeRecord(_ROW.run, now - 1, "ok", "", "", "allow", True, 2.5))
        ledger.intend(_ROW._replace(number=now))

    def commit() -> None:
        bare(_ROW._replace(number=next(number)))

    for case, work in (("alone", alone), ("after an outcome", after_an_outcome)):
        for clock in (wall, cpu):
            us, plain, ratio = beside(work, commit, 1, clock, rounds=600)
            say(f"durable intent, {clock.__name__}", ledger=name, case=case, us=us, bare_commit_us=plain, ratio=ratio)
    ledger.close()
