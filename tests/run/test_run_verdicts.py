"""What a run comes to, judged by the live database."""

from __future__ import annotations

from contextlib import suppress

import pytest

from guardrail import Guard, RunStopped, SilentFailure, Verdict
from support.databases import on_every_database
from support.shop import Guards, Shop

pytestmark = on_every_database

INPUTS = {"order_id": 17, "amount": "19.90"}


def refund(guard: Guard, shop: Shop, amount: str = "19.90") -> Verdict:
    with guard.run("refund_order", inputs=INPUTS) as run:
        run.wrap(shop.refund_order)(order_id=17, amount=amount)
    assert run.verdict is not None
    return run.verdict


def test_a_run_that_did_what_the_task_asks_is_verified(guard: Guard, shop: Shop) -> None:
    verdict = refund(guard, shop)
    assert (verdict.kind, verdict.findings) == ("verified", ())


def test_a_run_that_ended_cleanly_with_a_wrong_value_is_a_silent_failure(guard: Guard, shop: Shop) -> None:
    verdict = refund(guard, shop, amount="91.90")
    assert verdict.kind == "silent_failure"
    finding = next(f for f in verdict.findings if f.column == "amount")
    assert finding.kind == "wrong_value"
    assert "91.9" in finding.text
    assert "19.90" in finding.text


def test_a_run_that_did_nothing_misses_the_change(guard: Guard) -> None:
    with guard.run("refund_order", inputs=INPUTS) as run:
        pass
    assert run.verdict is not None
    assert {f.kind for f in run.verdict.findings} == {"missing_change"}


def test_a_change_that_nobody_asked_for_is_named_with_its_row(guard: Guard, shop: Shop) -> None:
    with guard.run("refund_order", inputs=INPUTS) as run:
        run.wrap(shop.refund_order)(order_id=17, amount="19.90")
        run.wrap(shop.note_order)(order_id=18, note="oops")
    assert run.verdict is not None
    assert [(f.kind, dict(f.key), f.column) for f in run.verdict.findings] == [
        ("unrequested_change", {"id": 18}, "note")
    ]


def test_nothing_may_change_where_nothing_is_expected(guard: Guard, shop: Shop) -> None:
    with guard.run("look_only") as run:
        run.wrap(shop.note_order)(order_id=18, note="oops")
    assert run.verdict is not None
    assert run.verdict.kind == "silent_failure"


def test_a_run_without_a_contract_is_unverified(guard: Guard, shop: Shop) -> None:
    with guard.run() as run:
        run.wrap(shop.lookup_order)(order_id=17)
    assert run.verdict is not None
    assert run.verdict.kind == "unverified"
    assert "contract" in run.verdict.because


def test_an_agents_own_error_passes_through_and_the_state_is_judged_all_the_same(guard: Guard) -> None:
    run = guard.run("refund_order", inputs=INPUTS)
    with pytest.raises(ZeroDivisionError), run:
        _ = 1 / 0
    assert run.verdict is not None
    assert run.verdict.kind == "agent_error"
    assert run.verdict.state_is_wrong


def test_an_abandoned_run_is_an_open_failure_not_a_silent_one(guard: Guard) -> None:
    with guard.run("refund_order", inputs=INPUTS) as run:
        run.abandon("the customer has changed their mind")
    assert run.verdict is not None
    assert run.verdict.kind == "agent_error"
    assert "changed their mind" in run.verdict.because


def test_a_stopped_run_is_judged_too_and_says_what_the_stop_left_behind(guard: Guard, shop: Shop) -> None:
    run = guard.run("refund_order", inputs=INPUTS)
    with pytest.raises(RunStopped) as caught, run:
        run.wrap(shop.note_order)(order_id=17, note="half way")
        run.wrap(shop.cancel_order)(order_id=17)
        run.wrap(shop.refund_order)(order_id=17, amount="19.90")
    assert caught.value.verdict is run.verdict
    assert run.verdict is not None
    assert run.verdict.kind == "stopped"
    assert {f.kind for f in run.verdict.findings} == {"missing_change", "unrequested_change"}


def test_a_silent_failure_is_raised_where_the_task_says_so(guards: Guards, shop: Shop) -> None:
    guard = guards(on_silent_failure="raise")
    with pytest.raises(SilentFailure) as caught:
        refund(guard, shop, amount="1.00")
    assert caught.value.verdict.kind == "silent_failure"


def test_a_hold_that_is_open_at_the_end_is_reported_and_the_state_decides(guard: Guard, shop: Shop) -> None:
    with guard.run("look_only") as run:
        run.wrap(shop.cancel_order)(order_id=17)
    assert run.verdict is not None
    assert (run.verdict.kind, run.verdict.open_holds) == ("verified", 1)


def test_a_store_that_vanishes_makes_a_run_unverified_never_good(guard: Guard, shop: Shop) -> None:
    with guard.run("look_only") as run:
        shop.database.vanish()
    assert run.verdict is not None
    assert run.verdict.kind == "unverified"
    assert {f.kind for f in run.verdict.findings} == {"check_error"}


async def test_an_asynchronous_run_gives_the_same_verdict(guard: Guard, shop: Shop) -> None:
    async with guard.run("refund_order", inputs=INPUTS) as run:
        run.wrap(shop.refund_order)(order_id=17, amount="19.90")
    assert run.verdict is not None
    assert run.verdict.kind == "verified"


def test_a_column_that_the_contract_misspells_makes_runs_unverified_not_wrong(guards: Guards, shop: Shop) -> None:
    task = {
        "watch": {"shop.orders": {"key": "id", "ignore": ["updated_at"]}},
        "expect": [{"updated": "shop.orders", "key": {"id": 17}, "values": {"staus": "refunded"}}],
    }
    with guards(tasks={"misspelt": task}).run("misspelt") as run:
        run.wrap(shop.refund_order)(17, "19.90")
    assert run.verdict is not None
    assert run.verdict.kind == "unverified"
    assert "did you mean `status`?" in str(run.verdict)


def test_the_hint_at_an_uncommitted_write_is_given_only_where_nothing_has_changed(guards: Guards, shop: Shop) -> None:
    guard = guards()
    with guard.run("refund_order", inputs=INPUTS) as run:
        run.wrap(shop.refund_order)(18, "19.90")
    assert run.verdict is not None
    assert "committed" not in run.verdict.because


@pytest.mark.parametrize("policy", ["observe", "balanced"])
def test_the_hint_is_not_given_where_a_tool_had_said_no(guards: Guards, policy: str) -> None:
    tools = {"refund_order": {"effect": "write"}, "note_fee": {"effect": "write"}}
    with suppress(RunStopped), guards(policy=policy, tools=tools).run("refund_order", inputs=INPUTS) as run:
        run.call("note_fee", {}, lambda: {"ok": True})
        run.call("refund_order", {}, lambda: {"error": "the customer is blocked"})
        if policy == "observe":
            run.call("note_fee", {}, lambda: {"ok": True})
    assert run.verdict is not None
    assert run.verdict.kind in ("silent_failure", "stopped")
    assert "committed" not in run.verdict.because


def test_a_verdict_in_one_line_names_its_first_finding(guard: Guard, shop: Shop) -> None:
    verdict = refund(guard, shop, amount="91.90")
    assert str(verdict).startswith("silent_failure: shop.refunds id=1: amount is 91.9")


def test_an_undeclared_task_is_said_when_the_run_opens(guard: Guard, caplog: pytest.LogCaptureFixture) -> None:
    with guard.run("refund_ordr") as run:
        assert "did you mean `refund_order`?" in caplog.text
    assert run.verdict is not None
    assert "did you mean `refund_order`?" in run.verdict.because
