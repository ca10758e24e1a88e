"""What a store tells of its tables and of itself."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from guardrail.errors import StoreError
from guardrail.pictures import ColumnKind, Table
from guardrail.stores.opening import open_store
from guardrail.stores.store import Remark, Store, tables_of

Database = Callable[[str], Path]


def test_the_tables_are_told_by_name_without_the_databases_own(store: Store) -> None:
    tables = tables_of(store, 100)
    assert [(table.name, table.key, table.rows) for table in tables] == [
        ("notes", ("rowid",), 1),
        ("order", ("id",), 1),
        ("orders", ("id",), 3),
        ("refunds", ("id",), 2),
    ]
    kinds: dict[str, ColumnKind] = {"id": "integer", "order_id": "integer", "amount": "decimal"}
    assert tables[3] == Table("refunds", ("id",), ("id", "order_id", "amount"), kinds, frozenset({"id"}), 2)


def test_sqlites_bookkeeping_and_shadow_tables_are_left_out(database: Database) -> None:
    path = database(
        "CREATE TABLE t (id INTEGER PRIMARY KEY AUTOINCREMENT); INSERT INTO t DEFAULT VALUES; ANALYZE;"
        "CREATE VIRTUAL TABLE f USING fts5 (a); CREATE VIRTUAL TABLE g USING fts4 (a); CREATE TABLE f_data_of_ours (a);"
    )
    assert [table.name for table in tables_of(open_store("shop", path, 5))] == ["f", "f_data_of_ours", "g", "t"]


def test_rows_are_counted_up_to_a_limit(store: Store) -> None:
    assert {table.name: table.rows for table in tables_of(store, 1)} == {
        "notes": 1,
        "order": 1,
        "orders": 2,
        "refunds": 2,
    }


def test_the_tables_of_a_store_that_is_away_are_an_error(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="the tables of shop could not be read: there is no database file"):
        tables_of(open_store("shop", tmp_path / "none.db", 5))


def test_a_table_that_cannot_be_read_is_named(database: Database) -> None:
    path = database("CREATE TABLE a (id); CREATE TABLE b (id);")
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute(
            "UPDATE sqlite_master SET sql = 'CREATE VIRTUAL TABLE b USING unknown_module' , rootpage = 0 WHERE name = 'b'"
        )
    with pytest.raises(StoreError, match="the tables of shop could not be read: b: no such module: unknown_module"):
        tables_of(open_store("shop", path, 5))


def test_doctor_warns_of_a_writable_file_and_of_missing_keys(database: Database) -> None:
    path = database("CREATE TABLE heap (a); CREATE TABLE good (id INTEGER PRIMARY KEY);")
    assert open_store("shop", path, 5).examine() == (
        Remark("note", "shop", f"{path} may be written by this process; only the guard's own connections cannot"),
        Remark(
            "warning",
            "shop.heap",
            "it has no key, so its rows go by rowid, which VACUUM may change; declare a key",
        ),
    )


def test_doctor_is_content_with_a_file_that_cannot_be_written(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    def only_to_read(path: Path, mode: int) -> bool:
        return mode != os.W_OK  # told so here, as root may write whatever the file's mode says

    store = open_store("shop", database("CREATE TABLE good (id INTEGER PRIMARY KEY);"), 5)
    monkeypatch.setattr(os, "access", only_to_read)
    assert store.examine() == ()


def test_doctor_tells_that_a_store_is_away(tmp_path: Path) -> None:
    (remark,) = open_store("shop", tmp_path / "none.db", 5).examine()
    assert (remark.level, remark.place) == ("error", "shop")
    assert "there is no database file" in remark.text


def test_doctor_wonders_about_a_database_without_tables() -> None:
    (remark,) = open_store("shop", lambda: sqlite3.connect(":memory:"), 5).examine()
    assert remark == Remark("warning", "shop", "it has no tables; is it the right database?")
