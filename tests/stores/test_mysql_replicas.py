"""A MariaDB store that looks at a replica: never behind the primary, or it says so."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass

import pytest

from guardrail.pictures import Rows
from guardrail.stores.opening import open_replicated, open_store
from guardrail.stores.store import Store
from support.mariadb_servers import Server, running
from support.mysql_looks import ask, only, value, why
from support.servers import execute_on_mariadb

COUNT = "SELECT count(*) FROM orders"


@dataclass(frozen=True)
class Pair:
    primary: Server
    replica: Server

    def store(self, timeout: float) -> Store:
        return open_replicated("shop", self.primary.url, self.replica.url, timeout)


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Generator[Pair]:
    folder = tmp_path_factory.getbasetemp()
    with (
        running(folder, "--log-bin=log", "--server-id=1") as primary,
        running(folder, "--log-bin=log", "--server-id=2", "--read-only") as replica,
    ):
        execute_on_mariadb(primary.url, "RESET MASTER")
        execute_on_mariadb(
            replica.url,
            f"CHANGE MASTER TO MASTER_HOST = '127.0.0.1', MASTER_PORT = {primary.port}, MASTER_USER = 'root', "
            "MASTER_USE_GTID = slave_pos",
            "START SLAVE",
        )
        execute_on_mariadb(primary.url, "CREATE TABLE orders (id INT AUTO_INCREMENT PRIMARY KEY)")
        yield Pair(primary, replica)


def inserted(pair: Pair) -> int:
    """How many rows there are after one more."""
    execute_on_mariadb(pair.primary.url, "INSERT INTO orders VALUES ()")
    [[count]] = execute_on_mariadb(pair.primary.url, COUNT)
    return int(count)


def test_every_look_at_the_replica_has_what_was_written_before(pair: Pair) -> None:
    store = pair.store(30)
    for _ in range(20):
        assert inserted(pair) == value(store, COUNT)
    store.close()


async def test_the_same_without_blocking(pair: Pair) -> None:
    store = pair.store(30).for_run()
    for _ in range(5):
        count = inserted(pair)
        assert await store.alook([ask(COUNT)]) == [Rows(("COUNT(*)",), ((count,),))]
    store.close()


def test_a_replica_that_does_not_catch_up_is_no_witness(pair: Pair) -> None:
    late = pair.store(0.5)
    execute_on_mariadb(pair.replica.url, "STOP SLAVE SQL_THREAD")
    try:
        count = inserted(pair)
        [answer] = late.look([ask(COUNT)])
        assert why(answer).endswith("its replica had not caught up with the primary after 0.5 s")
        assert value(open_store("shop", pair.replica.url, 5), COUNT) == count - 1
    finally:
        execute_on_mariadb(pair.replica.url, "START SLAVE SQL_THREAD")
    patient = pair.store(30)
    assert only(*patient.look([ask(COUNT)])) == count
    late.close()
    patient.close()


def test_servers_that_are_not_what_they_are_named_are_told(pair: Pair) -> None:
    swapped = open_replicated("shop", pair.replica.url, pair.primary.url, 5)
    assert "what is named as its primary is a replica" in why(*swapped.look([ask(COUNT)]))
    same = open_replicated("shop", pair.primary.url, pair.primary.url, 5)
    assert "what is named as its replica is none" in why(*same.look([ask(COUNT)]))
    swapped.close()
    same.close()


def test_a_primary_without_a_log_is_told(pair: Pair, mariadb_server: Server) -> None:
    store = open_replicated("shop", mariadb_server.url, pair.replica.url, 5)
    told = why(*store.look([ask(COUNT)]))
    assert told.endswith("its primary keeps no log for replicas: set `log_bin`, and `gtid_mode = ON` for MySQL")
    store.close()


def test_doctor_tells_a_replica_from_its_primary(pair: Pair) -> None:
    store = pair.store(30)
    assert [remark.text for remark in store.examine() if remark.level == "note"]
    store.close()
    alone = open_store("shop", pair.replica.url, 5)
    told = [remark.text for remark in alone.examine()]
    assert any("it is a replica, 0 s behind its primary: name the primary as `url`" in text for text in told)
    execute_on_mariadb(pair.replica.url, "STOP SLAVE")
    try:
        told = [remark.text for remark in alone.examine()]
        assert any("it is a replica, and does not follow its primary now" in text for text in told)
    finally:
        execute_on_mariadb(pair.replica.url, "START SLAVE")
    alone.close()
