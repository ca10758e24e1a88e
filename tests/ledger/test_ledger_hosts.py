"""Several hosts share one ledger: each knows whose process still lives, and one that has lost its run cannot go on."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from pathlib import Path

import psycopg
import pytest

from guardrail.errors import LedgerError
from guardrail.ledger.ledger import Ledger
from guardrail.ledger.processes import this_host
from guardrail.ledger.records import CallRecord, OutcomeRecord, RunRecord, VerdictRecord
from guardrail.ledger.transactions import RunTaken
from support.ledgers import connected, in_schema, sessions_of
from support.pooling import pooler

Runs = Callable[..., RunRecord]
Calls = Callable[..., CallRecord]
Outcomes = Callable[..., OutcomeRecord]
Verdicts = Callable[..., VerdictRecord]
Children = Callable[[str], subprocess.Popen[str]]


@pytest.fixture
def place(postgres_url: str) -> str:
    return in_schema(postgres_url)


@pytest.fixture
def server(place: str) -> Iterator[psycopg.Connection]:
    """Somebody else who is connected, and may do everything."""
    with closing(connected(place)) as connection:
        yield connection


AGENT = """
import dataclasses, signal, subprocess
from guardrail.errors import LedgerError
from guardrail.ledger.records import VerdictRecord

host = {host!r}
ledger = Ledger(place, patience=60)
ledger.open_run(dataclasses.replace(run(), host=host))
tell("open")
number = 0
for line in sys.stdin:
    number += 1
    try:
        match line.split():
            case ["write"]:
                ledger.intend(write(number))
            case ["close"]:
                ledger.close_run(VerdictRecord("r1", "verified", "", 0, None, 1, time.time()))
            case ["fork"]:
                other = os.fork()
                if other == 0:
                    os.dup2(os.open(os.devnull, os.O_RDWR), 1)
                    signal.pause()
                tell(other)
                continue
            case ["start"]:
                other = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], stdout=subprocess.DEVNULL)
                tell(other.pid)
                continue
        tell("done")
    except LedgerError as error:
        tell(error)
"""


class Agent:
    """A process with the run r1 open, which says that it is on some host."""

    def __init__(self, child: Children, host: str) -> None:
        self.process = child(AGENT.format(host=host))
        assert self._said() == "open"

    def __call__(self, word: str) -> str:
        """Do something; what came of it."""
        assert self.process.stdin is not None
        self.process.stdin.write(f"{word}\n")
        self.process.stdin.flush()
        return self._said()

    def _said(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()


@pytest.fixture
def agent(child: Children) -> Agent:
    return Agent(child, "another-host")


def until_gone(ledger: Ledger) -> None:
    """Wait until the server has noticed that the process of the run r1 is no more; the test's time limit says if not."""
    while ledger.runs()[0].alive:
        time.sleep(0.01)
    assert ledger.runs()[0].alive is False


def lose(server: psycopg.Connection, agent: Agent, place: str, ledger: Ledger) -> None:
    """End the agent's session, and no other."""
    ledger.close()
    (session,) = sessions_of(place)
    server.execute("SELECT pg_terminate_backend(%s, 60000)", (session,))
    assert agent.process.poll() is None


class TestAProcessOnAnotherHost:
    def test_has_its_run_as_long_as_it_is_connected(self, ledger: Ledger, agent: Agent, run_record: Runs) -> None:
        (summary,) = ledger.runs(open_only=True)
        assert (summary.alive, summary.run.host) == (True, "another-host")
        with pytest.raises(RunTaken, match=f"r1 is open in process {agent.process.pid} on another-host: end it there"):
            ledger.open_run(run_record())
        with pytest.raises(LedgerError, match=f"r1 is open in process {agent.process.pid} on another-host: end it"):
            ledger.delete("r1")
        assert ledger.delete(older_than=-100) == 0
        assert agent("write") == "done"

    def test_that_is_killed_leaves_its_run_to_others(self, ledger: Ledger, agent: Agent, run_record: Runs) -> None:
        assert agent("write") == "done"
        agent.process.kill()
        until_gone(ledger)
        ledger.open_run(run_record(started=time.time()))
        found = ledger.load_run("r1")
        assert found is not None
        assert (found.run.pid, found.run.host, found.alive) == (os.getpid(), this_host(), True)
        assert [call.number for call in found.in_doubt] == [1]

    def test_that_only_lost_its_connection_cannot_go_on_once_another_has_its_run(
        self, ledger: Ledger, agent: Agent, place: str, server: psycopg.Connection, run_record: Runs, call_record: Calls
    ) -> None:
        assert agent("write") == "done"
        lose(server, agent, place, ledger)
        with closing(Ledger(place)) as mine:
            mine.open_run(run_record(started=time.time()))
            assert f"because process {os.getpid()} on {this_host()} has taken its run up" in agent("write")
            assert "the verdict of the run r1 cannot be recorded, because process" in agent("close")
            mine.intend(call_record(2))
            found = mine.load_run("r1")
            assert found is not None
            assert (found.ended, found.verdict) == (None, None)
            assert [recorded.call.number for recorded in found.calls] == [1, 2]

    def test_that_only_lost_its_connection_goes_on_if_nobody_took_its_run(
        self, ledger: Ledger, agent: Agent, place: str, server: psycopg.Connection
    ) -> None:
        lose(server, agent, place, ledger)
        with closing(Ledger(place)) as mine:
            assert mine.runs()[0].alive is False
            assert agent("write") == "done"
            assert mine.runs()[0].alive is True
            assert agent("close") == "done"

    @pytest.mark.parametrize("how", ["fork", "start"])
    def test_that_has_children_is_seen_all_the_time_and_not_in_their_stead(
        self, ledger: Ledger, agent: Agent, place: str, server: psycopg.Connection, how: str
    ) -> None:
        assert ledger.runs()[0].alive is True
        before = sessions_of(place)
        other = int(agent(how))
        try:
            assert sessions_of(place) == before
            assert ledger.runs()[0].alive is True
            agent.process.kill()
            until_gone(ledger)
            os.kill(other, 0)
        finally:
            os.kill(other, signal.SIGKILL)


class TestAProcessOnThisHost:
    def test_that_only_lost_its_connection_still_has_its_run(
        self, ledger: Ledger, child: Children, place: str, server: psycopg.Connection, run_record: Runs
    ) -> None:
        agent = Agent(child, this_host())
        lose(server, agent, place, ledger)
        with closing(Ledger(place)) as mine:
            assert mine.runs()[0].alive is True
            with pytest.raises(RunTaken):
                mine.open_run(run_record())
            agent.process.kill()
            agent.process.wait()
            assert mine.runs()[0].alive is False
            mine.open_run(run_record())

    def test_may_take_its_own_run_up_in_another_ledger(self, place: str, run_record: Runs, call_record: Calls) -> None:
        with closing(Ledger(place)) as first, closing(Ledger(place)) as second:
            first.open_run(run_record(started=1.0))
            second.open_run(run_record(started=2.0))
            second.intend(call_record(1))
            with pytest.raises(LedgerError, match="has taken its run up"):
                first.intend(call_record(2))

    def test_with_the_number_of_one_that_is_gone_may_take_its_run_up(
        self, ledger: Ledger, server: psycopg.Connection, run_record: Runs
    ) -> None:
        """As in a container that is started again, where the first process always has the same number."""
        ledger.open_run(run_record(started=time.time()))
        server.execute("UPDATE runs SET presence = presence + 1")  # another process that had our number
        assert ledger.runs()[0].alive is True
        ledger.open_run(run_record(started=time.time()))

    def test_of_a_host_with_the_same_name_is_another(
        self, ledger: Ledger, agent: Agent, server: psycopg.Connection, run_record: Runs
    ) -> None:
        server.execute("UPDATE runs SET pid = %s, host = %s", (os.getpid(), this_host()))
        with pytest.raises(RunTaken):
            ledger.open_run(run_record(started=time.time()))


class TestProcessesThatComeAtOnce:
    @pytest.mark.parametrize("left", [True, False])
    def test_one_of_them_gets_the_run(
        self, ledger: Ledger, child: Children, place: str, run_record: Runs, left: bool
    ) -> None:
        """Whether it was left by one that is gone, or is new."""
        if left:
            process = child("Ledger(place).open_run(run()); os._exit(0)")
            process.communicate(timeout=60)
            until_gone(ledger)
        processes = [child(RACER) for _ in range(4)]
        for process in processes:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
        for process in processes:
            assert process.stdin is not None
            process.stdin.write("go\n")
            process.stdin.flush()
        said = sorted(line for process in processes if process.stdout for line in [process.stdout.readline().strip()])
        assert said == ["RunTaken", "RunTaken", "RunTaken", "mine"]
        assert ledger.runs()[0].run.pid in {process.pid for process in processes}


RACER = """
from guardrail.ledger.transactions import RunTaken
ledger = Ledger(place, patience=60)
ledger.runs()
tell("ready")
sys.stdin.readline()
try:
    ledger.open_run(run())
    tell("mine")
except RunTaken:
    tell("RunTaken")
sys.stdin.readline()
"""


class TestAPooler:
    @pytest.fixture
    def pooled(self, place: str, tmp_path: Path) -> Generator[str]:
        """The place of the ledger by way of a pooler that gives all who come the same session in turn."""
        base, _, rest = place.partition("&application_name=")
        with pooler(base, tmp_path) as url:
            yield f"{url}&application_name={rest}"

    def test_is_gone_through_by_several_ledgers_at_once(
        self, pooled: str, run_record: Runs, call_record: Calls, outcome_record: Outcomes, verdict_record: Verdicts
    ) -> None:
        with closing(Ledger(pooled)) as first, closing(Ledger(pooled)) as second:
            for ledger, run in ((first, "r1"), (second, "r2")):
                ledger.open_run(run_record(run))
            for number in range(1, 100):
                for ledger, run in ((first, "r1"), (second, "r2")):
                    if number % 9:
                        ledger.record(outcome_record(number, run=run))
                    else:
                        ledger.intend(call_record(number, run=run))
            first.record(outcome_record(2**70))
            first.close_run(verdict_record("r1"))
            assert first.delete("r1") == 1
            found = second.load_run("r2")
            assert found is not None
            assert [recorded.call.number for recorded in found.calls] == list(range(1, 100))

    def test_is_left_as_it_was_for_others(
        self, pooled: str, place: str, server: psycopg.Connection, run_record: Runs, call_record: Calls
    ) -> None:
        shown = ("search_path", "synchronous_commit", "tcp_keepalives_idle")
        with psycopg.connect(pooled.partition("&schema=")[0], autocommit=True) as other:

            def settings() -> list[object]:
                return [other.execute(f"SHOW {name}".encode()).fetchone() for name in shown]

            before = settings()
            with closing(Ledger(pooled)) as ledger:
                ledger.open_run(run_record())
                for number in range(1, 20):
                    ledger.intend(call_record(number))
                assert settings() == before
                assert other.execute("SELECT count(*) FROM pg_prepared_statements").fetchone() == (0,)
                session = other.execute("SELECT pg_backend_pid()").fetchone()
                assert session is not None
                held = server.execute("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = %s", session)
                assert held.fetchone() == (0,)

    def test_is_remarked_on_and_nobody_knows_who_lives_on_another_host(
        self, pooled: str, run_record: Runs, call_record: Calls
    ) -> None:
        with closing(Ledger(pooled)) as theirs, closing(Ledger(pooled)) as mine:
            theirs.open_run(run_record(host="another-host"))
            (remark,) = theirs.remarks()
            assert "is reached through a pooler" in remark
            assert mine.runs()[0].alive is None
            mine.open_run(run_record(started=time.time()))
            with pytest.raises(LedgerError, match="has taken its run up"):
                theirs.intend(call_record(1))

    def test_whose_session_is_ended_is_not_missed(
        self, pooled: str, place: str, server: psycopg.Connection, run_record: Runs, call_record: Calls
    ) -> None:
        with closing(Ledger(pooled)) as ledger:
            ledger.open_run(run_record())
            with psycopg.connect(pooled.partition("&schema=")[0], autocommit=True) as other:
                session = other.execute("SELECT pg_backend_pid()").fetchone()
            server.execute("SELECT pg_terminate_backend(%s, 60000)", session)
            ledger.intend(call_record(1))
            found = ledger.load_run("r1")
            assert found is not None
            assert [recorded.call.number for recorded in found.calls] == [1]
