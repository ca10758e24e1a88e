"""A replica that is looked at in the place of its primary: a real hot standby."""

from __future__ import annotations

import threading
from collections.abc import Generator
from contextlib import closing
from dataclasses import dataclass

import pytest

from guardrail import Configuration, Guard
from guardrail.errors import ConfigurationError
from guardrail.pictures import Answer, Unanswered
from guardrail.stores.opening import open_replicated, open_store
from guardrail.stores.postgres.positions import ended
from support.postgres_looks import See, ask, only, photo, taken
from support.postgres_servers import Server, server, standby, wait_until

COUNT = ask("SELECT count(*) FROM orders")


@dataclass(frozen=True, slots=True)
class Pair:
    """A primary and its standby."""

    primary: Server
    replica: Server

    def write(self, number: int) -> None:
        """Insert an order; its commit waits for no disk."""
        with self.primary.connect() as connection:
            connection.execute("SET synchronous_commit = off")
            connection.execute("INSERT INTO orders VALUES (%s, 'open')", (number,))

    def replay(self, on: bool) -> None:
        """Let the standby follow, or stand still."""
        with self.replica.connect() as connection:
            connection.execute("SELECT pg_wal_replay_resume()" if on else "SELECT pg_wal_replay_pause()")
            state = "not paused" if on else "paused"
            asked = "SELECT pg_get_wal_replay_pause_state()"
            wait_until(lambda: connection.execute(asked).fetchone() == (state,), f"the replay is not {state}")


@pytest.fixture(scope="module")
def servers() -> Generator[Pair]:
    with server({"wal_level": "replica", "max_wal_senders": "4"}) as primary:
        with primary.connect() as connection:
            connection.execute("CREATE TABLE orders (id int PRIMARY KEY, status text)")
        with standby(primary) as replica:
            yield Pair(primary, replica)


@pytest.fixture
def pair(servers: Pair) -> Generator[Pair]:
    with servers.primary.connect() as connection:
        connection.execute("TRUNCATE orders")
    yield servers
    servers.replay(True)


def late(answer: Answer) -> str:
    assert isinstance(answer, Unanswered), answer
    return answer.why


def test_a_look_at_the_replica_sees_all_that_was_committed_before(pair: Pair, see: See) -> None:
    with closing(open_replicated("shop", pair.primary.url, pair.replica.url, 20)) as store:
        for number in range(1, 30):
            pair.write(number)
            count, picture = see(store, [COUNT, photo("orders")])
            assert (only(count), taken(picture).size) == (number, number)


def test_a_replica_that_stands_still_cannot_be_judged_by(pair: Pair, see: See) -> None:
    with closing(open_replicated("shop", pair.primary.url, pair.replica.url, 0.5)) as store:
        see(store, [COUNT])
        pair.replay(False)
        pair.write(1)
        [answer] = see(store, [COUNT])
        assert "its replica had not caught up with the primary after 0.5 s" in late(answer)


def test_a_replica_that_catches_up_in_time_is_waited_for(pair: Pair, see: See) -> None:
    with closing(open_replicated("shop", pair.primary.url, pair.replica.url, 20)) as store:
        pair.replay(False)
        pair.write(1)
        resuming = threading.Timer(0.3, pair.replay, (True,))
        resuming.start()
        [answer] = see(store, [COUNT])
        assert only(answer) == 1
        resuming.join()


def test_a_primary_and_a_replica_that_are_swapped_are_told(pair: Pair, see: See) -> None:
    with closing(open_replicated("shop", pair.replica.url, pair.primary.url, 5)) as store:
        assert "is a replica: give the primary as `url`" in late(*see(store, [COUNT]))
    with closing(open_replicated("shop", pair.primary.url, pair.primary.url, 5)) as store:
        assert "what is named as its replica is none" in late(*see(store, [COUNT]))


def configured(pair: Pair, timeout: str) -> Configuration:
    return Configuration.model_validate(
        {
            "ledger": "memory",
            "stores": {"shop": {"url": pair.primary.url, "replica": pair.replica.url, "timeout": timeout}},
            "tools": {"order": {"effect": "write"}},
            "tasks": {
                "order": {"watch": {"shop.orders": {}}, "expect": [{"inserted": "shop.orders", "values": {"id": 1}}]}
            },
        }
    )


def test_a_run_is_judged_on_the_replica_or_not_at_all(pair: Pair) -> None:
    with Guard(configured(pair, "20s")) as guard:
        with guard.run("order") as run:
            run.call("order", {}, lambda: pair.write(1))
        assert run.verdict is not None
        assert run.verdict.kind == "verified"
    pair.write(2)
    with Guard(configured(pair, "500ms")) as guard:
        with guard.run("order") as run:
            pair.replay(False)
            run.call("order", {}, lambda: pair.write(3))
        assert run.verdict is not None
        assert run.verdict.kind == "unverified"
        assert {finding.kind for finding in run.verdict.findings} == {"check_error"}


def test_doctor_tells_whether_the_replica_keeps_up(pair: Pair) -> None:
    with closing(open_replicated("shop", pair.primary.url, pair.replica.url, 0.5)) as store:
        assert any("caught up with the primary in" in remark.text for remark in store.examine())
        pair.replay(False)
        pair.write(1)
        assert ("error", "shop") in {(remark.level, remark.place) for remark in store.examine()}
    with closing(open_store("shop", pair.replica.url, 5)) as store:
        assert any("it is a replica, which may lag behind" in remark.text for remark in store.examine())


@pytest.mark.parametrize(
    ("next_record", "end"),
    [
        ("0/16B3748", "0/16B3748"),
        ("0/16B2018", "0/16B2000"),
        ("3/28", "3/0"),
        ("3/18", "3/0"),
        ("A/FF000030", "A/FF000030"),
    ],
)
def test_on_a_new_page_the_last_record_ended_before_the_pages_header(next_record: str, end: str) -> None:
    assert ended(next_record) == end


@pytest.mark.parametrize(
    ("url", "replica", "why"),
    [
        ("sqlite:///shop.db", "sqlite:///copy.db", "is only for PostgreSQL and MariaDB"),
        ("postgresql://host/shop", "mysql://host/shop", "has another scheme than the store's `url`"),
    ],
)
def test_a_replica_of_another_kind_is_a_mistake(url: str, replica: str, why: str) -> None:
    with pytest.raises(ConfigurationError, match=why):
        Guard(Configuration.model_validate({"stores": {"shop": {"url": url, "replica": replica}}}))
