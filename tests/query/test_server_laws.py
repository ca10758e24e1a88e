"""A law of the proof on real servers: whatever it lets through changes nothing, however statements are mixed."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import pytest
from hypothesis import given

from guardrail.errors import QueryRefused
from guardrail.query.proof import Dialect, prove
from support.mixtures import law, mixed
from support.shops import Refused, Shop

ShopOn: TypeAlias = Callable[[Dialect], Shop]

BY_THE_OWNER = ("LOWER(", "struck", "<->", "sly", "ANY_VALUE(")
"""What the owner of the shop made of names that pass: only the read-only transaction stops that."""


def assert_changes_nothing(shop: Shop, text: str, dialect: Dialect) -> None:
    try:
        query = prove(text, dialect)
    except QueryRefused:
        return
    if any(name in query.rendered for name in BY_THE_OWNER):
        return
    before = shop.before(read_only=False)
    with shop.transaction(read_only=False):
        try:
            shop.answer(query, dict.fromkeys(query.parameters, 1))
        except Refused:
            return
        assert shop.fingerprint() == before


@law
@given(mixed("postgres"))
def test_no_mixture_that_passes_changes_anything_on_postgres(shop_on: ShopOn, text: str) -> None:
    assert_changes_nothing(shop_on("postgres"), text, "postgres")


@law
@given(mixed("mysql"))
def test_no_mixture_that_passes_changes_anything_on_mariadb(shop_on: ShopOn, text: str) -> None:
    assert_changes_nothing(shop_on("mysql"), text, "mysql")


@pytest.mark.parametrize("dialect", ["postgres", "mysql"])
def test_the_law_sees_what_a_refused_statement_would_do(dialect: Dialect, shop_on: ShopOn) -> None:
    shop = shop_on(dialect)
    with shop.transaction(read_only=False):
        shop.execute("SELECT strike(1)")
        assert shop.fingerprint() != shop.before(read_only=False)
