"""Where the connections to PostgreSQL come from: URLs, connections, pools, and factories of any of them."""

from __future__ import annotations

import asyncio
import gc
import multiprocessing
import os
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, cast

import psycopg
import pytest
from psycopg import AsyncConnection, Connection, IsolationLevel
from psycopg.conninfo import conninfo_to_dict
from psycopg.errors import LockNotAvailable
from psycopg.rows import dict_row
from psycopg_pool import AsyncConnectionPool, ConnectionPool

from guardrail import Configuration, Guard
from guardrail.errors import StoreError
from guardrail.pictures import Answer
from guardrail.stores.idle import BUSY, MOST
from guardrail.stores.opening import open_store
from guardrail.stores.postgres.faults import reason
from support.postgres_looks import See, ask, execute, make_url, only, photo, shop, taken, unproved, why
from support.postgres_servers import wait_until
from support.servers import empty_postgres

Admin = Connection[Any]
COUNT = ask("SELECT count(*) FROM t")
PID = unproved("SELECT pg_backend_pid()")


@pytest.fixture(autouse=True)
def table(admin: Admin) -> None:
    admin.execute("CREATE TABLE t (id int PRIMARY KEY, n int); INSERT INTO t VALUES (1, 1), (2, 2), (3, 3)")


def sessions(admin: Admin, url: str) -> int:
    """How many sessions there are of connections by this URL; each test's URL has a name of its own."""
    counting = "SELECT count(*) FROM pg_stat_activity WHERE application_name = %s"
    [[count]] = admin.execute(counting, [name_of(url)]).fetchall()
    return int(count)


def name_of(url: str) -> object:
    return conninfo_to_dict(url)["application_name"]


@pytest.fixture
def url(postgres_url: str) -> str:
    """The URL with a name by which its sessions are found."""
    return make_url(postgres_url, application_name=f"test {os.urandom(6).hex()}")


@pytest.mark.parametrize("scheme", ["postgres", "postgresql", "postgresql+psycopg", "POSTGRESQL+asyncpg"])
def test_a_url_may_name_a_driver(postgres_url: str, see: See, scheme: str) -> None:
    store = open_store("shop", f"{scheme}://{postgres_url.partition('://')[2]}", 30)
    assert store.dialect == "postgres"
    assert only(*see(store, [COUNT])) == 3
    store.close()


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://root:s3cret@host/db?nonsense=1",
        "postgresql://root:s3cret@[host/db",
        "postgresql://root:s3c@ret@host/db",
        "postgresql://root:s3c/ret@host/db",
        "postgresql://root:s3cret@host/db?connect_timeout=soon",
    ],
)
def test_what_is_no_url_is_refused_without_its_password(url: str) -> None:
    with pytest.raises(StoreError) as refused:
        open_store("shop", url, 5)
    assert "the store shop cannot be opened: its URL" in str(refused.value)
    assert "s3c" not in "".join(map(str, (refused.value, refused.value.__cause__, refused.value.__context__)))


def test_what_is_neither_url_nor_connection_is_refused() -> None:
    with pytest.raises(StoreError, match="int is neither a URL, nor a psycopg connection, a pool, or a factory of one"):
        open_store("shop", 7, 5, "postgres")


def test_connections_by_url_are_kept_and_closed_with_the_store(url: str, see: See, admin: Admin) -> None:
    store = shop(url)
    pids = {only(*see(store, [PID])) for _ in range(5)}
    assert len(pids) == 1
    assert sessions(admin, url) == 1
    store.close()
    wait_until(lambda: sessions(admin, url) == 0, "sessions are left open")


@pytest.mark.filterwarnings("error::ResourceWarning")
def test_connections_of_a_store_that_is_forgotten_are_closed(url: str, admin: Admin) -> None:
    store = shop(url)
    assert only(*store.look([COUNT])) == 3
    assert only(*asyncio.run(store.alook([COUNT]))) == 3
    del store
    gc.collect()
    wait_until(lambda: sessions(admin, url) == 0, "sessions are left open")


def test_a_store_serves_several_loops_after_each_other(url: str, admin: Admin) -> None:
    store = shop(url)

    async def look_often() -> list[list[Answer]]:
        return await asyncio.gather(*(store.alook([COUNT]) for _ in range(MOST + 5)))

    for _ in range(4):
        assert [only(*answers) for answers in asyncio.run(look_often())] == [3] * (MOST + 5)
    gc.collect()
    wait_until(lambda: sessions(admin, url) <= 4, "sessions are left open")
    store.close()
    wait_until(lambda: sessions(admin, url) == 0, "sessions are left open")


def test_many_threads_share_the_connections(url: str, admin: Admin) -> None:
    store = shop(url)
    start = threading.Barrier(20)

    def look(number: int) -> object:
        start.wait()
        return [only(*store.look([ask("SELECT sum(n) + :n FROM t", n=number)])) for _ in range(5)]

    with ThreadPoolExecutor(20) as pool:
        assert list(pool.map(look, range(20))) == [[6 + number] * 5 for number in range(20)]
    wait_until(lambda: sessions(admin, url) <= 4, "sessions are left open")
    store.close()


async def test_fifty_tasks_share_the_connections(url: str, admin: Admin) -> None:
    store = shop(url)
    answers = await asyncio.gather(*(store.alook([ask("SELECT sum(n) + :n FROM t", n=n), photo()]) for n in range(50)))
    assert [only(answer) for answer, _ in answers] == [6 + n for n in range(50)]
    assert {taken(picture).size for _, picture in answers} == {3}
    wait_until(lambda: sessions(admin, url) <= 4, "sessions are left open")
    store.close()


def test_more_looks_than_connections_end_when_their_time_is_up(url: str, postgres_url: str) -> None:
    store = shop(url, timeout=0.5)
    with psycopg.connect(postgres_url) as locking, ThreadPoolExecutor(3 * MOST) as pool:
        locking.execute("LOCK t")
        said = {why(*answers) for answers in pool.map(store.look, [[COUNT]] * (3 * MOST))}
        locking.rollback()
    assert said <= {BUSY, reason(LockNotAvailable()), reason(TimeoutError())}
    assert only(*shop(url).look([COUNT])) == 3
    store.close()


async def test_a_look_that_is_cancelled_gives_its_connection_back(url: str, admin: Admin, postgres_url: str) -> None:
    store = shop(url)
    waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND application_name = %s"

    async def is_waiting() -> bool:
        await asyncio.sleep(0.01)
        return admin.execute(waiting, [name_of(url)]).fetchone() == (1,)

    with psycopg.connect(postgres_url) as locking:
        locking.execute("LOCK t")
        for _ in range(MOST + 2):
            look = asyncio.ensure_future(store.alook([COUNT]))
            while not await is_waiting():
                pass
            look.cancel()
            with pytest.raises(asyncio.CancelledError):
                await look
        locking.rollback()
    assert only(*await store.alook([COUNT])) == 3
    wait_until(lambda: sessions(admin, url) <= 4, "sessions are left open")
    store.close()


def test_a_fork_leaves_the_kept_connections_to_the_parent(url: str) -> None:
    store = shop(url)
    mine = only(*store.look([PID]))
    asyncio.run(store.alook([COUNT]))
    receiver, sender = multiprocessing.Pipe(duplex=False)

    def child() -> None:
        sender.send([only(*store.look([PID])), only(*asyncio.run(store.alook([COUNT]))), only(*store.look([PID]))])
        store.close()

    process = multiprocessing.get_context("fork").Process(target=child)
    process.start()
    assert only(*store.look([PID])) == mine
    first, count, second = receiver.recv()
    process.join(30)
    assert process.exitcode == 0
    assert (first == second, first != mine, count) == (True, True, 3)
    assert only(*store.look([PID])) == mine, "and it is still open"
    store.close()


# Connections and pools of the user's.


def test_a_connection_comes_back_as_it_was(url: str, admin: Admin) -> None:
    with psycopg.connect(url, autocommit=False) as mine:
        mine.row_factory = cast("Any", dict_row)
        mine.isolation_level = IsolationLevel.SERIALIZABLE
        mine.read_only = False
        execute(mine, "SET TimeZone = 'Asia/Tokyo'; SET statement_timeout = '77s'; SET datestyle = 'German'")
        mine.commit()
        before = settings_of(mine)
        store = shop(mine)
        for _ in range(7):
            answers = store.look([COUNT, photo(), photo(hashed=True), ask("SELECT 1 / 0")])
            assert only(answers[0]) == taken(answers[1]).size == taken(answers[2]).size == 3
        asyncio.run(store.alook([COUNT]))
        assert settings_of(mine) == before
        assert (mine.autocommit, mine.isolation_level, mine.prepare_threshold) == (
            False,
            IsolationLevel.SERIALIZABLE,
            5,
        )
        mine.execute("INSERT INTO t VALUES (9, 9)")
        mine.rollback()
        assert only(*store.look([COUNT])) == 3
        store.close()
        assert not mine.closed


def settings_of(connection: Connection[Any]) -> list[Any]:
    """All that was set in a session, and what is prepared there."""
    found = connection.execute("SELECT name, setting FROM pg_settings ORDER BY name").fetchall()
    prepared = connection.execute(
        "SELECT count(*) AS prepared FROM pg_prepared_statements WHERE statement LIKE '%%set_config%%' OR statement LIKE '%%asked%%'"
    ).fetchall()
    connection.rollback()
    return [*found, *prepared]


def test_a_path_that_was_set_on_a_connection_of_the_users_counts(postgres_url: str, admin: Admin) -> None:
    [[schema]] = admin.execute("SELECT current_schema()").fetchall()
    execute(admin, f"CREATE SCHEMA {schema}_tenant; CREATE TABLE {schema}_tenant.t (id int PRIMARY KEY)")
    try:
        with psycopg.connect(postgres_url, autocommit=True) as mine:
            execute(mine, f"SET search_path = {schema}_tenant")
            assert taken(shop(mine).look([photo()])[0]).size == 0
            execute(mine, "SET search_path = ''")
            assert why(shop(mine).look([photo()])[0]) == "there is no table t"
    finally:
        execute(admin, f"DROP SCHEMA {schema}_tenant CASCADE")


def test_a_connection_that_cannot_be_used_is_told_with_advice(postgres_url: str) -> None:
    with psycopg.connect(postgres_url) as mine:
        mine.execute("SELECT 1")
        assert "in the middle of a transaction, and would show an old state: commit first" in why(
            *shop(mine).look([COUNT])
        )
        mine.rollback()
        assert only(*shop(mine).look([COUNT])) == 3
        execute(mine, "SET client_encoding = 'LATIN1'")
        mine.commit()
        assert "client_encoding" in why(*shop(mine).look([COUNT]))
    assert "is closed; give a URL, a pool, or a factory" in why(*shop(mine).look([COUNT]))


def test_a_connection_is_used_by_one_look_at_a_time(postgres_url: str) -> None:
    with psycopg.connect(postgres_url) as mine, ThreadPoolExecutor(20) as pool:
        store = shop(mine)
        assert {only(*answers) for answers in pool.map(store.look, [[COUNT]] * 40)} == {3}


async def test_an_asynchronous_connection_is_awaited(postgres_url: str) -> None:
    async with await AsyncConnection.connect(postgres_url) as mine:
        store = shop(mine)
        for answers in await asyncio.gather(*(store.alook([COUNT, photo()]) for _ in range(20))):
            assert (only(answers[0]), taken(answers[1]).size) == (3, 3)
        assert (mine.autocommit, mine.closed) == (False, False)
        assert "open the run by `async with`" in why(*store.look([COUNT]))
        await mine.execute("SELECT 1")
        assert "in the middle of a transaction" in why(*await store.alook([COUNT]))
    assert "is closed" in why(*await store.alook([COUNT]))


def test_a_pools_connections_are_given_back(postgres_url: str, see: See) -> None:
    with ConnectionPool(postgres_url, min_size=1, max_size=2, kwargs={"row_factory": dict_row}, open=True) as pool:
        store = shop(pool)
        for _ in range(5):
            answers = see(store, [COUNT, photo(), ask("SELECT 1 / 0")])
            assert (only(answers[0]), taken(answers[1]).size) == (3, 3)
        with pool.connection() as one, pool.connection() as other:
            assert (one.autocommit, other.autocommit) == (False, False)
            short = shop(pool, timeout=0.2)
            assert "couldn't get a connection after" in why(*see(short, [COUNT]))
        store.close()
        assert not pool.closed
    assert "cannot be reached" in why(*see(store, [COUNT]))


async def test_an_asynchronous_pools_connections_are_given_back(postgres_url: str) -> None:
    async with AsyncConnectionPool(postgres_url, min_size=1, max_size=2, open=False) as pool:
        store = shop(pool)
        for answers in await asyncio.gather(*(store.alook([COUNT, photo()]) for _ in range(10))):
            assert (only(answers[0]), taken(answers[1]).size) == (3, 3)
        assert pool.get_stats()["requests_num"] >= 10
        assert "open the run by `async with`" in why(*store.look([COUNT]))


def test_a_stale_connection_of_a_pool_is_replaced(postgres_url: str, see: See, admin: Admin) -> None:
    with ConnectionPool(postgres_url, min_size=3, max_size=3, open=True) as pool:
        pool.wait()
        store = shop(pool)
        pids = [only(*see(store, [PID])) for _ in range(3)]
        admin.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid = ANY (%s)", [pids])
        assert only(*see(store, [COUNT])) == 3


# Factories.

Made = Callable[[], Any]


async def connected(url: str) -> AsyncConnection[Any]:
    return await AsyncConnection.connect(url)


FACTORIES: dict[str, Callable[[str], Made]] = {
    "of URLs": lambda url: lambda: url,
    "of connections": lambda url: lambda: psycopg.connect(url),
}


@pytest.mark.parametrize("factory", FACTORIES.values(), ids=FACTORIES)
def test_a_factory_is_asked_for_every_look(url: str, see: See, admin: Admin, factory: Callable[[str], Made]) -> None:
    made: list[object] = []
    make = factory(url)

    def counting() -> object:
        made.append(make())
        return made[-1]

    store = shop(counting)
    for number in range(1, 4):
        answers = see(store, [COUNT, photo()])
        assert (only(answers[0]), taken(answers[1]).size, len(made)) == (3, 3, number)
    store.close()
    assert [one.closed for one in made if isinstance(one, Connection)] in ([], [True] * 3)
    wait_until(lambda: sessions(admin, url) == 0, "sessions are left open")


def test_a_factory_may_answer_a_pool(postgres_url: str, see: See) -> None:
    with ConnectionPool(postgres_url, min_size=1, open=True) as pool:
        store = shop(lambda: pool)
        assert [only(*see(store, [COUNT])) for _ in range(3)] == [3] * 3
        store.close()
        assert not pool.closed


async def test_asynchronous_factories_are_awaited(url: str, admin: Admin) -> None:
    async def of_url() -> str:
        return url

    def promising() -> Awaitable[AsyncConnection[Any]]:
        return connected(url)

    async with AsyncConnectionPool(url, min_size=1, open=False) as pool:

        async def of_pool() -> object:
            return pool

        for make in (of_url, promising, of_pool, lambda: pool):
            store = shop(make)
            for _ in range(3):
                answers = await store.alook([COUNT, photo()])
                assert (only(answers[0]), taken(answers[1]).size) == (3, 3)
            store.close()
    wait_until(lambda: sessions(admin, url) == 0, "sessions are left open")


@pytest.mark.filterwarnings("error")
def test_an_asynchronous_factory_needs_an_asynchronous_run(url: str, admin: Admin) -> None:
    assert "open the run by `async with`" in why(*shop(lambda: connected(url)).look([COUNT]))

    def opening() -> AsyncConnection[Any]:
        with ThreadPoolExecutor(1) as pool:
            return pool.submit(asyncio.run, connected(url)).result()

    assert "answers an asynchronous connection, and the run is not" in why(*shop(opening).look([COUNT]))
    gc.collect()
    wait_until(lambda: sessions(admin, url) == 0, "sessions are left open")


async def test_a_plain_factory_does_not_block_the_loop(postgres_url: str) -> None:
    let_go = threading.Event()

    def slow() -> str:
        assert let_go.wait(30)
        return postgres_url

    store = shop(slow)
    look = asyncio.ensure_future(store.alook([COUNT]))
    await asyncio.sleep(0)
    let_go.set()
    assert only(*await look) == 3
    store.close()


@pytest.mark.parametrize(
    "error",
    [
        LookupError("no tenant 7"),
        psycopg.ProgrammingError('missing "=" after "postgresql//u:s3cret@h/db" in connection info string'),
        OSError("cannot connect by host=h password=s3cret"),
    ],
)
def test_a_factory_that_fails_is_told_without_passwords(see: See, error: Exception) -> None:
    def failing() -> str:
        raise error

    said = why(*see(shop(failing), [COUNT]))
    assert said.startswith(f"its factory failed: {type(error).__name__}: ")
    assert "s3cret" not in said


@pytest.mark.parametrize("made", [7, None, "sqlite:///x.db", "postgresql://u:s3cret@h:port/db?x=y"])
def test_a_factory_that_answers_something_else_is_told(see: See, made: object) -> None:
    said = why(*see(shop(lambda: made), [COUNT]))
    assert "neither a URL" in said or "its URL is not one" in said
    assert "s3cret" not in said


def test_credentials_may_change_within_a_run(url: str, see: See, admin: Admin) -> None:
    roles = [f"r_{os.urandom(4).hex()}" for _ in range(12)]
    [[schema]] = admin.execute("SELECT current_schema()").fetchall()
    for name in roles:
        execute(
            admin, f"CREATE ROLE {name} LOGIN; GRANT USAGE ON SCHEMA {schema} TO {name}; GRANT SELECT ON t TO {name}"
        )
    try:
        remaining = iter(roles)
        store = shop(lambda: make_url(url, user=next(remaining)))
        run = store.for_run()
        assert [only(*see(run, [COUNT])) for _ in roles] == [3] * len(roles)
        wait_until(lambda: sessions(admin, url) <= 8, "those of the first ones are not given up")
        store.close()
        wait_until(lambda: sessions(admin, url) == 0, "sessions are left open")
    finally:
        for name in roles:
            execute(admin, f"DROP OWNED BY {name}; DROP ROLE {name}")


def test_a_run_stays_with_the_database_that_it_began_with(postgres_url: str, see: See, admin: Admin) -> None:
    [[schema]] = admin.execute("SELECT current_schema()").fetchall()
    with empty_postgres(postgres_url) as other:
        where = [postgres_url]
        for store in (shop(lambda: where[0]), shop(lambda: psycopg.connect(where[0]))):
            where[0] = postgres_url
            run = store.for_run()
            assert only(*see(run, [COUNT])) == 3
            for elsewhere in (other, make_url(postgres_url, options=f"-csearch_path=public,{schema}")):
                where[0] = elsewhere
                assert why(*see(run, [COUNT])) == "its factory led to another database than at the run's first look"
            assert only(*see(store.for_run(), [COUNT])) == 3, "another run may"
            where[0] = postgres_url
            assert only(*see(run, [COUNT])) == 3
            store.close()


# Whole runs.


def guard(postgres_url: str, where: object) -> Guard:
    """A guard whose only task must leave the table as it is."""
    document: dict[str, object] = {
        "stores": {"shop": {"url": postgres_url, "timeout": "30s"}},
        "tasks": {
            "look": {
                "watch": {"shop.t": {}},
                "expect": "nothing",
                "checks": [{"store": "shop", "sql": "select count(*) = 3 from t"}],
            }
        },
        "ledger": "memory",
    }
    return Guard(Configuration.model_validate(document), stores={"shop": where})


@pytest.mark.parametrize("changed", [False, True])
def test_a_run_is_judged_whatever_its_store_is_given_as(postgres_url: str, admin: Admin, changed: bool) -> None:
    with ConnectionPool(postgres_url, min_size=1, open=True) as pool, psycopg.connect(postgres_url) as mine:
        for where in (postgres_url, pool, mine, lambda: postgres_url, lambda: psycopg.connect(postgres_url)):
            with guard(postgres_url, where) as guarded:
                with guarded.run("look") as run:
                    if changed:
                        admin.execute("UPDATE t SET n = n + 1 WHERE id = 2")
                assert run.verdict is not None
                assert run.verdict.kind == ("silent_failure" if changed else "verified"), where


@pytest.mark.parametrize("changed", [False, True])
async def test_an_asynchronous_run_is_judged_whatever_its_store_is_given_as(
    postgres_url: str, admin: Admin, changed: bool
) -> None:
    async with AsyncConnectionPool(postgres_url, open=False) as apool, await connected(postgres_url) as mine:
        with ConnectionPool(postgres_url, min_size=1, open=True) as pool:
            factories = (lambda: connected(postgres_url), lambda: psycopg.connect(postgres_url))
            for where in (postgres_url, apool, pool, mine, *factories):
                with guard(postgres_url, where) as guarded:
                    async with guarded.run("look") as run:
                        if changed:
                            admin.execute("UPDATE t SET n = n + 1 WHERE id = 2")
                    assert run.verdict is not None
                    assert run.verdict.kind == ("silent_failure" if changed else "verified"), where


def test_an_asynchronous_store_makes_a_plain_run_unverified(postgres_url: str) -> None:
    with guard(postgres_url, lambda: connected(postgres_url)) as guarded, guarded.run("look") as run:
        pass
    assert run.verdict is not None
    assert run.verdict.kind == "unverified"
    assert "open the run by `async with`" in str(run.verdict.findings[0])
