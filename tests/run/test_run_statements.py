"""Tools that execute SQL, in whole runs: the statements decide the effect, and what is forbidden is not executed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from guardrail import CallRefused, Guard, Hints, RunStopped
from support.databases import on_every_database
from support.shop import Guards, Shop

ALL = "select id from orders order by id"


def executing(shop: Shop) -> Callable[[str], list[tuple[Any, ...]]]:
    """A tool that executes the text that it is given."""

    def query(text: str) -> list[tuple[Any, ...]]:
        return shop.execute(text)

    return query


def empty(**_: object) -> list[object]:
    return []


def asking(guards: Guards, **declared: Any) -> Guard:
    return guards(tools={"query": {"sql": "text", **declared}})


def recorded(guard: Guard, args: dict[str, object], hints: Hints | None = None) -> str:
    """The effect that a call of `query` has in the record."""
    with guard.run() as run:
        run.call("query", args, empty, hints=hints)
    [call] = guard.ledger.load_run(run.id).calls  # type: ignore[union-attr]
    return call.call.effect


@on_every_database
@pytest.mark.parametrize(
    ("text", "effect"),
    [
        (ALL, "read"),
        (f"{ALL}; {ALL}", "read"),
        (f"{ALL}; delete from refunds", "write"),
        ("update orders set status = 'x' where id = 17", "write"),
        ("select is this sql", "write"),
        (["select 1"], "write"),
        (None, "unknown"),
    ],
)
def test_the_statements_decide_the_effect_in_the_dialect_of_the_store(
    guards: Guards, text: object, effect: str
) -> None:
    assert recorded(asking(guards), {"text": text}) == effect


@pytest.mark.parametrize(
    ("declared", "hints", "effect"),
    [
        ({"effect": "read", "forbids": ["ddl"]}, None, "read"),
        ({}, Hints("read"), "write"),
        ({"dialect": "mysql"}, None, "write"),
    ],
)
def test_what_is_declared_wins_over_the_statement_and_the_statement_over_a_hint(
    guards: Guards, declared: dict[str, Any], hints: Hints | None, effect: str
) -> None:
    assert recorded(asking(guards, **declared), {"text": "delete from refunds where id = 1"}, hints) == effect


@on_every_database
def test_under_a_hold_statements_that_read_go_on_and_one_that_writes_stops_the_run(guards: Guards, shop: Shop) -> None:
    with pytest.raises(RunStopped, match="write under hold"), asking(guards).run() as run:
        query = run.wrap({"query": executing(shop)})["query"]
        run.wrap(shop.cancel_order)(17)
        assert query(text=ALL) == [(17,), (18,)]
        query(text="update orders set status = 'cancelled' where id = 17")
    assert shop.execute("select status from orders where id = 17") == [("paid",)]


@on_every_database
@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("update orders set status = 'x'", "statement 1 has no WHERE that names a column, and would change every row"),
        (f"{ALL}; delete from orders where 1 = 1", "statement 2 has no WHERE that names a column"),
        ("drop table orders", "statement 1 would change the schema or the rights in it"),
        ("execute something", "statement 1 cannot be read"),
        (7, "the argument text is not the text of a statement"),
        (None, "the argument text is missing"),
    ],
)
def test_what_is_forbidden_is_not_executed_and_the_model_is_told_why(
    guards: Guards, shop: Shop, text: object, why: str
) -> None:
    guard = asking(guards, forbids=["no_where", "ddl"], outcomes={"precondition_failed": "allow"})
    with guard.run() as run:
        with pytest.raises(CallRefused) as refused:
            run.call("query", {"text": text}, executing(shop))
        fine = {"text": "update orders set note = 'x' where id = 17"}
        run.call("query", fine, executing(shop))
    assert refused.value.reason == "precondition_failed"
    assert str(refused.value).startswith(f"query was not carried out: {why}")
    assert "orders" not in str(refused.value)
    assert shop.execute("select status, note from orders where id = 17") == [("paid", "x")]


def test_what_is_forbidden_stops_a_strict_run(guards: Guards, shop: Shop) -> None:
    guard = guards(policy="strict", tools={"query": {"sql": "text", "forbids": ["no_where"]}})
    with pytest.raises(RunStopped) as stopped, guard.run() as run:
        run.call("query", {"text": "delete from orders"}, executing(shop))
    assert stopped.value.stop.reason == "precondition_failed"
    assert shop.execute("select count(*) from orders") == [(2,)]
