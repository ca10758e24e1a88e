"""Processes that are killed, that fork, and that share a ledger."""

from __future__ import annotations

import os
import random
import subprocess
import threading
import time
from collections.abc import Callable
from functools import partial

import pytest

from guardrail.ledger.ledger import Ledger
from guardrail.ledger.records import CallRecord, OutcomeRecord, RunRecord, UserTurn
from guardrail.pictures import Picture
from support.ledgers import Watched

Runs = Callable[..., RunRecord]
Calls = Callable[..., CallRecord]
Outcomes = Callable[..., OutcomeRecord]
Children = Callable[[str], subprocess.Popen[str]]


def line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def test_a_killed_process_leaves_its_run_the_write_in_doubt_and_the_picture(
    ledger: Ledger, child: Children, picture: Picture, run_record: Runs
) -> None:
    process = child(
        f"""
ledger = Ledger(place)
ledger.open_run(run())
ledger.keep_picture("r1", {picture!r})
ledger.record(read(1))
ledger.intend(write(2))
tell("intended")
time.sleep(600)
"""
    )
    assert line(process) == "intended"
    alive = ledger.runs(open_only=True)[0]
    assert (alive.run.pid, alive.alive, alive.in_doubt) == (process.pid, True, 1)
    process.kill()
    process.wait()

    while ledger.runs(open_only=True)[0].alive:  # until a server has noticed
        time.sleep(0.01)
    summary = ledger.runs(open_only=True)[0]
    assert (summary.run.id, summary.alive, summary.in_doubt) == ("r1", False, 1)
    found = ledger.load_run("r1")
    assert found is not None
    assert [recorded.call.number for recorded in found.calls] == [1, 2]
    assert [call.number for call in found.in_doubt] == [2]
    assert ledger.load_pictures("r1") == (picture,)
    ledger.open_run(run_record(started=time.time()))
    assert ledger.runs()[0].run.pid == os.getpid()


def test_a_process_that_is_dead_and_not_yet_buried_is_not_alive(ledger: Ledger, child: Children) -> None:
    process = child("Ledger(place).open_run(run()); tell('open'); sys.stdin.readline(); os._exit(0)")
    assert line(process) == "open"
    assert process.stdin is not None
    process.stdin.write("go\n")
    process.stdin.flush()
    while ledger.runs()[0].alive:
        time.sleep(0.01)
    assert process.poll() is not None


@pytest.mark.parametrize("seed", range(5))
def test_every_intent_that_was_acknowledged_before_a_kill_is_found(ledger: Ledger, child: Children, seed: int) -> None:
    process = child(
        """
ledger = Ledger(place)
ledger.open_run(run())
for number in range(1, 1_000_000):
    if number % 3:
        ledger.record(read(number))
    else:
        ledger.intend(write(number))
        tell(number)
"""
    )
    line(process)
    time.sleep(random.Random(seed).uniform(0, 0.3))
    process.kill()
    out, _ = process.communicate()
    acknowledged = [int(number) for number in out.splitlines(keepends=True) if number.endswith("\n")]
    found = ledger.load_run("r1")
    assert found is not None
    last = max(acknowledged, default=3)
    recorded = [entry.call.number for entry in found.calls]
    assert recorded[:last] == list(range(1, last + 1))
    assert recorded == list(range(1, len(recorded) + 1))


def test_several_processes_write_one_ledger_at_once(ledger: Ledger, child: Children) -> None:
    code = """
ledger = Ledger(place, patience=60)
id = sys.stdin.readline().strip()
ledger.open_run(run(id))
for number in range(1, 101):
    if number % 5:
        ledger.record(read(number, id))
    else:
        ledger.intend(write(number, id))
ledger.close()
"""
    processes = [child(code) for _ in range(4)]
    for number, process in enumerate(processes):
        assert process.stdin is not None
        process.stdin.write(f"r{number}\n")
        process.stdin.flush()
    for process in processes:
        process.communicate(timeout=90)
        assert process.returncode == 0
    for number in range(4):
        found = ledger.load_run(f"r{number}")
        assert found is not None
        assert [recorded.call.number for recorded in found.calls] == list(range(1, 101))


def test_what_waits_is_written_when_the_process_ends(ledger: Ledger, child: Children) -> None:
    process = child("ledger = Ledger(place); ledger.open_run(run()); ledger.record(read(1))")
    process.communicate(timeout=60)
    found = ledger.load_run("r1")
    assert found is not None
    assert len(found.calls) == 1


class TestAFork:
    def test_parent_and_child_go_on_each_for_itself(
        self, ledger: Ledger, run_record: Runs, call_record: Calls, outcome_record: Outcomes
    ) -> None:
        ledger.open_run(run_record())
        ledger.record(outcome_record(1))
        assert in_fork(lambda: child_writes(ledger, call_record(100), outcome_record(101))) == 0
        ledger.record(outcome_record(2))
        ledger.intend(call_record(3))
        found = ledger.load_run("r1")
        assert found is not None
        assert [recorded.call.number for recorded in found.calls] == [1, 2, 3, 100, 101]
        assert found.lost == 0

    def test_the_parent_may_close_while_the_child_goes_on(
        self, place: str, run_record: Runs, call_record: Calls
    ) -> None:
        """With a connection that was open across the fork, the child's commits would go to a deleted log."""
        ledger = Ledger(place)
        ledger.open_run(run_record())
        ours, theirs = os.pipe()
        back, forth = os.pipe()

        def child_side() -> None:
            ledger.intend(call_record(1))
            os.write(theirs, b"1")
            os.read(back, 1)
            ledger.intend(call_record(2))

        process = os.fork()
        if process == 0:
            leave_after(child_side)
        os.read(ours, 1)
        ledger.intend(call_record(3))
        ledger.close()
        os.write(forth, b"1")
        assert os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) == 0
        for end in (ours, theirs, back, forth):
            os.close(end)
        again = Ledger(place)
        found = again.load_run("r1")
        assert found is not None
        assert [recorded.call.number for recorded in found.calls] == [1, 2, 3]
        again.close()

    def test_what_waits_in_the_parent_is_the_parents_to_write(
        self, place: str, run_record: Runs, outcome_record: Outcomes
    ) -> None:
        database = Watched(place)
        ledger = Ledger(database)
        ledger.open_run(run_record())
        database.away = True
        ledger.record(outcome_record(1))

        def child_side() -> None:
            database.away = False
            ledger.record(UserTurn("r1", 1001.0))
            ledger.close()

        assert in_fork(child_side) == 0
        other = Ledger(place)
        before = other.load_run("r1")
        assert before is not None
        assert (before.calls, before.turns) == ((), (1001.0,))
        database.away = False
        ledger.close()
        after = other.load_run("r1")
        assert after is not None
        assert len(after.calls) == 1
        other.close()

    def test_a_fork_in_the_middle_of_other_threads_work_does_not_hang(
        self, ledger: Ledger, run_record: Runs, call_record: Calls
    ) -> None:
        ledger.open_run(run_record())
        done = threading.Event()

        def work() -> None:
            for number in range(1, 100_000):
                if done.is_set():
                    return
                ledger.intend(call_record(number))

        worker = threading.Thread(target=work)
        worker.start()
        for number in range(8):
            assert in_fork(partial(ledger.intend, call_record(1_000_000 + number))) == 0
        done.set()
        worker.join()
        found = ledger.load_run("r1")
        assert found is not None
        assert sum(recorded.call.number >= 1_000_000 for recorded in found.calls) == 8

    def test_a_ledger_in_memory_is_copied(self, run_record: Runs, call_record: Calls) -> None:
        ledger = Ledger("memory")
        ledger.open_run(run_record())
        assert in_fork(lambda: ledger.intend(call_record(1))) == 0
        found = ledger.load_run("r1")
        assert found is not None
        assert found.calls == ()
        ledger.close()


def child_writes(ledger: Ledger, call: CallRecord, outcome: OutcomeRecord) -> None:
    ledger.intend(call)
    ledger.record(outcome)
    ledger.close()


def in_fork(work: Callable[[], None]) -> int:
    """Do some work in a forked child; its exit code."""
    process = os.fork()
    if process == 0:
        leave_after(work)
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])


def leave_after(work: Callable[[], None]) -> None:
    """Do some work and end this process at once, whatever comes of it: the child must not run pytest's end."""
    code = 1
    try:
        work()
        code = 0
    finally:
        os._exit(code)


def test_what_is_recorded_after_the_end_is_dropped_without_a_word_when_the_process_ends(child: Children) -> None:
    process = child(
        """
sys.stderr = sys.stdout
ledger = Ledger(place)
ledger.open_run(run())
ledger.record(read(1))
ledger.close()
ledger._idle = False  # a thread looks after the buffer, or did a moment ago
ledger.record(read(2))
tell('recorded')
"""
    )
    assert process.communicate(timeout=60)[0] == "recorded\n"
