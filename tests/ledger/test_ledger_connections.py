"""A ledger on a server whose connection is lost, held up, or ended: it is found again, and nothing is lost or doubled."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from functools import partial

import psycopg
import pytest

from guardrail.errors import LedgerError
from guardrail.ledger.ledger import Ledger
from guardrail.ledger.records import CallRecord, OutcomeRecord, RunRecord, UserTurn, VerdictRecord
from support.ledgers import connected, in_schema, schema_of, sessions_of, wait_until_blocked
from support.servers import OwnPostgres, own_postgres
from support.wires import Wire, wire_to

Runs = Callable[..., RunRecord]
Calls = Callable[..., CallRecord]
Outcomes = Callable[..., OutcomeRecord]
Verdicts = Callable[..., VerdictRecord]


@pytest.fixture
def place(postgres_url: str) -> str:
    return in_schema(postgres_url)


@pytest.fixture
def server(place: str) -> Iterator[psycopg.Connection]:
    """Somebody else who is connected, and may do everything."""
    with closing(connected(place)) as connection:
        yield connection


@pytest.fixture
def wire(place: str) -> Generator[Wire]:
    with wire_to(place.partition("&schema=")[0]) as wire:
        yield wire


@pytest.fixture(params=[20])
def remote(request: pytest.FixtureRequest, wire: Wire, place: str) -> Iterator[Ledger]:
    """The ledger at the other end of the wire; the parameter is its patience."""
    ledger = Ledger(f"{wire.url}&schema={schema_of(place)}", patience=request.param)
    yield ledger
    wire.is_deaf = False
    wire.goes.set()
    ledger.close()


impatient = pytest.mark.parametrize("remote", [0.1], indirect=True)


def numbers(ledger: Ledger) -> list[int]:
    found = ledger.load_run("r1")
    assert found is not None
    assert found.lost == 0
    return [recorded.call.number for recorded in found.calls]


def turn(ledger: Ledger) -> None:
    ledger.record(UserTurn("r1", 1.0))
    ledger.flush()


def end(server: psycopg.Connection, process: int) -> None:
    """End a session from the server's side, and wait until it has ended."""
    server.execute("SELECT pg_terminate_backend(%s, 60000)", (process,))


class TestBetweenTransactions:
    @pytest.mark.parametrize("operation", ["open", "intend", "flush", "close", "look", "delete", "remarks"])
    def test_a_session_that_was_ended_is_begun_anew_without_a_word(
        self,
        ledger: Ledger,
        place: str,
        server: psycopg.Connection,
        run_record: Runs,
        call_record: Calls,
        verdict_record: Verdicts,
        operation: str,
    ) -> None:
        ledger.open_run(run_record("over", started=1.0))
        ledger.close_run(verdict_record("over", ended=2.0))
        ledger.open_run(run_record())
        operations: dict[str, Callable[[], object]] = {
            "open": lambda: ledger.open_run(run_record("r2")),
            "intend": lambda: ledger.intend(call_record(1)),
            "flush": partial(turn, ledger),
            "close": lambda: ledger.close_run(verdict_record()),
            "look": lambda: ledger.load_run("r1"),
            "delete": lambda: ledger.delete("over"),
            "remarks": ledger.remarks,
        }
        (before,) = sessions_of(place)
        end(server, before)
        operations[operation]()
        (after,) = sessions_of(place)
        assert before != after
        assert ledger.trouble is None

    def test_a_wire_that_was_cut_is_not_missed(
        self, remote: Ledger, wire: Wire, run_record: Runs, call_record: Calls
    ) -> None:
        remote.open_run(run_record())
        wire.cut()
        remote.intend(call_record(1))
        assert numbers(remote) == [1]


class TestWithinATransaction:
    def test_a_session_that_is_ended_before_the_commit_leaves_nothing_of_it_and_what_waits_is_written_later(
        self,
        ledger: Ledger,
        place: str,
        server: psycopg.Connection,
        run_record: Runs,
        call_record: Calls,
        outcome_record: Outcomes,
    ) -> None:
        ledger.open_run(run_record())
        (session,) = sessions_of(place)
        raised: list[LedgerError] = []

        def intend() -> None:
            with pytest.raises(LedgerError) as caught:
                ledger.intend(call_record(2))
            raised.append(caught.value)

        server.execute("BEGIN")
        server.execute(f"LOCK TABLE {schema_of(place)}.calls IN EXCLUSIVE MODE".encode())
        ledger.record(outcome_record(1))
        intending = threading.Thread(target=intend)
        intending.start()
        wait_until_blocked(place)
        with closing(connected(place)) as other:
            end(other, session)
        intending.join()
        server.execute("COMMIT")
        assert "did not say whether it keeps what was written last" in str(raised[0])
        ledger.intend(call_record(3))
        assert numbers(ledger) == [1, 3]

    def test_a_commit_whose_answer_is_lost_is_an_error_and_nothing_is_written_twice(
        self, remote: Ledger, wire: Wire, run_record: Runs, call_record: Calls, outcome_record: Outcomes
    ) -> None:
        """The intent is there, but as nobody knew it the write does not run; so its outcome is told with the call."""
        remote.open_run(run_record())
        remote.record(outcome_record(1))
        remote.record(UserTurn("r1", 1002.0))
        wire.is_deaf = True
        with pytest.raises(
            LedgerError, match=r"did not say whether it keeps what was written last, .*; so that does not"
        ):
            remote.intend(call_record(2))
        wire.is_deaf = False
        remote.record(outcome_record(2, outcome="error")._replace(call=call_record(2), executed=False))
        remote.intend(call_record(3))
        found = remote.load_run("r1")
        assert found is not None
        assert [recorded.call.number for recorded in found.calls] == [1, 2, 3]
        assert found.turns == (1002.0,)
        assert [call.number for call in found.unfinished] == [3]
        assert found.lost == 0

    @pytest.mark.parametrize("remote", [2], indirect=True)
    @pytest.mark.parametrize("operation", ["open", "intend", "flush", "close", "look"])
    def test_no_answer_to_anything_is_an_error_and_the_same_can_be_done_again(
        self, remote: Ledger, wire: Wire, run_record: Runs, call_record: Calls, verdict_record: Verdicts, operation: str
    ) -> None:
        remote.open_run(run_record())
        operations: dict[str, Callable[[], object]] = {
            "open": lambda: remote.open_run(run_record("r2")),
            "intend": lambda: remote.intend(call_record(1)),
            "flush": partial(turn, remote),
            "close": lambda: remote.close_run(verdict_record()),
            "look": lambda: remote.load_run("r1"),
        }
        wire.is_deaf = True
        with pytest.raises(LedgerError, match=r"cannot be used: it cannot be reached|did not say whether"):
            operations[operation]()
        wire.is_deaf = False
        if operation == "intend":
            with pytest.raises(LedgerError, match="is recorded already"):
                operations[operation]()
        else:
            operations[operation]()
        assert remote.load_run("r1") is not None


class TestAServerThatHangs:
    @impatient
    @pytest.mark.parametrize("operation", ["open", "intend", "look"])
    def test_is_waited_for_no_longer_than_patience(
        self, remote: Ledger, wire: Wire, run_record: Runs, call_record: Calls, operation: str
    ) -> None:
        remote.open_run(run_record())
        operations: dict[str, Callable[[], object]] = {
            "open": lambda: remote.open_run(run_record("r2")),
            "intend": lambda: remote.intend(call_record(1)),
            "look": lambda: remote.load_run("r1"),
        }
        wire.goes.clear()
        with pytest.raises(LedgerError, match=r"did not say|cannot be used"):
            operations[operation]()
        wire.goes.set()
        remote.intend(call_record(2))
        assert 2 in numbers(remote)

    def test_loses_nothing_that_is_recorded_meanwhile(
        self, remote: Ledger, wire: Wire, run_record: Runs, outcome_record: Outcomes
    ) -> None:
        remote.open_run(run_record())
        wire.goes.clear()
        for number in range(1, 201):
            remote.record(outcome_record(number))
        while remote.trouble is None:
            time.sleep(0.01)
        wire.goes.set()
        remote.flush()
        assert numbers(remote) == list(range(1, 201))
        assert remote.trouble is None


class TestAServerThatIsAway:
    @pytest.mark.parametrize("remote", [2], indirect=True)
    def test_is_an_error_and_what_waits_is_written_when_it_is_back(
        self, remote: Ledger, wire: Wire, run_record: Runs, call_record: Calls, outcome_record: Outcomes
    ) -> None:
        remote.open_run(run_record())
        wire.close()
        remote.record(outcome_record(1))
        with pytest.raises(LedgerError, match=r"cannot be used: it cannot be reached \(.*\); see that the server runs"):
            remote.intend(call_record(2))
        wire.reopen()
        remote.intend(call_record(3))
        assert numbers(remote) == [1, 3]

    def test_is_waited_for_as_long_as_patience_lasts(
        self, wire: Wire, place: str, run_record: Runs, call_record: Calls
    ) -> None:
        with closing(Ledger(f"{wire.url}&schema={schema_of(place)}", patience=60)) as ledger:
            ledger.open_run(run_record())
            wire.close()
            back = threading.Timer(0.3, wire.reopen)
            back.start()
            ledger.intend(call_record(1))
            back.join()
            assert numbers(ledger) == [1]


@pytest.fixture(scope="module")
def own() -> Generator[OwnPostgres]:
    with own_postgres() as server:
        yield server


class TestARestart:
    @pytest.mark.parametrize("how", ["fast", "immediate"])
    def test_of_the_server_loses_nothing_that_was_acknowledged(
        self, own: OwnPostgres, run_record: Runs, call_record: Calls, outcome_record: Outcomes, how: str
    ) -> None:
        """`immediate` is what a crash is like: nothing is written to the disk any more, not even what was committed."""
        run = f"r-{how}"
        with closing(
            Ledger(f"{own.url}&schema=restarted" if "?" in own.url else f"{own.url}?schema=restarted")
        ) as ledger:
            ledger.open_run(run_record(run))
            for number in range(1, 20):
                ledger.record(outcome_record(number, run=run))
            ledger.intend(call_record(20, run=run))
            own.stop(how)
            ledger.record(outcome_record(21, run=run))
            own.start()
            ledger.intend(call_record(22, run=run))
            found = ledger.load_run(run)
            assert found is not None
            assert [recorded.call.number for recorded in found.calls] == list(range(1, 23))
            assert found.lost == 0
