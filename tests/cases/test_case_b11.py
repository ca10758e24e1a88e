"""B11: a timeout, then the same charge again under a new call id."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest

from guardrail import CallRefused, Guard, RunStopped
from support.cases import outcomes
from support.shop import Guards, Shop

CHARGES = "create table charges (id integer primary key, order_no text not null, amount numeric not null)"
ONE_CHARGE: dict[str, Any] = {
    "watch": {"shop.charges": {"key": "id"}},
    "expect": [
        {
            "inserted": "shop.charges",
            "count": 1,
            "values": {"id": {"generated": True}, "order_no": "O-9", "amount": Decimal("40.00")},
        }
    ],
}
ARGS: dict[str, object] = {"order": "O-9", "amount": "40.00"}


@pytest.fixture
def bank(shop: Shop) -> Shop:
    shop.execute(CHARGES)
    return shop


def charge_of(shop: Shop) -> Callable[..., object]:
    """A charge that is carried out, and whose answer does not come in time."""

    def create_charge(order: str, amount: object) -> object:
        shop.execute("insert into charges (order_no, amount) values (?, ?)", order, str(amount))
        raise TimeoutError("no answer within 30 s")

    return create_charge


def guard_of(guards: Guards, *, policy: str = "balanced", **declared: object) -> Guard:
    return guards(policy=policy, tools={"create_charge": {"effect": "write", **declared}}, tasks={"charge": ONE_CHARGE})


def count(shop: Shop) -> int:
    return int(shop.execute("select count(*) from charges")[0][0])


@pytest.mark.case("B11", "same args after a timeout")
def test_after_a_timeout_the_same_write_is_refused_under_any_call_id(guards: Guards, bank: Shop) -> None:
    guard = guard_of(guards)
    with guard.run("charge") as run:
        with pytest.raises(TimeoutError):
            run.call("create_charge", ARGS, charge_of(bank), id="c1")
        with pytest.raises(CallRefused, match="must not be repeated") as refused:
            run.call("create_charge", ARGS, charge_of(bank), id="c2")
    assert (refused.value.reason, count(bank)) == ("in_doubt", 1)
    assert outcomes(guard, run.id) == {"c1": "in_doubt", "c2": "refused"}
    assert run.verdict is not None
    assert (run.verdict.kind, run.verdict.open_holds) == ("verified", 1)  # it had been carried out, as the state shows


def test_under_strict_the_timeout_of_a_write_ends_the_run(guards: Guards, bank: Shop) -> None:
    guard = guard_of(guards, policy="strict")
    run = guard.run("charge")
    with pytest.raises(RunStopped) as caught, run:
        run.call("create_charge", ARGS, charge_of(bank), id="c1")
    assert (caught.value.stop.reason, outcomes(guard, run.id)) == ("in_doubt", {"c1": "in_doubt"})


@pytest.mark.case("B11", "same args, other key order and number form")
@pytest.mark.parametrize("amount", [40.0, 40, "40.00", "40", Decimal("40.000")])
def test_writes_are_the_same_whatever_the_order_and_form_of_their_arguments(
    guards: Guards, bank: Shop, amount: object
) -> None:
    guard = guard_of(guards)
    with guard.run("charge") as run:
        with pytest.raises(TimeoutError):
            run.call("create_charge", {"order": "O-9", "amount": "40.00"}, charge_of(bank))
        with pytest.raises(CallRefused):
            run.call("create_charge", {"amount": amount, "order": "O-9"}, charge_of(bank))
    assert count(bank) == 1


@pytest.mark.case("B11", "framework retries by itself")
def test_a_framework_that_tries_again_by_itself_under_one_call_id_is_blocked(guards: Guards, bank: Shop) -> None:
    guard = guard_of(guards, idempotent=False)
    refusals: list[str] = []
    with guard.run("charge") as run:
        for _ in range(3):
            try:
                run.call("create_charge", ARGS, charge_of(bank), id="c1")
            except CallRefused as error:
                refusals.append(error.reason)
            except TimeoutError:
                continue
    assert (refusals, count(bank)) == (["in_doubt", "in_doubt"], 1)


def test_a_tool_that_is_declared_idempotent_may_be_tried_again(guards: Guards, bank: Shop) -> None:
    guard = guard_of(guards, idempotent=True)
    with guard.run() as run:
        for _ in range(2):
            with pytest.raises(TimeoutError):
                run.call("create_charge", ARGS, charge_of(bank), id="c1")
    assert count(bank) == 2


@pytest.mark.case("B11", "read tool timed out")
def test_a_read_that_timed_out_may_be_made_again(guards: Guards) -> None:
    guard = guards(tools={"get_charge": {"effect": "read"}})
    answers = iter([TimeoutError("no answer within 30 s"), {"id": 1}])

    def get_charge(order: str) -> object:
        answer = next(answers)
        if isinstance(answer, Exception):
            raise answer
        return answer

    with guard.run() as run:
        with pytest.raises(TimeoutError):
            run.call("get_charge", {"order": "O-9"}, get_charge, id="c1")
        assert run.call("get_charge", {"order": "O-9"}, get_charge, id="c2") == {"id": 1}
    assert outcomes(guard, run.id) == {"c1": "error", "c2": "ok"}


@pytest.mark.case("B11", "post-check after both went through")
def test_a_charge_that_was_made_twice_is_found_in_the_state(guards: Guards, bank: Shop) -> None:
    guard = guard_of(guards, policy="observe")
    with guard.run("charge") as run:
        for call_id in ("c1", "c2"):
            with pytest.raises(TimeoutError):
                run.call("create_charge", ARGS, charge_of(bank), id=call_id)
    assert count(bank) == 2
    assert run.verdict is not None
    assert run.verdict.kind == "silent_failure"
    [finding] = run.verdict.findings
    assert finding.kind == "unrequested_change"
    assert finding.text == (
        "shop.charges id=2: the row was inserted (order_no='O-9', amount=40), and nobody asked for it"
    )
