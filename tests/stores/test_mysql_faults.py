"""What a MariaDB store says when its server, its rights or its time do not allow an answer."""

from __future__ import annotations

import asyncio
import re
import secrets
import socket
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest

from guardrail.stores.opening import open_store
from guardrail.stores.store import Photograph, Question, Survey
from support.mariadb_servers import Server
from support.mysql_looks import ask, only, value, why
from support.servers import connect_mariadb, execute_on_mariadb

TIMEOUT = "it took longer than the store's timeout; narrow .*, or raise the timeout$"
TABLE = ("CREATE TABLE t (id INT PRIMARY KEY, name TEXT)", "INSERT INTO t VALUES (1, 'secret'), (2, 'secret')")
COUNT = ask("SELECT count(*) FROM t")
ENDLESS = ask("SELECT count(*) FROM seq_1_to_100000 a JOIN seq_1_to_100000 b ON a.seq + b.seq = 7")
ALL: list[Question] = [COUNT, Photograph("shop.t", "t"), Survey()]


@pytest.fixture
def url(mariadb_url: str) -> str:
    execute_on_mariadb(mariadb_url, *TABLE)
    return mariadb_url


def test_a_server_that_is_not_there_is_said_of_every_question() -> None:
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        store = open_store("shop", f"mysql://root:secret@127.0.0.1:{nobody.getsockname()[1]}/shop", 5)
        answers = store.look(ALL)
    assert [why(answer).split(": ")[0] for answer in answers] == [
        *("shop.t could not be looked at", "shop.t could not be looked at", "the tables of shop could not be read")
    ]
    assert all("it cannot be reached: Can't connect to MySQL server" in why(answer) for answer in answers)
    assert not any("secret" in why(answer) for answer in answers)


def test_a_host_and_a_database_that_are_none_are_said(url: str) -> None:
    [answer] = open_store("shop", "mysql://root@no.such.host.invalid/shop", 5).look([COUNT])
    assert "it cannot be reached" in why(answer)
    [answer] = open_store("shop", f"{url}_none", 5).look([COUNT])
    assert "Unknown database" in why(answer)


def test_a_query_that_takes_too_long_is_ended_by_the_server(url: str) -> None:
    store = open_store("shop", url, 3)
    slow, quick = store.look([ENDLESS, COUNT])
    assert re.search(TIMEOUT, why(slow))
    assert only(quick) == 2
    store.close()


def test_the_questions_of_a_look_have_one_time_together(url: str) -> None:
    store = open_store("shop", url, 0.5)
    with ThreadPoolExecutor(1) as pool:
        answers = pool.submit(store.look, [ENDLESS] * 50).result(timeout=20)
    assert all(re.search(TIMEOUT, why(answer)) for answer in answers)
    assert value(store, "SELECT 1") == 1
    store.close()


def test_a_table_that_is_locked_is_waited_for_no_longer_than_the_timeout(url: str) -> None:
    store = open_store("shop", url, 3)
    with closing(connect_mariadb(url)) as agent, agent.cursor() as cursor:
        cursor.execute("LOCK TABLES t WRITE")
        locked, free = store.look([COUNT, ask("SELECT 1")])
        assert re.search(TIMEOUT, why(locked))
        assert only(free) == 1
    assert value(store, "SELECT count(*) FROM t") == 2
    store.close()


def test_rows_that_are_locked_are_read_all_the_same(url: str) -> None:
    store = open_store("shop", url, 5)
    with closing(connect_mariadb(url, autocommit=False)) as agent, agent.cursor() as cursor:
        cursor.execute("UPDATE t SET name = 'x'")
        cursor.execute("SELECT * FROM t FOR UPDATE")
        assert value(store, "SELECT count(*) FROM t WHERE name = 'secret'") == 2
    store.close()


def test_a_connection_of_the_users_outlives_a_look_that_took_too_long(url: str) -> None:
    with closing(connect_mariadb(url)) as mine:
        store = open_store("shop", mine, 3, "mysql")
        [slow] = store.look([ENDLESS])
        assert re.search(TIMEOUT, why(slow))
        assert value(store, "SELECT count(*) FROM t") == 2


@pytest.mark.parametrize(
    ("sql", "says"),
    [
        ("SELECT 18446744073709551615 + length(name) FROM t", "a number is out of range (1690)"),
        ("SELECT id FROM t WHERE name = (SELECT name FROM t)", "Subquery returns more than 1 row"),
        ("SELECT t.id FROM t JOIN t t2 WHERE name = 'secret'", "Column 'name' in WHERE is ambiguous"),
    ],
)
def test_errors_are_told_without_values(url: str, sql: str, says: str) -> None:
    store = open_store("shop", url, 5)
    [answer] = store.look([ask(sql)])
    assert says in why(answer)
    assert "secret" not in why(answer)
    store.close()


def test_a_table_that_its_user_may_not_read_is_said(url: str) -> None:
    user = f"u_{secrets.token_hex(4)}"
    execute_on_mariadb(url, "CREATE TABLE hidden (id INT PRIMARY KEY)", f"CREATE USER {user}@`%`")
    try:
        execute_on_mariadb(url, f"GRANT SELECT ON t TO {user}@`%`")
        store = open_store("shop", url.replace("root@", f"{user}@", 1), 5)
        seen, hidden, picture = store.look([COUNT, ask("SELECT id FROM hidden"), Photograph("shop.hidden", "hidden")])
        assert only(seen) == 2
        assert "SELECT command denied to user" in why(hidden)
        assert why(hidden).endswith(": grant SELECT to the store's user")
        assert why(picture).endswith("there is no table hidden")
        store.close()
    finally:
        execute_on_mariadb(url, f"DROP USER {user}@`%`")


def busy(url: str) -> list[int]:
    """The connections to a database that carry out a statement."""
    with closing(connect_mariadb(url, database=None)) as admin, admin.cursor() as cursor:
        cursor.execute(
            "SELECT ID FROM information_schema.PROCESSLIST WHERE DB = %s AND COMMAND = 'Query' AND TIME_MS > 20",
            [url.rpartition("/")[2]],
        )
        return [number for [number] in cursor.fetchall()]


def kill(url: str, condition: str) -> None:
    """Have the server end the connections to a database."""
    with closing(connect_mariadb(url, database=None)) as admin, admin.cursor() as cursor:
        cursor.execute(
            f"SELECT ID FROM information_schema.PROCESSLIST WHERE DB = %s AND {condition}", [url.rpartition("/")[2]]
        )
        for number in cursor.fetchall():
            cursor.execute("KILL %s", number)


def test_kept_connections_that_were_lost_are_replaced(url: str) -> None:
    store = open_store("shop", url, 5)
    with ThreadPoolExecutor(4) as pool:
        looks = [pool.submit(value, store, "SELECT count(*) FROM t") for _ in range(16)]
    assert {look.result() for look in looks} == {2}
    kill(url, "TRUE")
    assert value(store, "SELECT count(*) FROM t") == 2
    store.close()


@pytest.mark.parametrize("kept", [False, True])
def test_a_look_whose_connection_is_killed_is_tried_again_only_on_one_that_was_kept(url: str, kept: bool) -> None:
    store = open_store("shop", url, 3)
    if kept:
        assert value(store, "SELECT 1") == 1
    with ThreadPoolExecutor(1) as pool:
        looking = pool.submit(store.look, [ENDLESS, COUNT])
        while not busy(url):
            pass
        kill(url, "COMMAND = 'Query'")
        endless, count = looking.result()
    if kept:
        assert re.search(TIMEOUT, why(endless))
        assert only(count) == 2
    else:
        assert "it cannot be reached: " in why(endless)
        assert "it cannot be reached: " in why(count)
    store.close()


def test_a_server_that_came_back_is_found_again(mariadb_server: Server) -> None:
    execute_on_mariadb(mariadb_server.url, *TABLE)
    store = open_store("shop", mariadb_server.url, 5)
    assert value(store, "SELECT count(*) FROM t") == 2
    mariadb_server.kill()
    assert all("it cannot be reached: Can't connect" in why(answer) for answer in store.look(ALL))
    mariadb_server.start()
    assert value(store, "SELECT count(*) FROM t") == 2
    store.close()


@pytest.mark.parametrize(
    ("end", "says"), [(Server.kill, "it cannot be reached: "), (Server.freeze, TIMEOUT)], ids=["killed", "frozen"]
)
@pytest.mark.parametrize("kept", [False, True])
def test_a_server_that_fails_in_the_middle_of_a_look_costs_all_its_answers(
    mariadb_server: Server, end: Callable[[Server], None], says: str, kept: bool
) -> None:
    execute_on_mariadb(mariadb_server.url, *TABLE)
    store = open_store("shop", mariadb_server.url, 3)
    if kept:
        assert value(store, "SELECT 1") == 1
    with ThreadPoolExecutor(1) as pool:
        looking = pool.submit(store.look, [ENDLESS, *ALL])
        while not busy(mariadb_server.url):
            pass
        end(mariadb_server)
        answers = looking.result(timeout=30)
    assert all(re.search(says, why(answer)) for answer in answers)
    store.close()


def test_a_server_that_hangs_while_rows_are_read_is_left_in_time(mariadb_server: Server) -> None:
    execute_on_mariadb(
        mariadb_server.url,
        "CREATE TABLE big (id INT PRIMARY KEY, filling CHAR(200))",
        "INSERT INTO big SELECT seq, 'x' FROM seq_1_to_500000",
    )
    store = open_store("shop", mariadb_server.url, 3)
    with ThreadPoolExecutor(1) as pool:
        looking = pool.submit(store.look, [Photograph("shop.big", "big", hashed=True)])
        while not busy(mariadb_server.url):
            pass
        mariadb_server.freeze()
        [answer] = looking.result(timeout=30)
    assert re.search(TIMEOUT, why(answer))
    store.close()


def test_a_connection_of_the_users_that_hangs_is_left_in_time(mariadb_server: Server) -> None:
    with closing(connect_mariadb(mariadb_server.url)) as mine:
        store = open_store("shop", mine, 1, "mysql")
        assert value(store, "SELECT 1") == 1
        mariadb_server.freeze()
        with ThreadPoolExecutor(1) as pool:
            answers = pool.submit(store.look, ALL).result(timeout=30)
        assert all(re.search(TIMEOUT, why(answer)) for answer in answers)


async def test_a_look_that_hangs_does_not_stop_the_loop(mariadb_server: Server) -> None:
    store = open_store("shop", mariadb_server.url, 1)
    mariadb_server.freeze()
    looking = asyncio.create_task(store.alook(ALL))
    turns = 0
    while not looking.done():
        await asyncio.sleep(0.01)
        turns += 1
    assert turns > 10
    assert all("it cannot be reached: " in why(answer) for answer in await looking)


def test_a_server_that_says_nothing_is_not_waited_for_longer_than_the_timeout() -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        [answer] = open_store("shop", f"mysql://root@127.0.0.1:{silent.getsockname()[1]}/shop", 0.2).look([COUNT])
    assert "timed out" in why(answer)


def test_a_server_that_is_none_of_its_kind_is_said() -> None:
    with socket.socket() as other, ThreadPoolExecutor(1) as pool:
        other.bind(("127.0.0.1", 0))
        other.listen()

        def greet() -> None:
            with other.accept()[0] as client:
                client.sendall(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n")

        greeting = pool.submit(greet)
        [answer] = open_store("shop", f"mysql://root@127.0.0.1:{other.getsockname()[1]}/shop", 2).look([COUNT])
        greeting.result()
    assert why(answer).startswith("shop.t could not be looked at: ")
