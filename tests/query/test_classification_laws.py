"""A law of the classification: what is told as a read, executed as it is by somebody who may write, changes nothing."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable
from contextlib import closing, suppress
from typing import Any, TypeAlias

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from guardrail.query.classification import classify
from guardrail.query.proof import Dialect
from support.mixtures import law, mixed
from support.shops import Refused, Shop
from support.statements import SHOP, TABLES

ShopOn: TypeAlias = Callable[[Dialect], Shop]

BY_THE_OWNER = re.compile(r"\blower\s*\(|struck|<->|sly|\bany_value\s*\(", re.IGNORECASE)
"""What the owner of the shop hid behind a name: no text tells what it does."""


def assert_changes_nothing(shop: Shop, text: str, dialect: Dialect) -> None:
    if classify(text, dialect).effect == "write" or BY_THE_OWNER.search(text):
        return
    before = shop.before(read_only=False)
    with shop.transaction(read_only=False), suppress(*Refused):
        shop.execute(text)
        assert shop.fingerprint() == before


fewer = settings(parent=law, max_examples=150)


def pairs(dialect: Dialect) -> st.SearchStrategy[str]:
    """One mixture, or two with something between them."""
    between = st.sampled_from([";", "; ", ";\n--", " ; /* ; */", " UNION ", " "])
    return st.one_of(mixed(dialect), st.tuples(mixed(dialect), between, mixed(dialect)).map("".join))


@fewer
@given(pairs("postgres"))
def test_no_mixture_that_is_a_read_changes_anything_on_postgres(shop_on: ShopOn, text: str) -> None:
    assert_changes_nothing(shop_on("postgres"), text, "postgres")


@fewer
@given(pairs("mysql"))
def test_no_mixture_that_is_a_read_changes_anything_on_mariadb(shop_on: ShopOn, text: str) -> None:
    assert_changes_nothing(shop_on("mysql"), text, "mysql")


def dump(connection: sqlite3.Connection) -> list[Any]:
    settings = [connection.execute(f"PRAGMA {name}").fetchall() for name in ("user_version", "database_list")]
    return [*connection.iterdump(), settings, connection.total_changes, connection.in_transaction]


@fewer
@given(pairs("sqlite"))
def test_no_mixture_that_is_a_read_changes_anything_in_sqlite(text: str) -> None:
    if classify(text, "sqlite").effect == "write":
        return
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        connection.executescript(SHOP)
        before = dump(connection)
        with suppress(sqlite3.Error):
            connection.executescript(text)
        assert dump(connection) == before


@pytest.mark.parametrize("dialect", ["sqlite", "postgres", "mysql"])
def test_many_mixtures_are_reads(dialect: Dialect) -> None:
    """The law is not kept by calling everything a write."""
    found = [classify(each.sql, dialect).effect for each in TABLES[dialect].allowed]
    assert found.count("read") > 0.9 * len(found)


@settings(deadline=None)  # the first text imports the parser
@given(st.text(), st.sampled_from(["sqlite", "postgres", "mysql"]))
def test_nothing_that_can_be_written_raises(text: str, dialect: Dialect) -> None:
    found = classify(text, dialect)
    assert found.effect in ("read", "write")
    found.forbidden(["no_where", "ddl"])
