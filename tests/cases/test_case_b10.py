"""B10: a tool's failure in plain sight, yet the answer says that all went well."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from guardrail import Guard, Run, RunStopped
from support.cases import history_of
from support.shop import Guards, Shop

DONE = "Order 501 was cancelled. No errors were reported."
CANCEL: dict[str, Any] = {
    "checks": [{"store": "shop", "sql": "select status = 'cancelled' from orders where id = 501"}],
    "watch": {"shop.orders": {"key": "id"}},
    "expect": [{"updated": "shop.orders", "key": {"id": 501}, "values": {"status": "cancelled"}}],
}


@pytest.fixture
def opened(shop: Shop) -> Shop:
    shop.execute("insert into orders values (501, 'open', '10.00', null, '2026-11-30 10:00:00')")
    return shop


def guard_of(guards: Guards, **parts: Any) -> Guard:
    return guards(tasks={"cancel": CANCEL}, **parts)


def agent(run: Run, shop: Shop, calls: Iterable[str], answer: str = DONE) -> str:
    """An agent that makes its calls and closes with the same words whatever they came to."""

    def fails(order_id: int) -> dict[str, object]:
        return {"error": "the order service did not answer as expected"}

    def works(order_id: int) -> dict[str, object]:
        shop.execute("update orders set status = 'cancelled' where id = ?", order_id)
        return {"cancelled": order_id}

    for call in calls:
        if call == "note":
            run.call("note_order", {"order_id": 501, "note": "please cancel"}, shop.note_order)
        else:
            run.call("cancel_order", {"order_id": 501}, works if call == "ok" else fails)
    return answer


def kinds(run: Run) -> tuple[str, set[str]]:
    assert run.verdict is not None
    return run.verdict.kind, {finding.kind for finding in run.verdict.findings}


@pytest.mark.case("B10", "error then claim")
def test_the_stop_comes_before_any_closing_message(guards: Guards, opened: Shop) -> None:
    run = guard_of(guards, policy="strict").run("cancel")
    answers: list[str] = []
    with pytest.raises(RunStopped), run:
        answers.append(agent(run, opened, ["error"]))
    assert answers == []
    assert kinds(run)[0] == "stopped"


@pytest.mark.case("B10", "guard off (observe only), error then claim")
def test_an_observed_run_that_claims_success_is_a_silent_failure(guards: Guards, opened: Shop) -> None:
    with guard_of(guards, policy="observe").run("cancel") as run:
        answer = agent(run, opened, ["error"])
    assert answer == DONE
    assert kinds(run) == ("silent_failure", {"missing_change", "check_failed"})


@pytest.mark.case("B10", "error, later a good retry")
@pytest.mark.parametrize("policy", ["observe", "balanced"])
def test_an_error_that_was_repaired_is_no_failure_and_on_record_as_resolved(
    guards: Guards, opened: Shop, policy: str
) -> None:
    guard = guard_of(guards, policy=policy)
    with guard.run("cancel") as run:
        agent(run, opened, ["error", "ok"])
    assert kinds(run) == ("verified", set())
    history = history_of(guard, run.id)
    [hold] = history.holds
    assert hold.resolved is not None
    assert (hold.hold.call, hold.resolved.by) == (1, "call 2")
    assert [c.outcome.outcome for c in history.calls if c.outcome] == ["error", "ok"]


@pytest.mark.case("B10", "no call at all, claim")
def test_a_claim_without_any_call_is_a_silent_failure(guards: Guards, opened: Shop) -> None:
    with guard_of(guards, policy="strict").run("cancel") as run:
        agent(run, opened, [])
    assert kinds(run) == ("silent_failure", {"missing_change", "check_failed"})


@pytest.mark.case("B10", "other tool used than declared")
def test_another_tool_than_the_right_one_is_a_silent_failure(guards: Guards, opened: Shop) -> None:
    with guard_of(guards, policy="strict").run("cancel") as run:
        agent(run, opened, ["note"])
    assert kinds(run) == ("silent_failure", {"missing_change", "check_failed", "unrequested_change"})


@pytest.mark.case("B10", "honest refusal")
def test_an_open_failure_is_told_by_how_the_run_ended_and_not_by_the_prose(guards: Guards, opened: Shop) -> None:
    stopped = guard_of(guards, policy="strict").run("cancel")
    with pytest.raises(RunStopped), stopped:
        agent(stopped, opened, ["error"], "I could not cancel it.")
    assert kinds(stopped)[0] == "stopped"

    with guard_of(guards, policy="balanced").run("cancel") as run:
        agent(run, opened, ["error"])
        run.abandon("I could not cancel it.")
    assert kinds(run) == ("agent_error", {"missing_change", "check_failed"})


@pytest.mark.parametrize("answer", [DONE, "I could not cancel it."])
def test_the_words_of_the_answer_change_nothing(guards: Guards, opened: Shop, answer: str) -> None:
    with guard_of(guards, policy="balanced").run("cancel") as run:
        agent(run, opened, ["error"], answer)
    assert kinds(run)[0] == "silent_failure"
    assert run.verdict is not None
    assert run.verdict.open_holds == 1
