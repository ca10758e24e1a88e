"""Where a store may be, and what is said when it cannot be there."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from guardrail import Configuration, Guard
from guardrail.errors import ConfigurationError, StoreError
from guardrail.pictures import Rows, Unanswered
from guardrail.query.proof import prove
from guardrail.stores.opening import open_store
from guardrail.stores.store import Ask, Store

COUNT = Ask(prove("SELECT count(*) AS n FROM orders", "sqlite"))


def assert_reads_the_shop(store: Store) -> None:
    assert store.look([COUNT]) == [Rows(("n",), ((3,),))]


def test_a_url_with_an_absolute_path_is_opened(shop: Path) -> None:
    store = open_store("shop", f"sqlite:///{shop}", 5)
    assert (store.name, store.dialect) == ("shop", "sqlite")
    assert_reads_the_shop(store)


def test_a_relative_path_is_taken_from_where_it_was_opened(shop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(shop.parent)
    stores = [open_store("shop", where, 5) for where in ("sqlite:///shop.db", "shop.db", Path("shop.db"))]
    monkeypatch.chdir("/")
    for store in stores:
        assert_reads_the_shop(store)


@pytest.mark.parametrize("name", ["a b.db", "100%25.db", "what?.db", "a#b.db", "ünï 😀.db", "a&mode=rwc.db", "a:b.db"])
def test_a_path_may_hold_any_character(shop: Path, name: str) -> None:
    odd = shop.rename(shop.with_name(name))
    assert_reads_the_shop(open_store("shop", odd, 5))
    assert_reads_the_shop(open_store("shop", str(odd), 5))


def test_a_factory_of_connections_is_asked_anew_for_every_look(shop: Path) -> None:
    made: list[sqlite3.Connection] = []

    def connect() -> sqlite3.Connection:
        made.append(sqlite3.connect(shop))
        return made[-1]

    store = open_store("shop", connect, 5)
    assert_reads_the_shop(store)
    assert_reads_the_shop(store)
    assert len(made) == 2
    for connection in made:
        with pytest.raises(sqlite3.ProgrammingError, match="closed"):
            connection.execute("SELECT 1")


@pytest.mark.parametrize("where", [":memory:", "sqlite://", "sqlite:///:memory:", "sqlite:///", ""])
def test_a_private_database_in_memory_is_refused_with_the_way_to_a_shared_one(where: str) -> None:
    with pytest.raises(StoreError, match="mode=memory&cache=shared"):
        open_store("shop", where, 5)


@pytest.mark.parametrize(
    ("where", "why"),
    [
        ("oracle://user:secret@host/db", "a scheme that is not supported"),
        ("file:shop.db?mode=rw", "file"),
        ("sqlite://host/shop.db", "host"),
        ("sqlite:shop.db", "host"),
        ("sqlite:///shop.db?mode=rwc", "options"),
        (17, "int"),
        (None, "NoneType"),
    ],
)
def test_anything_else_is_refused_with_the_forms_that_are_taken(where: object, why: str) -> None:
    with pytest.raises(StoreError, match=why) as refusal:
        open_store("shop", where, 5)
    assert "sqlite:///relative.db" in str(refusal.value)
    assert "secret" not in str(refusal.value)


def test_a_connection_instead_of_a_factory_is_refused() -> None:
    connection = sqlite3.connect(":memory:")
    try:
        answer = open_store("shop", lambda: connection, 5)
        connection.execute("CREATE TABLE orders (id)")
        connection.execute("INSERT INTO orders VALUES (1)")
        (refused,) = answer.look([COUNT])
        assert isinstance(refused, Unanswered)
        assert "must open a new one for every look" in refused.why
        assert connection.execute("SELECT count(*) FROM orders").fetchone() == (1,)
    finally:
        connection.close()


def test_a_timeout_must_leave_some_time(shop: Path) -> None:
    with pytest.raises(StoreError, match="more than 0 s"):
        open_store("shop", shop, 0)


@pytest.mark.parametrize("where", ["sqlite:///a\0b.db", "a\0b.db", Path("a\0b.db")])
def test_a_path_with_a_nul_character_is_refused(where: object) -> None:
    with pytest.raises(StoreError, match="the store shop cannot be opened: its path holds a NUL character"):
        open_store("shop", where, 5)


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
