"""Pictures of MariaDB tables: whole or hashed, with a scope, and exact where the server is not."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import closing
from decimal import Decimal
from typing import Any

import pytest

from guardrail.query.proof import prove_condition
from guardrail.stores.opening import open_store
from guardrail.stores.store import Store
from support.mysql_looks import picture, refusal
from support.servers import connect_mariadb, execute_on_mariadb


@pytest.fixture
def store(mariadb_url: str) -> Generator[Store]:
    opened = open_store("shop", mariadb_url, 60)
    yield opened
    opened.close()


def lines(url: str, rows: int) -> None:
    execute_on_mariadb(
        url,
        "CREATE TABLE t (order_id INT, line_no INT, item VARCHAR(20), price DECIMAL(10, 2), PRIMARY KEY (order_id, line_no))",
        f"INSERT INTO t SELECT seq DIV 10, seq MOD 10, CONCAT('item ', seq), seq / 100 FROM seq_0_to_{rows - 1}",
    )


def test_few_rows_are_kept_whole_and_more_by_their_hash(store: Store, mariadb_url: str) -> None:
    lines(mariadb_url, 100)
    whole = picture(store, whole_rows=100)
    assert (whole.size, whole.hashes, whole.key) == (100, None, ("order_id", "line_no"))
    assert whole.rows[3, 7] == (3, 7, "item 37", Decimal("0.37"))
    hashed = picture(store, whole_rows=99, pinned=((3, 7), ("4", "2"), (99, 1), ("x", 1)))
    assert hashed.size == 100
    assert hashed.hashes is not None
    assert hashed.hashes.keys() == whole.rows.keys()
    assert hashed.rows == {(3, 7): whole.rows[3, 7], (4, 2): whole.rows[4, 2]}
    assert refusal(store, most_rows=99).startswith("it has more than 99 rows in scope")
    assert refusal(store, most_rows=99, hashed=True).startswith("it has more than 99 rows in scope")


def test_a_later_picture_has_the_form_of_an_earlier_one(store: Store, mariadb_url: str) -> None:
    lines(mariadb_url, 20)
    assert picture(store, whole_rows=5, hashed=False).hashes is None
    assert picture(store, whole_rows=50, hashed=True).hashes is not None


def test_hashes_tell_exactly_the_rows_that_changed(store: Store, mariadb_url: str) -> None:
    lines(mariadb_url, 25_000)
    before = picture(store)
    execute_on_mariadb(
        mariadb_url,
        "UPDATE t SET price = price + 0.01 WHERE order_id = 17 AND line_no = 3",
        "UPDATE t SET item = UPPER(item) WHERE order_id = 18 AND line_no = 4",
        "UPDATE t SET item = CONCAT(item, ' ') WHERE order_id = 19 AND line_no = 5",
        "UPDATE t SET item = NULL WHERE order_id = 20 AND line_no = 6",
        "DELETE FROM t WHERE order_id = 21 AND line_no = 7",
        "INSERT INTO t VALUES (99999, 1, 'new', 1)",
    )
    after = picture(store, hashed=True, pinned=((99999, 1),))
    assert before.hashes is not None
    assert after.hashes is not None
    changed = {key for key, _ in {*before.hashes.items()} ^ {*after.hashes.items()}}
    assert changed == {(17, 3), (18, 4), (19, 5), (20, 6), (21, 7), (99999, 1)}
    assert after.rows == {(99999, 1): (99999, 1, "new", Decimal("1.00"))}


def test_a_scope_and_columns_that_do_not_matter_are_left_out(store: Store, mariadb_url: str) -> None:
    lines(mariadb_url, 100)
    where = prove_condition("order_id = :id AND item LIKE '%7'", "mysql")
    for hashed in (False, True):
        found = picture(store, where=where, values={"id": 3}, ignore=frozenset({"PRICE"}), hashed=hashed)
        assert found.columns == ("order_id", "line_no", "item")
        assert [*(found.hashes or found.rows)] == [(3, 7)]
    assert refusal(store, where=where) == "the parameter :id has no value (there is none)"


def test_a_scope_is_read_by_its_index(mariadb_url: str) -> None:
    execute_on_mariadb(
        mariadb_url,
        "CREATE TABLE t (id VARCHAR(20) COLLATE utf8mb4_general_ci PRIMARY KEY, customer INT NOT NULL, KEY (customer))",
        "INSERT INTO t SELECT CONCAT('k', seq), seq MOD 1000 FROM seq_1_to_20000",
        "ANALYZE TABLE t",
    )
    with closing(connect_mariadb(mariadb_url)) as mine, mine.cursor() as cursor:
        where = prove_condition("customer = :id", "mysql")
        mine_too = open_store("shop", mine, 30, "mysql")
        assert picture(mine_too, where=where, values={"id": 7}, hashed=True, pinned=(("k7",),)).size == 20
        cursor.execute(
            "SELECT SUM(VARIABLE_VALUE) FROM information_schema.SESSION_STATUS WHERE VARIABLE_NAME LIKE 'Handler_read%'"
        )
        [[read]] = cursor.fetchall()
        assert 20 < read < 1000


def test_keys_that_the_server_takes_for_equal_are_told_apart(store: Store, mariadb_url: str) -> None:
    execute_on_mariadb(
        mariadb_url,
        "CREATE TABLE t (id INT PRIMARY KEY, code VARCHAR(20) COLLATE utf8mb4_general_ci)",
        "INSERT INTO t VALUES (1, 'abc'), (2, 'ABC'), (3, 'abc '), (4, 'ábc'), (5, NULL)",
    )
    keys: list[tuple[Any]] = [("abc",), ("ABC",), ("abc ",), ("ábc",), (None,)]
    whole = picture(store, key=("code",))
    assert [*whole.rows] == keys
    for key in keys:
        pinned = picture(store, key=("code",), hashed=True, pinned=(key,))
        assert pinned.rows == {key: whole.rows[key]}


def test_a_key_that_only_changes_its_case_is_another_key(store: Store, mariadb_url: str) -> None:
    execute_on_mariadb(
        mariadb_url, "CREATE TABLE t (code VARCHAR(9) PRIMARY KEY, a INT)", "INSERT INTO t VALUES ('abc', 1)"
    )
    before = picture(store, hashed=True, pinned=(("abc",),))
    execute_on_mariadb(mariadb_url, "UPDATE t SET code = 'ABC'")
    after = picture(store, hashed=True, pinned=(("abc",),))
    assert (before.rows, after.rows) == ({("abc",): ("abc", 1)}, {})
    assert [*(after.hashes or ())] == [("ABC",)]


@pytest.mark.parametrize("hashed", [False, True])
def test_a_declared_key_that_is_not_unique_is_refused(store: Store, mariadb_url: str, hashed: bool) -> None:
    lines(mariadb_url, 30)
    refused = refusal(store, key=("order_id",), hashed=hashed)
    assert refused.startswith("the key (order_id) is not unique: 27 of 30 rows have the key of another")


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ({"key": ("nonsense",)}, "the key names nonsense; its columns are order_id, line_no, item, price"),
        ({"ignore": frozenset({"nonsense"})}, "`ignore` names nonsense; its columns are"),
        ({"ignore": frozenset({"line_no"})}, "line_no is part of the key and cannot be ignored"),
        ({"pinned": ((1,),)}, "the pinned key (1,) does not fit the key (order_id, line_no)"),
    ],
)
def test_what_does_not_fit_the_table_is_refused(store: Store, mariadb_url: str, asked: Any, says: str) -> None:
    lines(mariadb_url, 5)
    assert refusal(store, **asked).startswith(says)


def test_a_row_that_is_too_long_for_the_server_to_hash_is_refused(store: Store, mariadb_url: str) -> None:
    [[packet]] = execute_on_mariadb(mariadb_url, "SELECT @@max_allowed_packet")
    execute_on_mariadb(
        mariadb_url,
        "CREATE TABLE t (id INT PRIMARY KEY, a LONGTEXT, b LONGTEXT)",
        f"INSERT INTO t VALUES (1, REPEAT('x', {packet // 3}), REPEAT('y', {packet // 3})), (2, 'a', 'b')",
    )
    assert refusal(store, hashed=True).startswith("it has a row that is too long for the server to hash")
    assert picture(store, hashed=True, ignore=frozenset({"b"})).size == 2
    assert picture(store, hashed=False).size == 2


def test_rows_arrive_in_portions_however_many_there_are(store: Store, mariadb_url: str) -> None:
    execute_on_mariadb(
        mariadb_url, "CREATE TABLE t (id INT PRIMARY KEY)", "INSERT INTO t SELECT seq FROM seq_1_to_30001"
    )
    found = picture(store)
    assert found.hashes is not None
    assert [*found.hashes] == [(number,) for number in range(1, 30_002)]
