"""Whatever happens to the database, durable operations say so and nothing acknowledged is lost."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Callable

import pytest

from guardrail.errors import LedgerError
from guardrail.ledger.ledger import Ledger
from guardrail.ledger.records import CallRecord, OutcomeRecord, RunRecord, VerdictRecord
from support.ledgers import Watched

Runs = Callable[..., RunRecord]
Calls = Callable[..., CallRecord]
Outcomes = Callable[..., OutcomeRecord]
Children = Callable[[str], subprocess.Popen[str]]


def numbers(ledger: Ledger, run: str = "r1") -> list[int]:
    found = ledger.load_run(run)
    return [] if found is None else [recorded.call.number for recorded in found.calls]


class TestALock:
    def test_of_another_process_is_waited_for(
        self, child: Children, place: str, run_record: Runs, call_record: Calls
    ) -> None:
        ledger = Ledger(place, patience=60)
        ledger.open_run(run_record())
        holder = child(HOLDER)
        assert holder.stdout is not None
        assert holder.stdin is not None
        assert holder.stdout.readline() == "held\n"
        waiting = threading.Thread(target=ledger.intend, args=(call_record(1),))
        waiting.start()
        assert waiting.is_alive()
        holder.stdin.write("go\n")
        holder.stdin.flush()
        waiting.join()
        assert numbers(ledger) == [1]
        ledger.close()

    def test_that_stays_is_an_error_and_what_waits_is_written_afterwards(
        self, child: Children, place: str, run_record: Runs, call_record: Calls, outcome_record: Outcomes
    ) -> None:
        ledger = Ledger(place, patience=4)
        ledger.open_run(run_record())
        holder = child(HOLDER)
        assert holder.stdout is not None
        holder.stdout.readline()
        for number in range(1, 201):
            ledger.record(outcome_record(number))
        with pytest.raises(
            LedgerError, match=r"(another process|something) keeps it locked .*; (end that process|see pg_locks)"
        ):
            ledger.intend(call_record(201))
        assert numbers(ledger) == []
        holder.communicate("go\n")
        ledger.intend(call_record(202))
        assert numbers(ledger) == [*range(1, 201), 202]
        ledger.close()

    def test_of_another_thread_is_waited_for_no_longer_than_patience(
        self, place: str, run_record: Runs, call_record: Calls
    ) -> None:
        entered, leave = threading.Event(), threading.Event()
        slow = Watched(place)

        def linger() -> None:
            entered.set()
            leave.wait()

        slow.before = linger
        ledger = Ledger(slow, patience=0.2)
        first = threading.Thread(target=ledger.open_run, args=(run_record(),))
        first.start()
        entered.wait()
        with pytest.raises(LedgerError, match=r"busy for 0\.2 s"):
            ledger.intend(call_record(1))
        leave.set()
        first.join()
        ledger.intend(call_record(1))
        ledger.close()


HOLDER = """
if "://" in place:
    import psycopg
    url, _, schema = place.partition("&schema=")
    connection = psycopg.connect(url, autocommit=True)
    connection.execute("BEGIN")
    connection.execute(f"LOCK TABLE {schema}.calls IN EXCLUSIVE MODE")
else:
    import sqlite3
    connection = sqlite3.connect(place, isolation_level=None)
    connection.execute("BEGIN EXCLUSIVE")
tell("held")
sys.stdin.readline()
connection.execute("COMMIT")
connection.close()
"""


class TestAWrongUse:
    def test_an_intent_of_a_run_that_is_not_open(self, ledger: Ledger, call_record: Calls) -> None:
        with pytest.raises(LedgerError, match=r"call 3 \(refund_order\) of the run r1 cannot .* open the run first"):
            ledger.intend(call_record(3))

    def test_two_intents_under_one_number(self, ledger: Ledger, run_record: Runs, call_record: Calls) -> None:
        ledger.open_run(run_record())
        ledger.intend(call_record(1))
        with pytest.raises(LedgerError, match="recorded already: two processes may have taken the run up"):
            ledger.intend(call_record(1))
        ledger.intend(call_record(2))
        assert numbers(ledger) == [1, 2]

    def test_a_verdict_of_a_run_that_is_not_there(
        self, ledger: Ledger, verdict_record: Callable[..., VerdictRecord]
    ) -> None:
        with pytest.raises(LedgerError, match="the verdict of the run r1 cannot be recorded"):
            ledger.close_run(verdict_record())

    def test_an_error_of_the_call_leaves_what_waits_to_be_written(
        self, ledger: Ledger, run_record: Runs, call_record: Calls, outcome_record: Outcomes
    ) -> None:
        ledger.open_run(run_record())
        ledger.record(outcome_record(1))
        with pytest.raises(LedgerError):
            ledger.intend(call_record(1, run="another"))
        assert numbers(ledger) == [1]
