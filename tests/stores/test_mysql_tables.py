"""Which tables a MariaDB database has, what names their rows, and what the database fills by itself."""

from __future__ import annotations

from collections.abc import Generator
from urllib.parse import urlsplit

import pytest

from guardrail.pictures import Table
from guardrail.stores.opening import open_store
from guardrail.stores.store import Store, tables_of
from support.mysql_looks import picture, refusal
from support.servers import empty_database, execute_on_mariadb

KEYS = (
    "CREATE TABLE counted (id INT AUTO_INCREMENT PRIMARY KEY, a INT)",
    "CREATE TABLE composite (a INT, b INT, c INT, PRIMARY KEY (c, a))",
    "CREATE TABLE by_index (a INT UNIQUE, b INT NOT NULL, c INT NOT NULL, d INT NOT NULL UNIQUE, UNIQUE (b, c))",
    "CREATE TABLE nullable (a INT UNIQUE, b INT)",
    "CREATE TABLE prefixed (a TEXT NOT NULL, b INT, UNIQUE (a(10)))",
    "CREATE TABLE heap (a INT)",
    "CREATE TABLE filled (id INT PRIMARY KEY, a INT DEFAULT 5, b INT NOT NULL, c INT AS (b * 2) STORED, "
    "d INT AS (b * 3) VIRTUAL, e DATETIME DEFAULT NOW(), f DATETIME ON UPDATE NOW(), g INT DEFAULT NULL, "
    "h VARCHAR(9) DEFAULT 'NULL', i INT INVISIBLE DEFAULT 1)",
    "CREATE TABLE parted (id INT PRIMARY KEY, a INT) PARTITION BY HASH (id) PARTITIONS 3",
    "CREATE TABLE versioned (id INT PRIMARY KEY, a INT) WITH SYSTEM VERSIONING",
    "CREATE TABLE `order/item % ünï` (`sel``ect %s` INT PRIMARY KEY, `a%%b` JSON)",
    "CREATE VIEW seen AS SELECT a, b FROM by_index",
    "CREATE SEQUENCE numbers",
)


@pytest.fixture
def store(mariadb_url: str) -> Generator[Store]:
    execute_on_mariadb(mariadb_url, *KEYS)
    opened = open_store("shop", mariadb_url, 30)
    yield opened
    opened.close()


@pytest.fixture
def tables(store: Store) -> dict[str, Table]:
    return {table.name: table for table in tables_of(store)}


def test_all_tables_are_named_and_nothing_else(tables: dict[str, Table]) -> None:
    named = {"counted", "composite", "by_index", "nullable", "prefixed", "heap", "filled", "parted", "versioned"}
    assert tables.keys() == named | {"order/item % ünï"}


@pytest.mark.parametrize(
    ("table", "key"),
    [
        ("counted", ("id",)),
        ("composite", ("c", "a")),
        ("by_index", ("d",)),
        ("nullable", None),
        ("prefixed", ("a",)),
        ("heap", None),
        ("parted", ("id",)),
        ("versioned", ("id",)),
        ("order/item % ünï", ("sel`ect %s",)),
    ],
)
def test_a_key_is_the_primary_key_else_the_shortest_that_is_never_null(
    tables: dict[str, Table], table: str, key: tuple[str, ...] | None
) -> None:
    assert tables[table].key == key


@pytest.mark.parametrize(
    ("table", "generated"), [("counted", {"id"}), ("filled", {"a", "c", "d", "e", "f", "h", "i"}), ("heap", set[str]())]
)
def test_what_the_database_fills_is_known(tables: dict[str, Table], table: str, generated: set[str]) -> None:
    assert tables[table].generated == generated


def test_rows_are_counted_up_to_the_limit(store: Store, mariadb_url: str) -> None:
    execute_on_mariadb(mariadb_url, "INSERT INTO heap SELECT seq FROM seq_1_to_50", "INSERT INTO nullable SELECT 1, 2")
    counts = {table.name: table.rows for table in tables_of(store, 10)}
    assert (counts["heap"], counts["nullable"], counts["counted"]) == (11, 1, 0)


def test_odd_names_are_looked_at(store: Store, mariadb_url: str) -> None:
    execute_on_mariadb(mariadb_url, """INSERT INTO `order/item % ünï` VALUES (1, '{"a": 1}')""")
    for hashed in (False, True):
        found = picture(store, "order/item % ünï", hashed=hashed, pinned=((1,),) if hashed else ())
        assert found.rows == {(1,): (1, '{"a": 1}')}
        assert found.kinds == {"sel`ect %s": "integer", "a%%b": "json"}


def test_views_partitions_and_versions_are_looked_at_by_their_name(store: Store, mariadb_url: str) -> None:
    execute_on_mariadb(
        mariadb_url,
        "INSERT INTO by_index VALUES (1, 2, 3, 4)",
        "INSERT INTO parted SELECT seq, seq FROM seq_1_to_9",
        "INSERT INTO versioned VALUES (1, 1)",
        "UPDATE versioned SET a = 2",
    )
    assert picture(store, "seen", key=("a",)).rows == {(1,): (1, 2)}
    assert refusal(store, "seen") == "nothing tells its rows apart; declare a key"
    assert picture(store, "parted").size == 9
    assert picture(store, "versioned").rows == {(1,): (1, 2)}


def test_a_table_of_another_database_is_looked_at_by_both_names(store: Store, mariadb_url: str) -> None:
    with empty_database(mariadb_url) as other:
        execute_on_mariadb(other, "CREATE TABLE t (id INT PRIMARY KEY, a JSON)", "INSERT INTO t VALUES (1, '[]')")
        there = urlsplit(other).path.strip("/")
        found = picture(store, f"{there}.t")
        assert (found.rows, found.kinds) == ({(1,): (1, "[]")}, {"id": "integer", "a": "json"})
        assert refusal(store, f"{there}.other").startswith(f"there is no table {there}.other")


@pytest.mark.parametrize(
    ("table", "says"),
    [
        ("count", "there is no table count; did you mean counted?"),
        ("zzz", "there is no table zzz"),
        ("", "there is no table "),
        ("heap", "nothing tells its rows apart; declare a key"),
    ],
)
def test_a_table_that_cannot_be_looked_at_is_refused(store: Store, table: str, says: str) -> None:
    assert refusal(store, table) == says
