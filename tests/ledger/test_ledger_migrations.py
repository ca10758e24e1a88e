"""A ledger is brought to the present schema, or left as it was."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Sequence

import pytest

from guardrail.errors import LedgerError
from guardrail.ledger.database import Database
from guardrail.ledger.ledger import Ledger
from guardrail.ledger.migrations import MIGRATIONS, Migration
from guardrail.ledger.postgres.database import PostgresDatabase
from guardrail.ledger.records import CallRecord, RunRecord
from guardrail.ledger.sqlite import SqliteDatabase
from support.ledgers import asked

Runs = Callable[..., RunRecord]
Calls = Callable[..., CallRecord]

SECOND: Migration = (
    "ALTER TABLE calls ADD COLUMN cost DOUBLE PRECISION",
    "UPDATE calls SET cost = 0.5",
)
THIRD: Migration = ("CREATE TABLE notes (run TEXT)",)
BROKEN: Migration = ("CREATE TABLE halfway (x TEXT)", "ALTER TABLE nowhere ADD COLUMN x TEXT")

PRESENT = len(MIGRATIONS)


def database(place: str, *steps: Migration) -> Database:
    """A place's database with more steps than there are at present."""
    return of_schema(place, (*MIGRATIONS, *steps))


def of_schema(place: str, schema: tuple[Migration, ...]) -> Database:
    return PostgresDatabase(place, schema) if "://" in place else SqliteDatabase(place, schema)


def version(place: str) -> int:
    query = "SELECT version FROM ledger_version" if "://" in place else "PRAGMA user_version"
    ((found,),) = asked(place, query)
    assert isinstance(found, int)
    return found


def tables(place: str) -> list[object]:
    """The names of the ledger's tables, without the one that tells the version."""
    catalog = "SELECT tablename FROM pg_tables WHERE schemaname = current_schema() AND tablename <> 'ledger_version' ORDER BY 1"
    listed = "SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name"
    return [name for (name,) in asked(place, catalog if "://" in place else listed)]


def filled(place: str, run: RunRecord, call: CallRecord) -> None:
    """A ledger of the present version with a run in it."""
    ledger = Ledger(place)
    ledger.open_run(run)
    ledger.intend(call)
    ledger.close()


@pytest.mark.parametrize("steps", [(SECOND,), (SECOND, THIRD)])
def test_a_ledger_of_an_earlier_version_is_brought_forward_with_what_is_in_it(
    place: str, run_record: Runs, call_record: Calls, steps: Sequence[Migration]
) -> None:
    filled(place, run_record(), call_record(1))
    ledger = Ledger(database(place, *steps))
    ledger.open_run(run_record())
    ledger.intend(call_record(2))
    found = ledger.load_run("r1")
    assert found is not None
    assert [recorded.call.number for recorded in found.calls] == [1, 2]
    ledger.close()
    assert version(place) == PRESENT + len(steps)
    assert asked(place, "SELECT number, cost FROM calls ORDER BY number") == [(1, 0.5), (2, None)]


def test_a_new_ledger_gets_all_steps_at_once(place: str, run_record: Runs, call_record: Calls) -> None:
    ledger = Ledger(database(place, SECOND))
    ledger.open_run(run_record())
    ledger.intend(call_record(1))
    ledger.close()
    assert version(place) == PRESENT + 1


def test_a_step_that_fails_changes_nothing(place: str, run_record: Runs, call_record: Calls) -> None:
    filled(place, run_record(), call_record(1))
    broken = Ledger(database(place, SECOND, BROKEN))
    with pytest.raises(LedgerError, match=r'(no such table: nowhere|relation "nowhere" does not exist)\)'):
        broken.open_run(run_record())
    assert version(place) == PRESENT + 1
    assert "halfway" not in tables(place)
    mended = Ledger(database(place, SECOND, THIRD))
    mended.open_run(run_record())
    mended.intend(call_record(2))
    mended.close()
    broken.close()
    assert asked(place, "SELECT count(*) FROM calls") == [(2,)]


def test_processes_that_come_at_once_take_each_step_once(
    place: str, child: Callable[[str], subprocess.Popen[str]]
) -> None:
    kind = "postgres.database import PostgresDatabase" if "://" in place else "sqlite import SqliteDatabase"
    code = f"""
from guardrail.ledger.migrations import MIGRATIONS
from guardrail.ledger.{kind} as Database
steps = tuple((f"CREATE TABLE extra{{number}} (x TEXT)",) for number in range(20))
ledger = Ledger(Database(place, (*MIGRATIONS, *steps)), patience=60)
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
    assert asked(place, "SELECT count(*) FROM runs") == [(4,)]
    assert version(place) == PRESENT + 20


def test_a_step_that_another_process_has_just_taken_is_not_taken_again(
    place: str, run_record: Runs, call_record: Calls
) -> None:
    class Overtaken(tuple[Migration, ...]):
        """Steps of which another process takes one between the look at the version and the step."""

        def __len__(self) -> int:
            if version(place) == PRESENT:
                other = Ledger(database(place, SECOND))
                other.open_run(run_record("r2"))
                other.close()
            return super().__len__()

    filled(place, run_record(), call_record(1))
    ledger = Ledger(of_schema(place, Overtaken((*MIGRATIONS, SECOND, THIRD))))
    ledger.open_run(run_record("r3"))
    ledger.close()
    assert version(place) == PRESENT + 2
    assert asked(place, "SELECT count(*) FROM runs") == [(3,)]


def test_the_present_schema_is_made_of_steps_that_are_released(place: str, run_record: Runs) -> None:
    """A change of a released step would leave old ledgers behind: add a step and its number here instead."""
    ledger = Ledger(place)
    ledger.open_run(run_record())
    ledger.close()
    assert version(place) == PRESENT
    assert PRESENT == 2
    assert tables(place) == [
        "calls", "findings", "holds", "inputs", "pictures", "runs", "stops", "turns", "verdicts",
    ]  # fmt: skip
