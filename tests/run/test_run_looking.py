"""A look at the state of now, without a run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from guardrail import Configuration, GuardrailError, InputError
from guardrail.run.live import Live
from guardrail.run.looking import look_now
from support.databases import on_every_database
from support.shop import CONFIGURATION, Shop

pytestmark = on_every_database

INPUTS = {"order_id": 17, "amount": "19.90"}


@pytest.fixture
def live(shop: Shop) -> Iterator[Live]:
    tasks: dict[str, Any] = {
        **CONFIGURATION["tasks"],
        "checked": {"checks": [{"store": "shop", "sql": "select count(*) = 2 from orders"}]},
        "relative": {
            "watch": {"shop.orders": {"key": "id"}},
            "expect": [{"updated": "shop.orders", "key": {"id": 17}, "values": {"amount": {"decreased_by": 1}}}],
        },
        "in_time": {
            "watch": {"shop.orders": {"key": "id"}},
            "expect": [{"updated": "shop.orders", "key": {"id": 17}, "values": {"updated_at": {"during": "run"}}}],
        },
        "listed": {
            "let": {"paid": {"store": "shop", "rows": "select id from orders where status = 'paid'"}},
            "watch": {"shop.orders": {"key": "id"}},
            "expect": [
                {"updated": "shop.orders", "each": "$paid", "key": {"id": "$each.id"}, "values": {"note": "seen"}}
            ],
        },
        "either": {
            "watch": {"shop.orders": {"key": "id"}},
            "any_of": {
                "paid": {"when": {"store": "shop", "sql": "select 1"}, "expect": "nothing"},
                "noted": {"when": {"store": "shop", "sql": "select 0"}, "expect": "nothing"},
            },
        },
    }
    whole = {**CONFIGURATION, "tasks": tasks, "stores": {"shop": {"url": shop.url}}}
    with closing(Live(Configuration.model_validate(whole), {})) as made:
        yield made


def test_checks_alone_can_verify_the_state(live: Live) -> None:
    assert look_now(live, "checked", {}).kind == "verified"


def test_expectations_that_the_state_meets_leave_only_what_cannot_be_told(live: Live, shop: Shop) -> None:
    shop.refund_order(17, "19.90")
    verdict = look_now(live, "refund_order", INPUTS)
    assert (verdict.kind, {f.kind for f in verdict.findings}) == ("unverified", {"check_error"})
    assert {f.place for f in verdict.findings} == {"shop.orders", "shop.refunds"}


def test_expectations_that_the_state_does_not_meet_are_wrong(live: Live, shop: Shop) -> None:
    shop.refund_order(17, "1.90")
    verdict = look_now(live, "refund_order", INPUTS)
    assert verdict.kind == "silent_failure"
    assert [f.kind for f in verdict.findings if f.place == "shop.refunds" and f.kind != "check_error"] == [
        "missing_change"
    ]


@pytest.mark.parametrize("task", ["relative", "in_time", "listed", "either"])
def test_what_rests_on_the_state_before_is_never_judged_wrong_nor_right(live: Live, task: str) -> None:
    verdict = look_now(live, task, {})
    assert (verdict.kind, {f.kind for f in verdict.findings}) == ("unverified", {"check_error"})


def test_a_store_that_is_away_makes_it_unverified(live: Live, shop: Shop) -> None:
    shop.database.vanish()
    assert look_now(live, "checked", {}).kind == "unverified"


def test_an_unknown_task_is_refused_with_a_suggestion(live: Live) -> None:
    with pytest.raises(GuardrailError, match="did you mean `checked`"):
        look_now(live, "cheked", {})


def test_inputs_are_checked(live: Live) -> None:
    with pytest.raises(InputError, match="amount is missing"):
        look_now(live, "refund_order", {"order_id": 17})
