"""The tables of statements against real servers, as whoever may do everything."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import closing
from typing import Any, TypeAlias

import pytest

from guardrail.pictures import Picture, Unanswered
from guardrail.query.proof import Dialect, Query, prove, prove_condition
from guardrail.stores.opening import open_store
from guardrail.stores.store import Ask, Photograph
from support.shops import Refused, Shop
from support.statements import TABLES, Statement, conditions, statements

ShopOn: TypeAlias = Callable[[Dialect], Shop]

SERVERS: tuple[Dialect, ...] = ("postgres", "mysql")


def on_servers(found: Callable[[Dialect], list[Any]]) -> list[Any]:
    return [
        pytest.param(dialect, *parameter.values, id=f"{dialect}: {parameter.id}")
        for dialect in SERVERS
        for parameter in found(dialect)
    ]


@pytest.mark.parametrize(("dialect", "statement"), on_servers(lambda dialect: statements(dialect, "allowed")))
def test_what_passes_answers_as_it_was_written_and_changes_nothing(
    dialect: Dialect, statement: Statement, shop_on: ShopOn
) -> None:
    shop = shop_on(dialect)
    if statement.needs and not shop.has(statement.needs):
        reason = f"needs the extension {statement.needs}"
        pytest.fail(reason) if os.environ.get("GUARDRAIL_CI") else pytest.skip(reason)
    query = prove(statement.sql, dialect)
    for read_only in (True, False):
        before = shop.before(read_only=read_only)
        with shop.transaction(read_only=read_only):
            answer = shop.answer(query, statement.values)
            assert shop.fingerprint() == before
            if statement.compares:
                assert answer == shop.answer_to(statement.sql, statement.values)


@pytest.mark.parametrize(("dialect", "statement"), on_servers(lambda dialect: conditions(dialect, "allowed")))
def test_a_condition_that_passes_chooses_as_it_was_written_and_changes_nothing(
    dialect: Dialect, statement: Statement, shop_on: ShopOn
) -> None:
    shop = shop_on(dialect)
    condition = prove_condition(statement.sql, dialect)
    chosen = "SELECT id FROM orders WHERE ({}) ORDER BY id".format
    query = Query(statement.sql, dialect, chosen(condition.rendered), condition.parameters, ())
    before = shop.before(read_only=False)
    with shop.transaction(read_only=False):
        answer = shop.answer(query, statement.values)
        assert shop.fingerprint() == before
        assert answer == shop.answer_to(chosen(f"{statement.sql}\n"), statement.values)


@pytest.mark.parametrize(("dialect", "statement"), on_servers(lambda dialect: statements(dialect, "refused")))
def test_what_is_refused_would_do_what_the_table_says(dialect: Dialect, statement: Statement, shop_on: ShopOn) -> None:
    assert statement.harm
    if statement.does != "never":
        assert deed(shop_on(dialect), statement.sql) == statement.does


def deed(shop: Shop, text: str) -> str:
    """What a text does that is executed as it is, in a transaction that could write."""
    before = shop.before(read_only=False)
    undone = False
    try:
        with shop.transaction(read_only=False):
            try:
                shop.execute(text)
            except Refused:
                undone = shop.is_open
                return "fails"
            if as_far_as_seen(shop) != before:
                return "changes"
            undone = shop.is_open
            return "runs"
    finally:
        if not undone:
            shop.restore()


def as_far_as_seen(shop: Shop) -> Mapping[str, object] | None:
    """The fingerprint; None where the statement has shut even us out."""
    try:
        return shop.fingerprint()
    except Refused:
        return None


@pytest.mark.parametrize(
    ("dialect", "text"),
    [
        ("postgres", "SELECT lower(id) FROM members"),
        ("postgres", "SELECT m.struck FROM members AS m"),
        ("postgres", "SELECT id <-> 1 FROM members"),
        ("postgres", "SELECT 1::struck_id"),
        ("postgres", "SELECT * FROM sly"),
        ("mysql", "SELECT any_value(1)"),
        ("mysql", "SELECT * FROM sly_one"),
    ],
)
def test_what_the_owner_hid_behind_a_name_is_stopped_by_the_read_only_transaction(
    dialect: Dialect, text: str, shop_on: ShopOn
) -> None:
    """An overload, a function of rows, an operator, a domain, a view: no text tells what they do."""
    shop = shop_on(dialect)
    query = prove(text, dialect)
    with shop.transaction(read_only=True), pytest.raises(Refused, match=r"(?i)read.only transaction"):
        shop.answer(query, {})
    before = shop.before(read_only=False)
    with shop.transaction(read_only=False):
        shop.answer(query, {})
        assert shop.fingerprint() != before
    shop.restore()


@pytest.mark.parametrize(
    ("dialect", "setting"),
    [
        ("postgres", "SET LOCAL standard_conforming_strings = off"),
        ("postgres", "SET LOCAL search_path = public, pg_catalog"),
        ("postgres", "SET LOCAL quote_all_identifiers = on; SET LOCAL transform_null_equals = on"),
        ("mysql", "SET sql_mode = ''"),
        ("mysql", "SET sql_mode = 'ANSI_QUOTES,PIPES_AS_CONCAT,IGNORE_SPACE,HIGH_NOT_PRECEDENCE'"),
        ("mysql", "SET sql_mode = 'NO_BACKSLASH_ESCAPES'"),
        ("mysql", "SET sql_mode = 'ORACLE'"),
        ("mysql", "SET sql_mode = 'MSSQL'"),
    ],
)
def test_what_passes_changes_nothing_whatever_the_session_takes_texts_for(
    dialect: Dialect, setting: str, shop_on: ShopOn
) -> None:
    shop = shop_on(dialect)
    queries = [(prove(each.sql, dialect), each.values) for each in TABLES[dialect].allowed if not each.needs]
    answered = 0
    for query, values in queries:
        with shop.transaction(read_only=False):
            shop.execute(setting)
            before = shop.fingerprint() if not answered else None
            try:
                shop.answer(query, values)
                answered += 1
            except Refused:
                continue
            if before:
                assert shop.fingerprint() == before
    shop.restore()
    assert answered > len(queries) / 2


BEYOND_THE_ENGINE: dict[Dialect, tuple[str, ...]] = {
    "postgres": ("ANALYZE", "REINDEX", "CLUSTER", "pg_stat_reset"),
    "mysql": ("lock(", "_locks(", "INTO OUTFILE", "INTO DUMPFILE"),
}
"""Of statements that the proof refuses, those that whoever may do everything can do in a read-only transaction."""


@pytest.mark.parametrize("dialect", SERVERS)
def test_what_is_refused_could_not_change_the_data_through_a_store_even_if_it_passed(
    dialect: Dialect, shop_on: ShopOn
) -> None:
    shop = shop_on(dialect)
    before = shop.before(read_only=False)
    texts = [each.sql for each in TABLES[dialect].refused if each.does != "never"]
    with closing(open_store("shop", shop.url, 10)) as store:
        for text in texts:
            if not any(part in text for part in BEYOND_THE_ENGINE[dialect]):
                store.look([Ask(Query(text, dialect, text, (), ()))])
    with shop.transaction(read_only=False):
        assert shop.fingerprint() == before


@pytest.mark.parametrize("dialect", SERVERS)
def test_what_passes_is_answered_by_a_store(dialect: Dialect, shop_on: ShopOn) -> None:
    allowed = [each for each in TABLES[dialect].allowed if not each.needs]
    with closing(open_store("shop", shop_on(dialect).url, 10)) as store:
        answers = store.look([Ask(prove(each.sql, dialect), each.values) for each in allowed])
    unanswered = [answer.why for answer in answers if isinstance(answer, Unanswered)]
    assert [why for why in unanswered if "name them apart with AS" not in why] == []


@pytest.mark.parametrize("dialect", SERVERS)
@pytest.mark.parametrize(
    "name",
    [
        'members"; DROP TABLE members; --',
        "members`; DROP TABLE members; -- ",
        "members; DELETE FROM members",
        "members WHERE strike(1) > 0 --",
        "(SELECT strike(1))",
        "strike(1)",
        "members.struck",
        "members/*! , strike(1) */",
        "id, strike(1)",
        "id' OR '1'='1",
        "%(x)s",
        "$1",
        "\\",
        "",
    ],
)
def test_a_name_of_a_watch_is_never_more_than_a_name(dialect: Dialect, name: str, shop_on: ShopOn) -> None:
    shop = shop_on(dialect)
    before = shop.before(read_only=False)
    with closing(open_store("shop", shop.url, 10)) as store:
        of_table, by_key, without = store.look(
            [
                Photograph("shop.members", name),
                Photograph("shop.members", "members", key=(name,)),
                Photograph("shop.members", "members", ignore=frozenset({name})),
            ]
        )
    assert isinstance(of_table, Unanswered)
    assert isinstance(by_key, Unanswered)
    assert isinstance(without, Unanswered | Picture)
    with shop.transaction(read_only=False):
        assert shop.fingerprint() == before


def test_a_text_with_a_backslash_stays_one_text_whatever_the_session_says(shop_on: ShopOn) -> None:
    shop = shop_on("postgres")
    query = prove(r"SELECT 'a\' AS a, '; DELETE FROM members; --' AS b, $$\$$ AS c, E'\\' AS d", "postgres")
    for setting in ("on", "off"):
        with shop.transaction(read_only=False):
            shop.execute(f"SET LOCAL standard_conforming_strings = {setting}")
            assert shop.answer(query, {}) == [("a\\", "; DELETE FROM members; --", "\\", "\\")]
