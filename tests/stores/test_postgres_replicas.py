"""A hot standby that is looked at in the primary's place: never behind it, or not at all."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Generator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from typing import Any

import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from guardrail import Configuration, Guard
from guardrail.stores.opening import open_replicated
from guardrail.stores.postgres.positions import ended
from guardrail.stores.store import Store
from support.ports import free_port
from support.postgres_looks import See, ask, execute, only, photo, shop, taken, why
from support.postgres_servers import Server, server, standby

COUNT = ask("SELECT count(*) FROM t")


@dataclass(frozen=True)
class Pair:
    """A primary and its standby."""

    primary: Server
    standby: Server

    @contextmanager
    def paused(self) -> Generator[psycopg.Connection[Any]]:
        """While the standby takes over nothing; its connection may let it go on."""
        with self.standby.connect() as there:
            there.execute("SELECT pg_wal_replay_pause()")
            while there.execute("SELECT pg_get_wal_replay_pause_state()").fetchone() != ("paused",):
                pass
            try:
                yield there
            finally:
                there.execute("SELECT pg_wal_replay_resume()")

    def store(self, timeout: float = 30) -> Store:
        """The standby in the primary's place."""
        return open_replicated("shop", self.primary.url, self.standby.url, timeout)


@pytest.fixture(scope="module")
def pair() -> Generator[Pair]:
    with server() as primary, standby(primary) as copy:
        yield Pair(primary, copy)


@pytest.fixture
def agent(pair: Pair) -> Generator[psycopg.Connection[Any]]:
    """A connection to the primary, with a new table."""
    with pair.primary.connect() as connection:
        execute(connection, "DROP TABLE IF EXISTS t; CREATE TABLE t (id int PRIMARY KEY); INSERT INTO t VALUES (1)")
        yield connection


@pytest.mark.parametrize("asynchronous", ["on", "off"])
def test_a_look_sees_what_was_committed_before_it(
    pair: Pair, agent: psycopg.Connection[Any], see: See, asynchronous: str
) -> None:
    execute(agent, f"SET synchronous_commit = {asynchronous}")
    with closing(pair.store()) as store:
        for n in range(2, 8):
            agent.execute("INSERT INTO t VALUES (%s)", [n])
            count, picture = see(store, [COUNT, photo()])
            assert only(count) == taken(picture).size == n


def test_a_replica_that_does_not_catch_up_answers_nothing(pair: Pair, agent: psycopg.Connection[Any], see: See) -> None:
    with closing(pair.store(timeout=0.5)) as store:
        with pair.paused():
            agent.execute("INSERT INTO t VALUES (2)")
            said = [why(answer) for answer in see(store, [COUNT, photo()])]
            assert said == ["its replica had not caught up with the primary after 0.5 s"] * 2
        assert only(*see(pair.store(), [COUNT])) == 2


def test_a_replica_that_catches_up_meanwhile_is_waited_for(
    pair: Pair, agent: psycopg.Connection[Any], see: See
) -> None:
    with closing(pair.store()) as store, pair.paused() as there:
        agent.execute("INSERT INTO t VALUES (2)")
        going_on = threading.Timer(0.2, lambda: there.execute("SELECT pg_wal_replay_resume()"))
        going_on.start()
        assert only(*see(store, [COUNT])) == 2
        going_on.join()


def test_waiting_for_a_replica_does_not_hold_the_loop_up(pair: Pair, agent: psycopg.Connection[Any]) -> None:
    async def look() -> int:
        ticks = 0
        with closing(pair.store()) as store, pair.paused() as there:
            agent.execute("INSERT INTO t VALUES (2)")
            waiting = asyncio.ensure_future(store.alook([COUNT]))
            while ticks < 20:
                await asyncio.sleep(0.005)
                ticks += 1
            assert not waiting.done()
            there.execute("SELECT pg_wal_replay_resume()")
            return int(str(only(*await waiting)))

    assert asyncio.run(look()) == 2


def test_a_look_is_answered_where_the_log_begins_a_new_file(
    pair: Pair, agent: psycopg.Connection[Any], see: See
) -> None:
    agent.execute("INSERT INTO t VALUES (2)")
    agent.execute("SELECT pg_switch_wal()")
    assert agent.execute("SELECT pg_current_wal_insert_lsn()::text LIKE '%000028'").fetchone() == (True,)
    with closing(pair.store()) as store:
        assert only(*see(store, [COUNT])) == 2


def test_what_a_read_has_left_unflushed_is_not_waited_for(pair: Pair, agent: psycopg.Connection[Any], see: See) -> None:
    execute(agent, "ALTER SYSTEM SET wal_writer_delay = '10s'")
    execute(agent, "SELECT pg_reload_conf()")
    try:
        with closing(pair.store(timeout=5)) as store:
            for n in range(2, 5):
                agent.execute("INSERT INTO t VALUES (%s)", [n])
                agent.execute("SELECT pg_logical_emit_message(false, 'as a read', 'that removes dead rows')")
                assert only(*see(store, [COUNT])) == n
    finally:
        execute(agent, "ALTER SYSTEM RESET wal_writer_delay")
        execute(agent, "SELECT pg_reload_conf()")


def test_a_transaction_that_goes_on_is_not_waited_for(pair: Pair, agent: psycopg.Connection[Any], see: See) -> None:
    with pair.primary.connect() as other, closing(pair.store()) as store:
        execute(other, "BEGIN; INSERT INTO t VALUES (100)")
        for n in range(2, 5):
            agent.execute("INSERT INTO t VALUES (%s)", [n])
            assert only(*see(store, [COUNT])) == n
        other.rollback()


@given(st.integers(0, 2**32 - 1), st.integers(0, 2**32 - 1))
def test_a_position_is_where_the_last_record_ended(high: int, low: int) -> None:
    position = f"{high:X}/{low:X}"
    offset = low % 8192
    assert ended(position) == (f"{high:X}/{low - offset:X}" if offset in (24, 40) else position)


def test_primary_and_replica_that_are_swapped_are_told(pair: Pair, agent: psycopg.Connection[Any], see: See) -> None:
    with closing(open_replicated("shop", pair.standby.url, pair.primary.url, 5)) as store:
        assert why(*see(store, [COUNT])) == "what is named as its primary is a replica: give the primary as `url`"
    with closing(open_replicated("shop", pair.primary.url, pair.primary.url, 5)) as store:
        assert why(*see(store, [COUNT])) == "what is named as its replica is none"


def test_a_primary_or_a_replica_that_is_away_is_told(pair: Pair, agent: psycopg.Connection[Any], see: See) -> None:
    away = f"postgresql://root:s3cret@127.0.0.1:{free_port()}/postgres"
    for urls in ((pair.primary.url, away), (away, pair.standby.url)):
        with closing(open_replicated("shop", *urls, 5)) as store:
            said = why(*see(store, [COUNT]))
        assert "it cannot be reached: " in said
        assert "s3cret" not in said


# Whole runs, and what `doctor` says.


def guard(pair: Pair, timeout: str) -> Guard:
    document: dict[str, object] = {
        "stores": {"shop": {"url": pair.primary.url, "replica": pair.standby.url, "timeout": timeout}},
        "tasks": {"add": {"watch": {"shop.t": {}}, "expect": [{"inserted": "shop.t", "values": {"id": 2}}]}},
        "ledger": "memory",
    }
    return Guard(Configuration.model_validate(document))


@pytest.mark.parametrize("added", [2, 3])
def test_a_run_is_judged_on_the_replica(pair: Pair, agent: psycopg.Connection[Any], added: int) -> None:
    with guard(pair, "30s") as guarded:
        with guarded.run("add") as run:
            agent.execute("INSERT INTO t VALUES (%s)", [added])
        assert run.verdict is not None
        assert run.verdict.kind == ("verified" if added == 2 else "silent_failure")


def test_a_run_is_unverified_while_the_replica_is_behind(pair: Pair, agent: psycopg.Connection[Any]) -> None:
    with guard(pair, "500ms") as guarded, ExitStack() as at_the_end:
        with guarded.run("add") as run:
            at_the_end.enter_context(pair.paused())
            agent.execute("INSERT INTO t VALUES (2)")
        assert run.verdict is not None
    assert run.verdict.kind == "unverified"
    assert "its replica had not caught up with the primary after 0.5 s" in str(run.verdict.findings[0])


async def test_an_asynchronous_run_waits_for_the_replica(pair: Pair, agent: psycopg.Connection[Any]) -> None:
    with guard(pair, "30s") as guarded, pair.standby.connect() as there:
        async with guarded.run("add") as run:
            there.execute("SELECT pg_wal_replay_pause()")
            agent.execute("INSERT INTO t VALUES (2)")
            asyncio.get_running_loop().call_later(0.2, lambda: there.execute("SELECT pg_wal_replay_resume()"))
        assert run.verdict is not None
        assert run.verdict.kind == "verified"


def test_doctor_tells_how_far_behind_a_replica_is(pair: Pair, agent: psycopg.Connection[Any]) -> None:
    with closing(pair.store()) as store:
        notes = [remark.text for remark in store.examine() if remark.level == "note"]
        assert len(notes) == 1
        assert notes[0].startswith("its replica caught up with the primary in ")
    with closing(pair.store(timeout=0.5)) as store, pair.paused():
        agent.execute("INSERT INTO t VALUES (2)")
        errors = [remark.text for remark in store.examine() if remark.level == "error"]
        assert len(errors) == 1
        assert "had not caught up with the primary" in errors[0]


def test_doctor_warns_of_a_replica_that_is_named_as_the_store(
    pair: Pair, agent: psycopg.Connection[Any], see: See
) -> None:
    with closing(shop(pair.standby.url)) as store:
        text = "it is a replica, which may lag behind: name the primary as `url` and this as `replica`"
        assert text in [remark.text for remark in store.examine()]
