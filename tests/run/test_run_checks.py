"""Checks of the end state, settling, alternatives and preconditions, in whole runs."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import Any

import pytest

from guardrail import CallRefused, RunStopped, State, Verdict
from support.databases import on_every_database
from support.shop import Guards, Shop

pytestmark = on_every_database

Task = dict[str, Any]


def verdict(guards: Guards, shop: Shop, task: Task, inputs: dict[str, object] | None = None) -> Verdict:
    """What a run of this task comes to that refunds order 17."""
    with guards(tasks={"checked": task}).run("checked", inputs=inputs) as run:
        run.wrap(shop.refund_order)(17, "19.90")
    assert run.verdict is not None
    return run.verdict


def sql(text: str, **more: object) -> Task:
    return {"checks": [{"store": "shop", "sql": text, **more}]}


def test_a_query_with_one_true_value_passes(guards: Guards, shop: Shop) -> None:
    assert verdict(guards, shop, sql("select count(*) = 1 from refunds")).kind == "verified"


def test_a_query_with_another_answer_fails_and_says_what_it_answered(guards: Guards, shop: Shop) -> None:
    found = verdict(
        guards, shop, sql("select count(*) from refunds", equals=2, name="two refunds", because="both lines")
    )
    assert [(f.kind, f.place, f.expected, f.actual) for f in found.findings] == [("check_failed", "two refunds", 2, 1)]
    assert "both lines" in found.findings[0].text


def test_an_answer_may_be_rows_and_name_inputs(guards: Guards, shop: Shop) -> None:
    task: Task = sql("select order_id, amount from refunds", equals=[{"order_id": "$order_id", "amount": "19.90"}])
    task["inputs"] = {"order_id": "integer"}
    assert verdict(guards, shop, task, {"order_id": 17}).kind == "verified"
    assert verdict(guards, shop, task, {"order_id": 18}).kind == "silent_failure"


def test_a_check_that_cannot_be_made_is_never_a_pass(guards: Guards, shop: Shop) -> None:
    found = verdict(guards, shop, sql("select nothing from nowhere"))
    assert (found.kind, [f.kind for f in found.findings]) == ("unverified", ["check_error"])


def has_refund(state: State) -> bool | str:
    rows = state.rows("shop", "select amount from refunds where order_id = :id", id=17)
    return True if len(rows) == 1 else f"{len(rows)} refunds"


async def has_refund_async(state: State) -> bool:
    await asyncio.sleep(0)
    return has_refund(state) is True


def denies(state: State) -> bool:
    return False


def complains(state: State) -> str:
    return "the ledger is off by one"


def broken(state: State) -> bool:
    raise KeyError("the check itself is broken")


@pytest.mark.parametrize(
    ("function", "kind"),
    [
        (has_refund, "verified"),
        (has_refund_async, "verified"),
        (denies, "silent_failure"),
        (complains, "silent_failure"),
        (broken, "unverified"),
    ],
)
def test_a_check_may_be_python(guards: Guards, shop: Shop, function: Any, kind: str) -> None:
    assert verdict(guards, shop, {"checks": [{"python": function}]}).kind == kind


async def test_in_an_asynchronous_run_a_slow_check_does_not_hold_up_the_loop(guards: Guards, shop: Shop) -> None:
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            await asyncio.sleep(0.01)
            ticks += 1

    def slow(state: State) -> bool:
        time.sleep(0.3)
        return True

    ticking = asyncio.create_task(tick())
    async with guards(tasks={"checked": {"checks": [{"python": slow}]}}).run("checked") as run:
        before = ticks
    ticking.cancel()
    assert ticks - before >= 5
    assert run.verdict is not None
    assert run.verdict.kind == "verified"


SETTLING: Task = {
    "watch": {"shop.refunds": {"key": "id"}},
    "expect": [{"inserted": "shop.refunds", "values": {"order_id": 17, "amount": "19.90"}}],
    "settle": "5s",
}


def test_what_is_written_a_moment_later_is_waited_for(guards: Guards, shop: Shop) -> None:
    with guards(tasks={"checked": SETTLING}).run("checked") as run:
        late = threading.Timer(0.3, shop.refund_order, (17, "19.90"))
        late.start()
    late.join()
    assert run.verdict is not None
    assert run.verdict.kind == "verified"
    assert run.verdict.looks > 1


def test_what_never_comes_is_missing_when_the_time_is_up(guards: Guards, shop: Shop) -> None:
    with guards(tasks={"checked": {**SETTLING, "settle": "300ms"}}).run("checked") as run:
        pass
    assert run.verdict is not None
    assert [f.kind for f in run.verdict.findings] == ["missing_change"]


ALTERNATIVES: Task = {
    "watch": {"shop.orders": {"key": "id", "ignore": ["updated_at"]}, "shop.refunds": {"key": "id"}},
    "any_of": {
        "refunded": {
            "when": {"store": "shop", "sql": "select status = 'paid' from orders where id = 17"},
            "expect": [
                {"updated": "shop.orders", "key": {"id": 17}, "values": {"status": "refunded"}},
                {"inserted": "shop.refunds", "values": {"order_id": 17, "amount": {"any": True}}},
            ],
        },
        "left_alone": {"expect": "nothing"},
    },
}


def test_the_alternative_is_chosen_by_the_state_before_and_named_by_the_verdict(guards: Guards, shop: Shop) -> None:
    found = verdict(guards, shop, ALTERNATIVES)
    assert (found.kind, found.alternative) == ("verified", "refunded")


def test_the_other_alternative_applies_where_the_first_does_not(guards: Guards, shop: Shop) -> None:
    shop.execute("update orders set status = 'open' where id = 17")
    found = verdict(guards, shop, ALTERNATIVES)
    assert (found.kind, found.alternative) == ("silent_failure", "left_alone")


def refund_with(guards: Guards, **tool: object) -> Any:
    return guards(tools={"refund_order": {"effect": "write", **tool}})


def test_a_stored_precondition_that_does_not_hold_refuses_the_call_in_the_policys_words(
    guards: Guards, shop: Shop
) -> None:
    shop.execute("update orders set status = 'open' where id = 17")
    paid = {
        "store": "shop",
        "sql": "select status = 'paid' from orders where id = :order_id",
        "because": "only a paid order",
    }
    with refund_with(guards, requires=[paid]).run() as run:
        refund = run.wrap(shop.refund_order)
        with pytest.raises(CallRefused, match="only a paid order"):
            refund(17, "19.90")
    assert shop.calls == []
    assert run.open_holds == 1


def test_a_precondition_that_cannot_be_checked_stops_the_run_as_the_guards_own_failure(
    guards: Guards, shop: Shop
) -> None:
    asks = {"store": "shop", "sql": "select status = 'paid' from ordrs where id = :order_id"}
    with pytest.raises(RunStopped) as caught, refund_with(guards, requires=[asks]).run() as run:
        run.wrap(shop.refund_order)(17, "19.90")
    assert caught.value.stop.reason == "guard_error"
    assert shop.calls == []


def test_an_expression_over_the_arguments_refuses_what_it_forbids(guards: Guards, shop: Shop) -> None:
    guard = refund_with(guards, requires=[{"cel": "args.order_id != 18", "because": "not that one"}])
    with guard.run() as run:
        refund = run.wrap(shop.refund_order)
        with pytest.raises(CallRefused, match="not that one"):
            refund(order_id=18, amount="5.00")
        run.user_turn()
        refund(order_id=17, amount="19.90")
    assert shop.calls == ["refund_order"]


def test_an_expression_that_fails_is_never_a_no_and_never_a_yes(guards: Guards, shop: Shop) -> None:
    guard = refund_with(guards, requires=[{"cel": "args.colour == 'red'"}])
    with pytest.raises(RunStopped) as caught, guard.run() as run:
        run.wrap(shop.refund_order)(17, "19.90")
    assert caught.value.stop.reason == "guard_error"


def test_an_argument_that_does_not_fit_refuses_the_call(guards: Guards, shop: Shop) -> None:
    guard = refund_with(guards, args={"amount": {"type": "decimal", "above": 0}})
    with guard.run() as run:
        refund = run.wrap(shop.refund_order)
        with pytest.raises(CallRefused, match="amount must be above 0"):
            refund(17, "-19.90")
        refund(17, "19.90")
    assert (shop.calls, run.open_holds) == (["refund_order"], 0)


def test_a_fact_must_have_been_found_before(guards: Guards, shop: Shop) -> None:
    looked_up = {
        "earlier": "lookup_order",
        "same": ["order_id"],
        "at": "/status",
        "is": "paid",
        "because": "look first",
    }
    with refund_with(guards, requires=[looked_up]).run() as run:
        lookup, refund = run.wrap(shop.lookup_order, shop.refund_order)
        lookup(18)
        with pytest.raises(CallRefused, match="look first"):
            refund(17, "19.90")
        lookup(17)
        refund(17, "19.90")
    assert shop.calls[-1] == "refund_order"


def test_a_failed_precondition_stops_where_the_policy_is_strict(guards: Guards, shop: Shop) -> None:
    guard = guards(policy="strict", tools={"refund_order": {"effect": "write", "args": {"amount": {"above": 0}}}})
    with pytest.raises(RunStopped) as caught, guard.run() as run:
        run.wrap(shop.refund_order)(17, "-1")
    assert caught.value.stop.reason == "precondition_failed"
    assert shop.calls == []


async def test_a_precondition_is_checked_off_the_loop_and_holds_the_same(guards: Guards, shop: Shop) -> None:
    paid = {"store": "shop", "sql": "select status = 'paid' from orders where id = :order_id"}

    async def refund_order(order_id: int, amount: str) -> object:
        return shop.refund_order(order_id, amount)

    async with refund_with(guards, requires=[paid]).run() as run:
        refund = run.wrap(refund_order)
        await refund(17, "19.90")
        with pytest.raises(CallRefused):
            await refund(17, "19.90")
    assert shop.calls == ["refund_order"]


def test_patterns_declare_tools_by_name(guards: Guards, shop: Shop) -> None:
    guard = guards(tools={"note_*": {"effect": "write", "args": {"note": {"longest": 3}}}})
    with guard.run() as run, pytest.raises(CallRefused, match="note"):
        run.wrap(shop.note_order)(17, "far too long")
    assert shop.calls == []


def test_an_argument_may_decide_the_effect(guards: Guards, shop: Shop) -> None:
    effect = {"by": "args.action", "read": ["get"], "write": ["set"]}
    guard = guards(tools={"orders": {"effect": effect}})

    def orders(action: str) -> str:
        shop.calls.append(action)
        return "done"

    with pytest.raises(RunStopped), guard.run() as run:
        tool = run.wrap(orders)
        run.wrap(shop.cancel_order)(17)
        tool("get")
        with pytest.raises(CallRefused):
            tool("poke")
        tool("set")
    assert shop.calls == ["cancel_order", "get"]
