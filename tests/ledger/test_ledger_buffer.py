"""Entries wait, are written in groups, and are never in the way."""

from __future__ import annotations

import threading
import time
import tracemalloc
from collections.abc import Callable

import pytest

from guardrail.errors import LedgerError
from guardrail.ledger.ledger import GROUP, MOST, Ledger
from guardrail.ledger.records import CallRecord, OutcomeRecord, RunRecord, UserTurn, VerdictRecord
from guardrail.pictures import Picture
from support.ledgers import Watched

Runs = Callable[..., RunRecord]
Calls = Callable[..., CallRecord]
Outcomes = Callable[..., OutcomeRecord]


def until(condition: Callable[[], bool]) -> None:
    """Wait for something that must come; the test's own time limit says when it does not."""
    while not condition():
        time.sleep(0.01)


def written(place: str, run: str = "r1") -> int:
    """How many calls of a run another reader finds."""
    other = Ledger(place)
    found = other.load_run(run)
    other.close()
    return 0 if found is None else len(found.calls)


def caretakers() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "guardrail-ledger"]


@pytest.fixture
def no_hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    """The thread that looks after the buffer waits until it is told that the ledger closes."""
    monkeypatch.setattr("guardrail.ledger.ledger.DELAY", 7200)


@pytest.mark.usefixtures("no_hurry")
def test_a_full_group_is_written_at_once(place: str, run_record: Runs, outcome_record: Outcomes) -> None:
    database = Watched(place)
    ledger = Ledger(database)
    ledger.open_run(run_record())
    for number in range(1, GROUP + 1):
        ledger.record(outcome_record(number))
    until(lambda: written(place) == GROUP)
    assert database.purposes == ["durable", "group"]
    ledger.close()


@pytest.mark.parametrize("place", ["postgres"], indirect=True)
def test_recording_does_not_wait_for_a_server(place: str, run_record: Runs, outcome_record: Outcomes) -> None:
    database = Watched(place)
    ledger = Ledger(database)
    ledger.open_run(run_record())
    gate = threading.Event()
    database.before = gate.wait
    for number in range(1, 3 * GROUP):
        ledger.record(outcome_record(number))
    gate.set()
    ledger.close()
    assert written(place) == 3 * GROUP - 1


def test_a_few_entries_are_written_soon_and_then_nothing_runs(
    ledger: Ledger, place: str, run_record: Runs, outcome_record: Outcomes
) -> None:
    ledger.open_run(run_record())
    assert caretakers() == []
    for round_ in range(2):
        ledger.record(outcome_record(round_ + 1))
        until(lambda: caretakers() == [])
        assert written(place) == round_ + 1


@pytest.mark.usefixtures("no_hurry")
def test_a_durable_operation_takes_along_what_waits(
    place: str, run_record: Runs, call_record: Calls, outcome_record: Outcomes
) -> None:
    database = Watched(place)
    ledger = Ledger(database)
    ledger.open_run(run_record())
    ledger.record(outcome_record(1))
    ledger.record(outcome_record(2))
    ledger.intend(call_record(3))
    assert database.purposes == ["durable", "durable"]
    assert written(place) == 3
    ledger.close()


def test_recording_does_not_wait_for_a_commit_that_takes_long(
    place: str, run_record: Runs, call_record: Calls, outcome_record: Outcomes
) -> None:
    database = Watched(place)
    ledger = Ledger(database)
    ledger.open_run(run_record())
    gate = threading.Event()
    database.before = gate.wait
    slow = threading.Thread(target=ledger.intend, args=(call_record(1),))
    slow.start()
    until(lambda: len(database.purposes) == 2)
    for number in range(2, 3 * GROUP):
        ledger.record(outcome_record(number))
    assert slow.is_alive()
    gate.set()
    slow.join()
    ledger.close()
    assert written(place) == 3 * GROUP - 1


def test_closing_writes_what_waits(place: str, run_record: Runs, outcome_record: Outcomes) -> None:
    ledger = Ledger(place)
    ledger.open_run(run_record())
    ledger.record(outcome_record(1))
    ledger.close()
    assert written(place) == 1


def test_an_entry_that_cannot_be_kept_takes_no_other_with_it(
    ledger: Ledger, run_record: Runs, call_record: Calls, outcome_record: Outcomes
) -> None:
    ledger.open_run(run_record())
    ledger.record(outcome_record(1))
    ledger.record(outcome_record(2, run="a run that was never opened"))
    ledger.record(outcome_record(3)._replace(result={"not": "text"}))  # type: ignore[arg-type]
    ledger.record(UserTurn("r1", 1002.0))
    ledger.record(outcome_record(2**70))
    ledger.record(outcome_record(4))
    ledger.intend(call_record(5))
    found = ledger.load_run("r1")
    assert found is not None
    assert [recorded.call.number for recorded in found.calls] == [1, 4, 5]
    assert found.turns == (1002.0,)
    assert (found.lost, ledger.runs()[0].lost) == (2, 2)


def test_a_call_recorded_twice_is_kept_once(ledger: Ledger, run_record: Runs, outcome_record: Outcomes) -> None:
    ledger.open_run(run_record())
    ledger.record(outcome_record(1, outcome="empty"))
    ledger.record(outcome_record(1, outcome="error"))
    found = ledger.load_run("r1")
    assert found is not None
    assert [recorded.outcome.outcome for recorded in found.calls if recorded.outcome] == ["empty"]


def test_while_nothing_can_be_written_memory_stays_bounded_and_the_gap_is_told(
    place: str, run_record: Runs, outcome_record: Outcomes, picture: Picture
) -> None:
    database = Watched(place)
    ledger = Ledger(database)
    ledger.open_run(run_record())
    database.away = True
    for number in range(1, MOST + 51):
        ledger.record(outcome_record(number))
    with pytest.raises(LedgerError, match="away"):
        ledger.keep_picture("r1", picture)
    database.away = False
    ledger.flush()
    found = ledger.load_run("r1")
    assert found is not None
    assert (len(found.calls), found.lost) == (MOST, 50)
    ledger.record(outcome_record(MOST + 51))
    ledger.flush()
    assert ledger.runs()[0].lost == 50
    ledger.close()


@pytest.mark.usefixtures("no_hurry")
def test_in_trouble_recording_does_not_try_again_each_time(
    place: str, run_record: Runs, outcome_record: Outcomes
) -> None:
    database = Watched(place)
    ledger = Ledger(database)
    ledger.open_run(run_record())
    database.away = True
    for number in range(1, 20 * GROUP):
        ledger.record(outcome_record(number))
    until(lambda: ledger.trouble is not None)
    assert set(database.purposes[1:]) == {"group"}
    assert len(database.purposes) < 10  # once, and now and then where the machine is slow
    database.away = False
    ledger.close()
    assert written(place) == 20 * GROUP - 1


def test_when_many_wait_recording_lets_them_be_written(place: str, run_record: Runs, outcome_record: Outcomes) -> None:
    """A caller that never rests would otherwise keep the thread that writes from getting its turn."""
    database = Watched(place)
    ledger = Ledger(database)
    ledger.open_run(run_record())
    ledger.record(outcome_record(1))
    gate = threading.Event()
    database.before = gate.wait
    until(lambda: len(database.purposes) == 2)  # the thread is at it, and does not get on
    threading.Timer(0.05, gate.set).start()
    for number in range(2, MOST + 501):
        ledger.record(outcome_record(number))
    ledger.close()
    assert written(place) == MOST + 500


def test_a_run_of_ten_thousand_calls_needs_no_memory_for_them(
    ledger: Ledger, run_record: Runs, outcome_record: Outcomes
) -> None:
    ledger.open_run(run_record())
    for number in range(1, 1001):
        ledger.record(outcome_record(number))
    ledger.flush()
    tracemalloc.start()
    for number in range(1001, 10_001):
        ledger.record(outcome_record(number))
    _, highest = tracemalloc.get_traced_memory()
    ledger.flush()
    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert highest < 2_500_000
    assert kept < 250_000
    found = ledger.load_run("r1")
    assert found is not None
    assert len(found.calls) == 10_000


def test_many_threads_lose_nothing(
    ledger: Ledger,
    run_record: Runs,
    call_record: Calls,
    outcome_record: Outcomes,
    verdict_record: Callable[..., VerdictRecord],
) -> None:
    def work(run: str) -> None:
        ledger.open_run(run_record(run))
        for number in range(1, 301):
            if number % 10:
                ledger.record(outcome_record(number, run=run))
            else:
                ledger.intend(call_record(number, run=run))
                ledger.record(outcome_record(number, run=run, intended=True))
        ledger.close_run(verdict_record(run))

    runs = [f"r{number}" for number in range(6)]
    threads = [threading.Thread(target=work, args=(run,)) for run in runs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for run in runs:
        found = ledger.load_run(run)
        assert found is not None
        assert [recorded.call.number for recorded in found.calls] == list(range(1, 301))
        assert (found.unfinished, found.lost) == ((), 0)


@pytest.mark.parametrize("count", [1, 7, 8, 31, 32, 33, 63])
def test_groups_of_any_size_are_written_whole_and_in_order(
    ledger: Ledger, run_record: Runs, outcome_record: Outcomes, count: int
) -> None:
    ledger.open_run(run_record())
    for number in range(1, count + 1):
        ledger.record(outcome_record(number))
        if number % 5 == 0:
            ledger.record(UserTurn("r1", float(number)))
    found = ledger.load_run("r1")
    assert found is not None
    assert [recorded.call.number for recorded in found.calls] == list(range(1, count + 1))
    assert len(found.turns) == count // 5
