"""What is recorded of a run is read back, and nothing else."""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from guardrail.errors import LedgerError
from guardrail.ledger.ledger import Ledger
from guardrail.ledger.processes import this_host
from guardrail.ledger.records import (
    BoundInput,
    CallRecord,
    FindingRecord,
    HoldRecord,
    HoldResolved,
    OutcomeRecord,
    RecordedCall,
    RecordedHold,
    RunRecord,
    StopRecord,
    UserTurn,
    VerdictRecord,
)
from guardrail.ledger.transactions import RunTaken
from guardrail.pictures import Picture
from support.ledgers import in_schema

Runs = Callable[..., RunRecord]
Calls = Callable[..., CallRecord]
Outcomes = Callable[..., OutcomeRecord]
Verdicts = Callable[..., VerdictRecord]

HOLD = HoldRecord("r1", 2, 2, "lookup_order", "empty", "no order 71", '{"order_id": 71}', '{"effect": "read"}')
FINDING = FindingRecord(
    "wrong_value", "shop.orders", "status is open, not refunded", '{"id": 17}', "status", '"refunded"', '"open"'
)
WARNING = FindingRecord("unrequested_change", "shop.audit", "a row more", warning=True)


@pytest.fixture(params=["file", "memory", "server"])
def either(request: pytest.FixtureRequest, path: Path) -> Iterator[Ledger]:
    kind: str = request.param
    if kind == "server":
        ledger = Ledger(in_schema(request.getfixturevalue("postgres_url")))
    else:
        ledger = Ledger(path if kind == "file" else kind)
    yield ledger
    ledger.close()


asks_the_host = pytest.mark.parametrize("either", ["file", "memory"], indirect=True)
"""For tests in which a process number stands for a process; a server knows of each who is connected."""


def test_everything_recorded_of_a_run_is_read_back(
    either: Ledger, run_record: Runs, call_record: Calls, outcome_record: Outcomes
) -> None:
    run = run_record(pid=2**22 + 5)
    either.open_run(run)
    read = outcome_record(1)
    either.record(read)
    either.record(outcome_record(2, outcome="empty"))
    either.record(HOLD)
    either.record(BoundInput("r1", "customer_id", '{"customer_id": 4}'))
    either.record(UserTurn("r1", 1003.5))
    either.record(HoldResolved("r1", 2, "user", 1003.5))
    either.intend(call_record(3))
    written = outcome_record(3, intended=True)
    either.record(written)
    either.record(StopRecord("r1", "rejected", 3, "refund_order", "not today", 1004.0))
    verdict = VerdictRecord("r1", "stopped", "why", 1, "settled", 3, 1005.0, (FINDING, WARNING))
    either.close_run(verdict)

    found = either.load_run("r1")
    assert found is not None
    assert found.run == run
    assert (found.ended, found.alive, found.lost) == (1005.0, None, 0)
    assert read.call is not None
    assert found.calls[0] == RecordedCall(read.call, read._replace(call=None))
    assert found.calls[2] == RecordedCall(call_record(3), written)
    assert found.holds == (RecordedHold(HOLD, HoldResolved("r1", 2, "user", 1003.5)),)
    assert found.inputs == {"customer_id": '{"customer_id": 4}'}
    assert found.turns == (1003.5,)
    assert found.stop == StopRecord("r1", "rejected", 3, "refund_order", "not today", 1004.0)
    assert found.verdict == verdict


def test_a_run_that_was_never_opened_is_not_found(either: Ledger) -> None:
    assert either.load_run("r1") is None
    assert either.runs() == ()
    assert either.load_pictures("r1") == ()
    assert either.delete("r1") == 0


def test_an_intent_without_an_outcome_is_unfinished_and_in_doubt(
    either: Ledger, run_record: Runs, call_record: Calls
) -> None:
    either.open_run(run_record())
    either.intend(call_record(1))
    found = either.load_run("r1")
    assert found is not None
    assert found.unfinished == found.in_doubt == (call_record(1),)


def test_a_write_in_doubt_is_so_until_its_hold_is_resolved(
    either: Ledger, run_record: Runs, call_record: Calls, outcome_record: Outcomes
) -> None:
    either.open_run(run_record())
    either.intend(call_record(1))
    either.record(outcome_record(1, outcome="in_doubt", intended=True))
    either.record(HoldRecord("r1", 1, 1, "refund_order", "in_doubt", "", "{}"))
    doubted = either.load_run("r1")
    assert doubted is not None
    assert doubted.unfinished == ()
    assert doubted.in_doubt == (call_record(1),)
    assert [hold.call for hold in doubted.open_holds] == [1]
    assert (either.runs()[0].in_doubt, either.runs()[0].open_holds) == (1, 1)

    either.record(HoldResolved("r1", 1, "look", 1003.0))
    resolved = either.load_run("r1")
    assert resolved is not None
    assert resolved.in_doubt == ()
    assert resolved.open_holds == ()
    assert (either.runs()[0].in_doubt, either.runs()[0].open_holds) == (0, 0)


def test_a_hold_recorded_again_replaces_the_earlier_one(either: Ledger, run_record: Runs) -> None:
    either.open_run(run_record())
    either.record(HOLD)
    later = HoldRecord("r1", 2, 2, "lookup_order", "empty", "no order 72", '{"order_id": 72}', '{"retries": 1}')
    either.record(later)
    found = either.load_run("r1")
    assert found is not None
    assert found.open_holds == (later,)


def test_the_first_stop_counts_and_the_last_value_of_an_input(either: Ledger, run_record: Runs) -> None:
    either.open_run(run_record())
    for reason, value in (("error", "1"), ("conflict", "2")):
        either.record(StopRecord("r1", reason, 1, "refund_order", "", 1001.0))
        either.record(BoundInput("r1", "customer_id", value))
    found = either.load_run("r1")
    assert found is not None
    assert found.stop is not None
    assert (found.stop.reason, found.inputs) == ("error", {"customer_id": "2"})


@pytest.mark.parametrize(
    "text",
    ["", "naïve 🙂", "line\nline", "'; DROP TABLE calls; --", "x" * 100_000, "100 % $1 ? :name {}", b"\\".decode()],
)
def test_any_text_is_kept_as_it_is(either: Ledger, run_record: Runs, call_record: Calls, text: str) -> None:
    either.open_run(run_record())
    either.intend(call_record(1, args=text))
    found = either.load_run("r1")
    assert found is not None
    assert found.calls[0].call.args == text


@pytest.mark.parametrize(
    ("place", "text", "kept"),
    [
        ("sqlite", "a \ud83d b", "a \\ud83d b"),
        ("postgres", "a \ud83d b", "a \\ud83d b"),
        ("sqlite", "a \x00 b", "a \x00 b"),
        ("postgres", "a \x00 b", "a \\x00 b"),
    ],
    indirect=["place"],
)
def test_what_the_database_has_no_form_for_is_escaped_and_stops_nothing(
    ledger: Ledger, run_record: Runs, call_record: Calls, outcome_record: Outcomes, text: str, kept: str
) -> None:
    ledger.open_run(run_record(text))
    ledger.intend(call_record(1, run=text, args=text))
    ledger.record(outcome_record(1, run=text, intended=True)._replace(message=text))
    found = ledger.load_run(text)
    assert found is not None
    assert found.calls[0].call.args == kept
    assert found.calls[0].outcome is not None
    assert found.calls[0].outcome.message == kept
    assert found.lost == 0


class TestTakingARunUp:
    def test_it_keeps_its_beginning_and_gets_the_new_process(
        self, either: Ledger, run_record: Runs, call_record: Calls, verdict_record: Verdicts
    ) -> None:
        either.open_run(run_record(started=1000.0))
        either.intend(call_record(1))
        either.close_run(verdict_record(kind="agent_error"))
        either.open_run(run_record(started=2000.0))
        either.intend(call_record(2))
        found = either.load_run("r1")
        assert found is not None
        assert (found.run.started, found.run.pid, found.ended) == (1000.0, os.getpid(), None)
        assert [recorded.call.number for recorded in found.calls] == [1, 2]
        assert found.verdict == verdict_record(kind="agent_error")

        either.close_run(verdict_record(ended=2010.0, kind="silent_failure"))
        again = either.load_run("r1")
        assert again is not None
        assert again.verdict == verdict_record(ended=2010.0, kind="silent_failure")

    def test_a_new_verdict_brings_its_own_findings(self, either: Ledger, run_record: Runs) -> None:
        for findings in ((FINDING, WARNING), (WARNING,)):
            either.open_run(run_record())
            either.close_run(VerdictRecord("r1", "silent_failure", "", 0, None, 1, 1010.0, findings))
        found = either.load_run("r1")
        assert found is not None
        assert found.verdict is not None
        assert found.verdict.findings == (WARNING,)
        assert either.runs()[0].findings == 1

    @asks_the_host
    def test_it_is_refused_while_another_process_has_it(self, either: Ledger, run_record: Runs) -> None:
        either.open_run(run_record(pid=os.getppid(), started=time.time()))
        with pytest.raises(RunTaken, match=f"r1 is open in process {os.getppid()} on {this_host()}: end it there"):
            either.open_run(run_record(started=time.time()))
        assert either.runs()[0].run.pid == os.getppid()


@asks_the_host
@pytest.mark.parametrize(
    ("pid", "host", "started", "alive"),
    [
        ("own", "", "now", True),
        ("gone", "", "now", False),
        ("own", "another-host", "now", None),
        ("own", "", "before this process began", False),
    ],
)
def test_a_run_is_alive_when_the_process_that_opened_it_is(
    either: Ledger, run_record: Runs, pid: str, host: str, started: str, alive: bool | None
) -> None:
    began = time.time() if started == "now" else time.time() - 10 * 365 * 86400
    either.open_run(run_record(pid=os.getpid() if pid == "own" else 2**22 + 5, host=host, started=began))
    summary = either.runs()[0]
    assert (summary.open, summary.alive) == (True, alive)


def test_runs_are_listed_the_latest_first_and_as_asked_for(
    either: Ledger, run_record: Runs, verdict_record: Verdicts
) -> None:
    for number, task in enumerate(["refund", "close", None, "refund"]):
        either.open_run(run_record(f"r{number}", task=task, started=1000.0 + number))
    either.close_run(verdict_record("r0", kind="verified"))
    either.close_run(verdict_record("r1", kind="silent_failure"))

    def ids(**wanted: object) -> list[str]:
        return [summary.run.id for summary in either.runs(**wanted)]  # type: ignore[arg-type]

    assert ids() == ["r3", "r2", "r1", "r0"]
    assert ids(limit=2) == ["r3", "r2"]
    assert ids(open_only=True) == ["r3", "r2"]
    assert ids(task="refund") == ["r3", "r0"]
    assert ids(verdict="silent_failure") == ["r1"]
    assert ids(task="refund", verdict="verified", open_only=True) == []


def test_a_summary_counts(either: Ledger, run_record: Runs, call_record: Calls, outcome_record: Outcomes) -> None:
    either.open_run(run_record())
    either.record(outcome_record(1))
    either.intend(call_record(2))
    either.record(HOLD)
    either.record(StopRecord("r1", "in_doubt", 2, "refund_order", "", 1002.0))
    either.close_run(VerdictRecord("r1", "stopped", "", 1, None, 1, 1010.0, (FINDING,)))
    summary = either.runs()[0]
    assert (summary.calls, summary.in_doubt, summary.open_holds, summary.findings, summary.lost) == (2, 1, 1, 1, 0)
    assert (summary.stop, summary.verdict, summary.ended, summary.open) == ("in_doubt", "stopped", 1010.0, False)


class TestPictures:
    def test_they_are_read_back_as_they_were(self, either: Ledger, run_record: Runs, picture: Picture) -> None:
        either.open_run(run_record())
        either.keep_picture("r1", picture)
        assert either.load_pictures("r1") == (picture,)

    def test_a_large_one_is_read_back(self, either: Ledger, run_record: Runs) -> None:
        rows: dict[tuple[object, ...], tuple[object, ...]] = {(n,): (n, secrets.token_hex(200)) for n in range(20_000)}
        large = Picture("shop.orders", ("id",), ("id", "token"), {"id": "integer", "token": "text"}, rows)
        either.open_run(run_record())
        either.keep_picture("r1", large)
        assert either.load_pictures("r1") == (large,)

    def test_those_of_a_verified_run_are_dropped(
        self, either: Ledger, run_record: Runs, verdict_record: Verdicts, picture: Picture
    ) -> None:
        for id, kind in (("r1", "verified"), ("r2", "unverified")):
            either.open_run(run_record(id))
            either.keep_picture(id, picture)
            either.close_run(verdict_record(id, kind=kind))
        assert either.load_pictures("r1") == ()
        assert either.load_pictures("r2") == (picture,)

    def test_a_redacted_value_is_not_read_back(self, ledger: Ledger, run_record: Runs, picture: Picture) -> None:
        ledger.open_run(run_record())
        ledger.keep_picture("r1", picture, frozenset({"token"}))
        ledger.flush()
        (kept,) = ledger.load_pictures("r1")
        assert kept.rows[(17,)][:2] == (17, "paid")
        assert "s3cret" not in repr(kept)

    def test_a_value_that_cannot_be_kept_is_an_error_that_names_its_column(
        self, either: Ledger, run_record: Runs
    ) -> None:
        either.open_run(run_record())
        odd = Picture("shop.orders", ("id",), ("id", "thing"), {}, {(1,): (1, object())})
        with pytest.raises(LedgerError, match=r"shop\.orders .* column thing: a value of type object"):
            either.keep_picture("r1", odd)
        assert either.load_pictures("r1") == ()


class TestDeleting:
    def test_a_run_goes_with_all_that_belongs_to_it(
        self, either: Ledger, run_record: Runs, outcome_record: Outcomes, picture: Picture, verdict_record: Verdicts
    ) -> None:
        for id in ("r1", "r2"):
            either.open_run(run_record(id))
            either.record(outcome_record(1, run=id))
            either.record(UserTurn(id, 1001.0))
            either.keep_picture(id, picture)
            either.close_run(verdict_record(id, kind="unverified"))
        assert either.delete("r1") == 1
        assert either.load_run("r1") is None
        assert either.load_pictures("r1") == ()
        kept = either.load_run("r2")
        assert kept is not None
        assert len(kept.calls) == 1
        either.open_run(run_record("r1"))
        anew = either.load_run("r1")
        assert anew is not None
        assert (anew.calls, anew.turns, anew.verdict) == ((), (), None)

    @asks_the_host
    def test_old_runs_go_and_those_that_still_run_stay(
        self, either: Ledger, run_record: Runs, verdict_record: Verdicts
    ) -> None:
        now = time.time()
        for id, ended in (("old", now - 1000), ("young", now - 10)):
            either.open_run(run_record(id, started=ended - 5))
            either.close_run(verdict_record(id, ended=ended))
        either.open_run(run_record("cut off", started=now - 1000, pid=2**22 + 5))
        either.open_run(run_record("at work", started=now, pid=os.getppid()))
        assert either.delete(older_than=100) == 2
        assert {summary.run.id for summary in either.runs()} == {"young", "at work"}
        assert either.delete(older_than=-100) == 1
        assert {summary.run.id for summary in either.runs()} == {"at work"}

    def test_a_run_that_is_at_work_is_not_deleted(self, either: Ledger, run_record: Runs) -> None:
        either.open_run(run_record(started=time.time()))
        with pytest.raises(LedgerError, match=f"r1 is open in process {os.getpid()}"):
            either.delete("r1")
        assert either.load_run("r1") is not None

    @pytest.mark.parametrize("arguments", [{}, {"run": "r1", "older_than": 1.0}])
    def test_it_takes_a_run_or_an_age(self, either: Ledger, arguments: dict[str, object]) -> None:
        with pytest.raises(ValueError, match="a run or an age"):
            either.delete(**arguments)  # type: ignore[arg-type]


def test_a_closed_ledger_says_so(ledger: Ledger, run_record: Runs, outcome_record: Outcomes, picture: Picture) -> None:
    ledger.open_run(run_record())
    ledger.close()
    ledger.record(outcome_record(1))
    with pytest.raises(LedgerError, match="is closed"):
        ledger.open_run(run_record("r2"))
    with pytest.raises(LedgerError, match="is closed"):
        ledger.load_run("r1")
    with pytest.raises(LedgerError, match="is closed"):
        ledger.keep_picture("r1", picture)
    ledger.close()


def test_an_outcome_that_comes_with_its_call_completes_the_intent_of_that_call(
    either: Ledger, run_record: Runs, call_record: Calls, outcome_record: Outcomes
) -> None:
    """Whoever is cancelled while the intent is committed does not know that it was."""
    either.open_run(run_record())
    either.intend(call_record(1))
    either.record(outcome_record(1, intended=True)._replace(call=call_record(1)))
    found = either.load_run("r1")
    assert found is not None
    assert found.calls == (RecordedCall(call_record(1), outcome_record(1, intended=True)),)
    assert (found.unfinished, found.lost) == ((), 0)


def test_an_outcome_of_another_call_does_not_complete_an_intent(
    either: Ledger, run_record: Runs, call_record: Calls, outcome_record: Outcomes
) -> None:
    either.open_run(run_record())
    either.intend(call_record(1))
    either.record(outcome_record(1, intended=True)._replace(call=call_record(1)._replace(started=1001.5)))
    found = either.load_run("r1")
    assert found is not None
    assert found.calls == (RecordedCall(call_record(1), None),)
