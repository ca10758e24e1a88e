"""Looks through PgBouncer in transaction mode: sessions are others' as well."""

from __future__ import annotations

import asyncio
import secrets
import threading
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from guardrail.stores.store import Store, tables_of
from support.pooling import pooler
from support.postgres_looks import See, ask, execute, make_url, only, photo, role, rows, shop, taken, unproved, why
from support.postgres_servers import server

Admin = psycopg.Connection[Any]

STATUS = ask("SELECT status FROM orders WHERE id = 1")
PREPARED = unproved("SELECT count(*) FROM pg_prepared_statements")


@dataclass(frozen=True)
class Pooled:
    """A database behind a pooler, which has one session on it for all: `url` leads through it, by a role's name."""

    url: str
    schema: str
    role: str

    def connect(self) -> psycopg.Connection[Any]:
        """Another client, that commits each statement."""
        return psycopg.connect(self.url, autocommit=True, prepare_threshold=None)


@pytest.fixture
def pooled(admin: Admin, postgres_url: str, tmp_path: Path) -> Generator[Pooled]:
    """The schema is the role's by default, as a pooler does not hand options on."""
    [[schema]] = admin.execute("SELECT current_schema()").fetchall()
    admin.execute(
        "CREATE TABLE orders (id int PRIMARY KEY, status text); INSERT INTO orders VALUES (1, 'paid'), (2, 'open')"
    )
    with role(admin, postgres_url, f"SELECT ON ALL TABLES IN SCHEMA {schema}", f"CREATE ON SCHEMA {schema}") as plain:
        found = conninfo_to_dict(plain)
        name = str(found["user"])
        execute(admin, f"ALTER ROLE {name} SET search_path = {schema}")
        behind = f"postgresql://{name}@{found['host']}:{found.get('port') or 5432}/{found['dbname']}"
        with pooler(behind, tmp_path) as url:
            yield Pooled(url, str(schema), name)


@pytest.fixture
def store(pooled: Pooled) -> Generator[Store]:
    with closing(shop(pooled.url)) as opened:
        yield opened


def test_everything_can_be_asked_through_a_pooler(store: Store, see: See, pooled: Pooled) -> None:
    asked = [
        STATUS,
        photo("orders"),
        photo("orders", hashed=True, pinned=((1,),)),
        ask("SELECT 1 / 0"),
        ask("SELECT count(*) FROM orders WHERE id < :id", id=9),
    ]
    for _ in range(5):
        status, whole, hashed, failed, count = see(store, asked)
        assert (only(status), only(count), taken(whole).size) == ("paid", 2, 2)
        assert taken(hashed).rows == {(1,): (1, "paid")}
        assert "division by zero" in why(failed)
    assert [table.name for table in tables_of(store, 5)] == ["orders"]


def test_no_statement_is_prepared_by_name_behind_a_pooler(store: Store, see: See, postgres_url: str) -> None:
    assert [only(see(store, [STATUS, photo("orders"), PREPARED])[-1]) for _ in range(6)] == [0] * 6
    with closing(shop(postgres_url)) as direct:
        assert [only(see(direct, [ask("SELECT 1 AS n"), PREPARED])[-1]) for _ in range(6)][-1] != 0


LEAKS = {
    "a path": "SET search_path = {evil}",
    "a path of nothing": "SET search_path = ''",
    "a path with temporary tables first": "SET search_path = pg_temp, {schema}; CREATE TEMP TABLE orders (id int PRIMARY KEY, status text)",
    "temporary tables": "CREATE TEMP TABLE orders (id int PRIMARY KEY, status text); INSERT INTO orders VALUES (1, 'evil')",
    "row security": "SET row_security = off",
    "a zone": "SET TimeZone = 'Asia/Tokyo'",
    "isolation": "SET default_transaction_isolation = 'read uncommitted'; SET default_transaction_read_only = off",
    "a role": "SET ROLE {other}",
    "a prepared statement": "PREPARE _pg3_0 AS SELECT 'evil'; PREPARE _pg3_1 AS SELECT 'evil'",
}


@pytest.mark.parametrize("leak", LEAKS.values(), ids=LEAKS)
def test_what_another_client_has_left_in_a_session_does_not_matter(
    admin: Admin, see: See, pooled: Pooled, store: Store, leak: str
) -> None:
    evil, other = f"{pooled.schema}_evil", f"r_{secrets.token_hex(6)}"
    name = pooled.role
    execute(admin, f"CREATE SCHEMA {evil}; CREATE TABLE {evil}.orders (id int PRIMARY KEY, status text)")
    execute(
        admin,
        f"CREATE ROLE {other}; GRANT {other} TO {name}; GRANT USAGE ON SCHEMA {evil} TO {name}; GRANT SELECT ON {evil}.orders TO {name}",
    )
    try:
        assert only(*see(store, [STATUS])) == "paid"
        with pooled.connect() as client:
            for statement in leak.format(evil=evil, schema=pooled.schema, other=other).split("; "):
                execute(client, statement)
        for _ in range(3):
            status, picture, failed = see(store, [STATUS, photo("orders"), ask("SELECT 1 / 0")])
            assert only(status) == "paid"
            assert taken(picture).rows == {(1,): (1, "paid"), (2,): (2, "open")}
            assert "division by zero" in why(failed)
    finally:
        execute(admin, f"DROP SCHEMA {evil} CASCADE; DROP ROLE {other}")


def test_a_time_that_another_client_has_left_does_not_count(store: Store, see: See, pooled: Pooled) -> None:
    assert only(*see(store, [STATUS])) == "paid"
    with pooled.connect() as client:
        execute(client, "SET statement_timeout = 500")
    assert rows(*see(store, [unproved("SELECT pg_sleep(0.6)")]))


def test_looks_and_another_client_take_turns(store: Store, pooled: Pooled, admin: Admin) -> None:
    evil = f"{pooled.schema}_evil"
    execute(admin, f"CREATE SCHEMA {evil}; CREATE TABLE {evil}.orders (id int PRIMARY KEY, status text)")
    done = threading.Event()

    def meddle() -> int:
        turns = 0
        with pooled.connect() as client:
            while not done.is_set() or turns == 0:
                execute(client, f"SET search_path = {evil}")
                execute(client, "SET TimeZone = 'Asia/Tokyo'")
                turns += 1
        return turns

    async def look(number: int) -> bool:
        count, picture = await store.alook([ask("SELECT count(*) + :n FROM orders", n=number), photo("orders")])
        return only(count) == 2 + number and taken(picture).size == 2

    async def look_often() -> list[bool]:
        return [found for _ in range(20) for found in await asyncio.gather(*map(look, range(10)))]

    with ThreadPoolExecutor(3) as pool:
        meddling = pool.submit(meddle)
        try:
            blocking = [pool.submit(store.look, [STATUS]) for _ in range(100)]
            assert asyncio.run(look_often()) == [True] * 200
            assert {only(*future.result()) for future in blocking} == {"paid"}
        finally:
            done.set()
            execute(admin, f"DROP SCHEMA {evil} CASCADE")
        assert meddling.result() > 0


def test_a_pool_of_the_users_behind_a_pooler_leaves_nothing_prepared(pooled: Pooled) -> None:
    with psycopg.connect(pooled.url, autocommit=True, prepare_threshold=1) as mine:
        opened = shop(mine)
        for _ in range(8):
            status, prepared = opened.look([STATUS, PREPARED])
            assert (only(status), only(prepared)) == ("paid", 0)
        assert mine.prepare_threshold == 1


def test_a_pooler_whose_database_is_away_is_told(see: See, tmp_path: Path) -> None:
    with server() as behind, pooler(behind.url, tmp_path) as url, closing(shop(url, timeout=1)) as store:
        assert only(*see(store, [ask("SELECT 1 AS n")])) == 1
        behind.stop()
        assert why(*see(store, [ask("SELECT 1 AS n")]))
        behind.start()
        behind.connect().close()


def test_the_url_of_a_pooler_may_name_a_schema_that_it_does_not_hand_on(pooled: Pooled, see: See) -> None:
    with closing(shop(make_url(pooled.url, options="-csearch_path=elsewhere"))) as opened:
        assert rows(*see(opened, [STATUS])) == (("paid",),)
