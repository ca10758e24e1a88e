"""B12: two equal partial refunds are a repeat, or wanted."""

from __future__ import annotations

from typing import Any

import pytest

from guardrail import CallRefused, Guard, RunStopped
from support.cases import history_of, outcome_of, outcomes
from support.shop import Guards, Shop

REFUND: dict[str, Any] = {"effect": "write", "once_per": ["payment", "line"]}


def guard_of(guards: Guards, **declared: Any) -> Guard:
    return guards(tools={"refund": {**REFUND, **declared}})


def refunds(shop: Shop) -> list[tuple[Any, ...]]:
    return shop.execute("select order_id, amount from refunds order by id")


def refund_of(shop: Shop, *, breaks: bool = False) -> Any:
    def refund(payment: str, line: int, amount: str) -> dict[str, object]:
        shop.execute("insert into refunds (order_id, amount) values (?, ?)", line, amount)
        if breaks:
            raise RuntimeError("the mail to the customer could not be written")
        return {"refunded": amount}

    return refund


@pytest.mark.case("B12", "same declared key, same amount")
def test_the_same_refund_twice_is_a_duplicate(guards: Guards, shop: Shop) -> None:
    guard = guard_of(guards)
    with guard.run() as run:
        refund = run.wrap(refund_of(shop))
        refund("P1", 1, "40.00")
        with pytest.raises(CallRefused, match="already done") as refused:
            refund("P1", 1, "40.00")
    assert refused.value.reason == "duplicate"
    assert refunds(shop) == [(1, 40)]


@pytest.mark.case("B12", "other line, same amount")
def test_the_same_amount_for_another_line_is_another_refund(guards: Guards, shop: Shop) -> None:
    with guard_of(guards).run() as run:
        refund = run.wrap(refund_of(shop))
        refund("P1", 1, "40.00")
        refund("P1", 2, "40.00")
    assert refunds(shop) == [(1, 40), (2, 40)]


@pytest.mark.case("B12", "same key, other amount")
def test_the_same_refund_with_another_amount_is_a_conflict_and_stops_the_run(guards: Guards, shop: Shop) -> None:
    with pytest.raises(RunStopped) as caught, guard_of(guards).run() as run:
        refund = run.wrap(refund_of(shop))
        refund("P1", 1, "40.00")
        refund("P1", 1, "45.00")
    assert (caught.value.stop.reason, caught.value.stop.call) == ("conflict", 2)
    assert refunds(shop) == [(1, 40)]


@pytest.mark.case("B12", "no key declared, first call returned ok, equal args")
def test_without_a_declared_key_a_clean_repeat_is_allowed_and_flagged(guards: Guards, shop: Shop) -> None:
    guard = guard_of(guards, once_per=[])
    with guard.run() as run:
        refund = run.wrap(refund_of(shop))
        refund("P1", 1, "40.00")
        refund("P1", 1, "40.00")
    assert refunds(shop) == [(1, 40), (1, 40)]
    history = history_of(guard, run.id)
    assert [outcome_of(history, number).rule for number in (1, 2)] == ["", "repeat: equal"]


@pytest.mark.case("B12", "next run, same task")
def test_what_was_done_in_one_run_may_be_done_in_the_next(guards: Guards, shop: Shop) -> None:
    guard = guard_of(guards)
    for _ in range(2):
        with guard.run() as run:
            run.wrap(refund_of(shop))("P1", 1, "40.00")
    assert refunds(shop) == [(1, 40), (1, 40)]


@pytest.mark.case("B12", "refund committed, then the tool raised")
@pytest.mark.parametrize("key", [["payment", "line"], []])
def test_a_refund_that_was_committed_before_the_tool_raised_is_in_doubt_and_not_repeated(
    guards: Guards, shop: Shop, key: list[str]
) -> None:
    guard = guard_of(guards, once_per=key)
    with guard.run() as run:
        with pytest.raises(RuntimeError):
            run.call("refund", {"payment": "P1", "line": 1, "amount": "40.00"}, refund_of(shop, breaks=True), id="c1")
        with pytest.raises(CallRefused) as refused:
            run.call("refund", {"payment": "P1", "line": 1, "amount": "40.00"}, refund_of(shop), id="c2")
    assert refused.value.reason == "in_doubt"
    assert refunds(shop) == [(1, 40)]
    assert outcomes(guard, run.id) == {"c1": "in_doubt", "c2": "refused"}
