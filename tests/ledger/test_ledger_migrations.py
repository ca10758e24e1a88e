"""A ledger's file is brought to the present schema, or left as it was."""

from __future__ import annotations

import sqlite3
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from guardrail.errors import LedgerError
from guardrail.ledger.ledger import Ledger
from guardrail.ledger.migrations import MIGRATIONS, Migration
from guardrail.ledger.records import CallRecord, RunRecord
from guardrail.ledger.sqlite import SqliteDatabase

Runs = Callable[..., RunRecord]
Calls = Callable[..., CallRecord]

SECOND: Migration = (
    "ALTER TABLE calls ADD COLUMN cost DOUBLE PRECISION",
    "UPDATE calls SET cost = 0.5",
)
THIRD: Migration = ("CREATE TABLE notes (run TEXT)",)
BROKEN: Migration = ("CREATE TABLE halfway (x TEXT)", "ALTER TABLE nowhere ADD COLUMN x TEXT")


def asked(path: Path, query: str) -> list[tuple[object, ...]]:
    connection = sqlite3.connect(path)
    try:
        return connection.execute(query).fetchall()
    finally:
        connection.close()


def filled(path: Path, run: RunRecord, call: CallRecord) -> None:
    """A file of the present version with a run in it."""
    ledger = Ledger(path)
    ledger.open_run(run)
    ledger.intend(call)
    ledger.close()


@pytest.mark.parametrize("steps", [(SECOND,), (SECOND, THIRD)])
def test_a_file_of_the_first_version_is_brought_forward_with_what_is_in_it(
    path: Path, run_record: Runs, call_record: Calls, steps: Sequence[Migration]
) -> None:
    filled(path, run_record(), call_record(1))
    ledger = Ledger(SqliteDatabase(path, (*MIGRATIONS, *steps)))
    ledger.intend(call_record(2))
    found = ledger.load_run("r1")
    assert found is not None
    assert [recorded.call.number for recorded in found.calls] == [1, 2]
    ledger.close()
    assert asked(path, "PRAGMA user_version") == [(1 + len(steps),)]
    assert asked(path, "SELECT number, cost FROM calls ORDER BY number") == [(1, 0.5), (2, None)]


def test_a_new_file_gets_all_steps_at_once(path: Path, run_record: Runs, call_record: Calls) -> None:
    ledger = Ledger(SqliteDatabase(path, (*MIGRATIONS, SECOND)))
    ledger.open_run(run_record())
    ledger.intend(call_record(1))
    ledger.close()
    assert asked(path, "PRAGMA user_version") == [(2,)]


def test_a_step_that_fails_changes_nothing(path: Path, run_record: Runs, call_record: Calls) -> None:
    filled(path, run_record(), call_record(1))
    broken = Ledger(SqliteDatabase(path, (*MIGRATIONS, SECOND, BROKEN)))
    with pytest.raises(LedgerError, match=r"ledger\.db .*no such table: nowhere"):
        broken.intend(call_record(2))
    assert asked(path, "PRAGMA user_version") == [(2,)]
    assert asked(path, "SELECT name FROM sqlite_master WHERE name = 'halfway'") == []
    mended = Ledger(SqliteDatabase(path, (*MIGRATIONS, SECOND, THIRD)))
    mended.intend(call_record(2))
    mended.close()
    assert asked(path, "SELECT count(*) FROM calls") == [(2,)]


def test_processes_that_come_at_once_take_each_step_once(
    path: Path, child: Callable[[str], subprocess.Popen[str]]
) -> None:
    code = """
from guardrail.ledger.migrations import MIGRATIONS
from guardrail.ledger.sqlite import SqliteDatabase
steps = tuple((f"CREATE TABLE extra{number} (x TEXT)",) for number in range(20))
ledger = Ledger(SqliteDatabase(path, (*MIGRATIONS, *steps)), patience=60)
tell("ready")
sys.stdin.readline()
ledger.open_run(run(str(os.getpid())))
ledger.close()
"""
    processes = [child(code) for _ in range(4)]
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    for process in processes:
        process.communicate(timeout=90)
        assert process.returncode == 0
    assert asked(path, "SELECT count(*) FROM runs") == [(4,)]
    assert asked(path, "PRAGMA user_version") == [(len(MIGRATIONS) + 20,)]


def test_a_step_that_another_process_has_just_taken_is_not_taken_again(
    path: Path, run_record: Runs, call_record: Calls
) -> None:
    class Overtaken(tuple[Migration, ...]):
        """Steps of which another process takes one between the look at the version and the step."""

        def __len__(self) -> int:
            if asked(path, "PRAGMA user_version") == [(1,)]:
                other = Ledger(SqliteDatabase(path, (*MIGRATIONS, SECOND)))
                other.intend(call_record(2))
                other.close()
            return super().__len__()

    filled(path, run_record(), call_record(1))
    ledger = Ledger(SqliteDatabase(path, Overtaken((*MIGRATIONS, SECOND, THIRD))))
    ledger.intend(call_record(3))
    ledger.close()
    assert asked(path, "PRAGMA user_version") == [(3,)]
    assert asked(path, "SELECT count(*) FROM calls") == [(3,)]


def test_the_present_schema_is_made_of_steps_that_are_released(path: Path, run_record: Runs) -> None:
    """A change of a released step would leave old files behind: add a step and its number here instead."""
    ledger = Ledger(path)
    ledger.open_run(run_record())
    ledger.close()
    assert asked(path, "PRAGMA user_version") == [(len(MIGRATIONS),)]
    tables = asked(path, "SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")
    assert [name for (name,) in tables] == [
        "calls", "findings", "holds", "inputs", "pictures", "runs", "stops", "turns", "verdicts",
    ]  # fmt: skip
