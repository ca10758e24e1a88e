"""Looks at a MariaDB database: one read-only snapshot each, settings that are the same everywhere, and clear refusals."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from decimal import Decimal

import pytest

from guardrail.pictures import Rows, Tables
from guardrail.query.proof import Query
from guardrail.stores.opening import open_store
from guardrail.stores.store import MOST_ANSWERED, Ask, Photograph, Question, Store, Survey
from support.mysql_looks import ask, only, picture, value, why
from support.servers import connect_mariadb, execute_on_mariadb

ORDERS = (
    "CREATE TABLE orders (id INT PRIMARY KEY, status VARCHAR(20) NOT NULL, amount DECIMAL(10, 2))",
    "INSERT INTO orders VALUES (1, 'paid', 19.90), (2, 'open', 5), (3, 'open', 7)",
)


@pytest.fixture
def url(mariadb_url: str) -> str:
    execute_on_mariadb(mariadb_url, *ORDERS)
    return mariadb_url


@pytest.fixture
def shop(url: str) -> Generator[Store]:
    store = open_store("shop", url, 5)
    yield store
    store.close()


def test_every_look_sees_what_was_committed_before_it(shop: Store, url: str) -> None:
    status = "SELECT status FROM orders WHERE id = 1"
    assert value(shop, status) == "paid"
    with closing(connect_mariadb(url, autocommit=False)) as agent, agent.cursor() as cursor:
        cursor.execute("UPDATE orders SET status = 'refunded' WHERE id = 1")
        assert value(shop, status) == "paid", "not committed, so not visible to another connection"
        agent.commit()
        assert value(shop, status) == "refunded"


def test_all_questions_of_a_look_see_the_same_moment(shop: Store, url: str) -> None:
    stop = threading.Event()

    def move_money() -> None:
        with closing(connect_mariadb(url, autocommit=False)) as agent, agent.cursor() as cursor:
            while not stop.is_set():
                cursor.execute("UPDATE orders SET amount = amount - 1 WHERE id = 1")
                cursor.execute("UPDATE orders SET amount = amount + 1 WHERE id = 2")
                agent.commit()

    amounts = [ask("SELECT amount FROM orders WHERE id = :id", id=number) for number in (1, 2, 1, 2)]
    with ThreadPoolExecutor(1) as pool:
        moving = pool.submit(move_money)
        try:
            seen: list[tuple[Decimal, ...]] = []
            while len(seen) < 50 or (len({*seen}) == 1 and len(seen) < 5_000):  # on a busy machine it begins late
                seen.append(tuple(Decimal(str(only(answer))) for answer in shop.look(amounts)))
        finally:
            stop.set()
        moving.result()
    assert {sum(look) for look in seen} == {2 * Decimal("24.90")}
    assert len({*seen}) > 1, "the agent was at work meanwhile"


def test_a_question_that_fails_costs_its_own_answer_only(shop: Store) -> None:
    questions: list[Question] = [
        ask("SELECT status FROM orders WHERE id = 1"),
        ask("SELECT nonsense FROM orders"),
        ask("SELECT id FROM elsewhere"),
        Photograph("shop.order", "order"),
        Photograph("shop.orders", "orders"),
        ask("SELECT id FROM orders WHERE id = (SELECT id FROM orders)"),
        Survey(),
    ]
    status, column, table, close, rows, subquery, survey = shop.look(questions)
    assert only(status) == "paid"
    assert why(column).startswith("shop.orders could not be looked at: Unknown column 'nonsense' in ")
    assert "elsewhere' doesn't exist" in why(table)
    assert why(close).endswith("there is no table order; did you mean orders?")
    assert getattr(rows, "size", None) == 3
    assert why(subquery).endswith("Subquery returns more than 1 row")
    assert isinstance(survey, Tables)


def test_parameters_are_values_whatever_they_hold(shop: Store) -> None:
    hostile = "\\' OR 1=1; -- \0 \" % %s :id ` ünï 😀"
    assert value(shop, "SELECT :text", text=hostile) == hostile
    assert value(shop, "SELECT count(*) FROM orders WHERE status = :text", text=hostile) == 0
    assert value(shop, "SELECT 'a%b' LIKE 'a\\%b' AND :n = 1", n=1) == 1


@pytest.mark.parametrize(
    ("sql", "says"),
    [
        ("DELETE FROM orders", "the transaction is read-only (1792)"),
        ("CREATE TABLE mine (id INT)", "the transaction is read-only (1792)"),
        ("SELECT 1; DELETE FROM orders", "parse error"),
        ("SET TRANSACTION READ WRITE", "(1568)"),
        ("SELECT id FROM orders WHERE id = 1 FOR UPDATE", ""),
    ],
)
def test_what_no_proof_let_through_would_be_refused_by_the_server(shop: Store, url: str, sql: str, says: str) -> None:
    [answer] = shop.look([Ask(Query(sql, "mysql", sql, (), ()))])
    assert says in (why(answer) if says else "")
    assert execute_on_mariadb(url, "SELECT count(*) FROM orders", "SHOW TABLES") == (("orders",),)
    assert execute_on_mariadb(url, "SELECT count(*) FROM orders") == ((3,),)


def test_an_answer_of_too_many_rows_is_refused_and_not_cut_off(shop: Store) -> None:
    most = ask(f"SELECT seq FROM seq_1_to_{MOST_ANSWERED}")
    more = ask(f"SELECT seq FROM seq_1_to_{MOST_ANSWERED + 1}")
    enough, too_many, still = shop.look([most, more, ask("SELECT 1")])
    assert isinstance(enough, Rows)
    assert len(enough.rows) == MOST_ANSWERED
    assert "answers more than 10,000 rows" in why(too_many)
    assert only(still) == 1


def test_columns_of_the_same_name_are_refused(shop: Store) -> None:
    [answer] = shop.look([ask("SELECT a.id, b.id FROM orders a JOIN orders b ON a.id = b.id")])
    assert "two columns called id" in why(answer)


def test_a_query_for_another_database_is_refused(shop: Store) -> None:
    [answer] = shop.look([Ask(Query("SELECT 1", "postgres", "SELECT 1", (), ()))])
    assert why(answer).endswith("its query was proved for postgres, and the database is MariaDB")


@pytest.mark.parametrize(
    ("sql", "answer"),
    [
        ("SELECT 'a' = 'A'", 0),
        ("SELECT 'a' || 'b'", 0),  # OR, and no concatenation
        ("SELECT 'it''s \\\\ here'", "it's \\ here"),
        ("SELECT CAST(1 - CAST(2 AS UNSIGNED) AS CHAR)", None),
        ("SELECT NOT 1 BETWEEN 0 AND 2", 0),
        ("SELECT DATE_FORMAT('2024-03-01', '%M')", "March"),
        ("SELECT 10 / 3", Decimal("3.3333")),
        ("SELECT WEEK('2024-01-01')", 0),
        ("SELECT count(*) FROM (SELECT id FROM orders) o", 3),
        ("SELECT length(group_concat(seq SEPARATOR ',')) FROM seq_1_to_1000", 3892),
    ],
)
def test_a_query_means_the_same_whatever_the_session_is_set_to(shop: Store, url: str, sql: str, answer: object) -> None:
    with closing(connect_mariadb(url, charset="latin1")) as odd, odd.cursor() as cursor:
        cursor.execute(
            "SET sql_mode = 'ANSI_QUOTES,PIPES_AS_CONCAT,NO_BACKSLASH_ESCAPES,HIGH_NOT_PRECEDENCE,"
            "NO_UNSIGNED_SUBTRACTION', collation_connection = 'latin1_german1_ci', group_concat_max_len = 5, "
            "sql_select_limit = 1, lc_time_names = 'de_DE', div_precision_increment = 1, default_week_format = 1"
        )
        strange = open_store("shop", odd, 5, "mysql")
        for store in (shop, strange):
            [found] = store.look([ask(sql)])
            if answer is None:
                assert "a number is out of range (1690)" in why(found)
            else:
                assert only(found) == answer


def test_instants_are_in_utc_whatever_the_zone_of_the_session(shop: Store, url: str) -> None:
    execute_on_mariadb(
        url,
        "CREATE TABLE t (id INT PRIMARY KEY, at TIMESTAMP NULL)",
        "SET time_zone = '+00:00'",
        "INSERT INTO t VALUES (1, '2024-01-01 12:00:00')",
    )
    with closing(connect_mariadb(url, init_command="SET time_zone = '+05:00'")) as odd:
        strange = open_store("shop", odd, 5, "mysql")
        assert picture(strange).rows == picture(shop).rows
        assert picture(strange, hashed=True).hashes == picture(shop, hashed=True).hashes
        [[_, at]] = picture(shop).rows.values()
        assert str(at) == "2024-01-01 12:00:00+00:00"


def test_looks_of_many_threads_do_not_mix(shop: Store) -> None:
    with ThreadPoolExecutor(12) as pool:
        looks = [pool.submit(value, shop, "SELECT :n", n=number) for number in range(400)]
    assert [look.result() for look in looks] == [*range(400)]


async def test_the_loop_goes_on_while_the_server_takes_its_time(shop: Store, url: str) -> None:
    with closing(connect_mariadb(url)) as agent, agent.cursor() as cursor:
        cursor.execute("LOCK TABLES orders WRITE")
        looking = asyncio.create_task(shop.alook([ask("SELECT count(*) AS n FROM orders")]))
        turns = 0
        while turns < 50:  # the look waits for the lock meanwhile, and nobody else for the look
            await asyncio.sleep(0.001)
            turns += 1
        assert not looking.done()
        cursor.execute("UNLOCK TABLES")
    assert await looking == [Rows(("n",), ((3,),))]


async def test_many_asynchronous_looks_at_once_are_all_answered(shop: Store) -> None:
    looks = [shop.alook([ask("SELECT :n AS n", n=number)]) for number in range(50)]
    assert await asyncio.gather(*looks) == [[Rows(("n",), ((number,),))] for number in range(50)]
