"""Pictures of big tables, late-bound inputs, and tasks that name no table."""

from __future__ import annotations

from contextlib import suppress

import pytest

from guardrail import CallRefused, ConfigurationError, GuardrailError, InputError, RunStopped
from support.databases import on_every_database
from support.shop import CONFIGURATION, Guards, Shop

pytestmark = on_every_database

REFUND = CONFIGURATION["tasks"]["refund_order"]
BIG = {
    **REFUND,
    "watch": {
        "shop.orders": {"key": "id", "ignore": ["updated_at"], "whole_rows": 0},
        "shop.refunds": {"key": "id", "whole_rows": 0},
    },
}
INPUTS = {"order_id": 17, "amount": "19.90"}


def test_a_table_too_big_for_whole_rows_is_verified_all_the_same(guards: Guards, shop: Shop) -> None:
    guard = guards(tasks={"refund_order": BIG})
    with guard.run("refund_order", inputs=INPUTS) as run:
        run.wrap(shop.refund_order)(17, "19.90")
    assert run.verdict is not None
    assert (run.verdict.kind, run.verdict.findings) == ("verified", ())


def test_in_a_big_table_a_wrong_value_and_an_unrequested_change_are_found(guards: Guards, shop: Shop) -> None:
    guard = guards(tasks={"refund_order": BIG})
    with guard.run("refund_order", inputs=INPUTS) as run:
        run.wrap(shop.refund_order)(17, "91.90")
        run.wrap(shop.note_order)(18, "oops")
    assert run.verdict is not None
    assert run.verdict.kind == "silent_failure"
    assert {(f.kind, f.place) for f in run.verdict.findings} == {
        ("wrong_value", "shop.refunds"),
        ("unrequested_change", "shop.orders"),
    }


LATE = {
    **REFUND,
    "inputs": {"order_id": {"type": "integer", "from": {"tool": "lookup_order", "at": "/id"}}, "amount": "decimal"},
}


def test_a_late_input_is_bound_by_the_first_good_result_and_judged_by(guards: Guards, shop: Shop) -> None:
    guard = guards(tasks={"refund_order": LATE})
    with guard.run("refund_order", inputs={"amount": "19.90"}) as run:
        lookup, refund = run.wrap(shop.lookup_order, shop.refund_order)
        lookup(17)
        lookup(18)
        refund(17, "19.90")
    assert run.inputs["order_id"] == 17
    assert run.verdict is not None
    assert run.verdict.kind == "verified"


def test_no_write_runs_before_a_late_input_is_bound(guards: Guards, shop: Shop) -> None:
    guard = guards(tasks={"refund_order": LATE})
    with guard.run("refund_order", inputs={"amount": "19.90"}) as run, pytest.raises(CallRefused, match="order_id"):
        run.wrap(shop.refund_order)(17, "19.90")
    assert shop.calls == []
    assert run.verdict is not None
    assert run.verdict.kind == "unverified"


async def test_in_an_asynchronous_run_a_late_input_is_bound_too(guards: Guards, shop: Shop) -> None:
    guard = guards(tasks={"refund_order": LATE})

    async def lookup_order(order_id: str) -> dict[str, object]:
        return {"id": order_id}

    async with guard.run("refund_order", inputs={"amount": "19.90"}) as run:
        await run.wrap(lookup_order)("17")
        run.wrap(shop.refund_order)(17, "19.90")
    assert run.inputs["order_id"] == 17
    assert run.verdict is not None
    assert run.verdict.kind == "verified"


def test_inputs_that_do_not_fit_the_task_are_all_named_at_once(guards: Guards) -> None:
    with pytest.raises(InputError) as caught:
        guards().run("refund_order", inputs={"order_id": "seventeen", "colour": "red"})
    for word in ("order_id", "colour", "amount is missing"):
        assert word in str(caught.value)


def test_a_task_that_names_no_table_watches_them_all(guards: Guards, shop: Shop) -> None:
    guard = guards(tasks={"nothing_at_all": {"expect": "nothing"}})
    with guard.run("nothing_at_all") as run:
        shop.execute("insert into audit (what) values ('x')")
    assert run.verdict is not None
    assert [(f.kind, f.place) for f in run.verdict.findings] == [("unrequested_change", "shop.audit")]


def test_a_task_that_names_no_table_of_a_big_store_does_not_load(guards: Guards, shop: Shop) -> None:
    shop.execute("insert into audit (what) values ('x'), ('x'), ('x')")
    with pytest.raises(ConfigurationError, match=r"shop\.audit has more than 2 rows"):
        guards(tasks={"nothing_at_all": {"expect": "nothing", "most_rows": 2}})


def test_a_run_of_another_tenant_looks_at_its_own_database(guards: Guards, shop: Shop) -> None:
    guard = guards()
    with shop.database.beside() as database:
        other = Shop(database)
        with guard.run("refund_order", inputs=INPUTS, stores={"shop": other.url}) as run:
            run.wrap(other.refund_order)(17, "19.90")
    assert run.verdict is not None
    assert run.verdict.kind == "verified"


def test_a_run_taken_up_again_keeps_its_stop(guards: Guards, shop: Shop) -> None:
    guard = guards(policy="strict")
    with suppress(RunStopped), guard.run("look_only", id="R1") as run:
        run.wrap(shop.cancel_order)(17)
    with pytest.raises(RunStopped), guard.run("look_only", id="R1") as again:
        again.wrap(shop.note_order)(17, "x")
    assert shop.calls == ["cancel_order"]


def test_a_run_taken_up_again_is_judged_from_its_first_picture(guards: Guards, shop: Shop) -> None:
    guard = guards(on_silent_failure="report")
    with guard.run("refund_order", inputs=INPUTS, id="R2") as run:
        run.wrap(shop.note_order)(17, "first half")
    assert run.verdict is not None
    with guard.run("refund_order", inputs=INPUTS, id="R2") as again:
        again.wrap(shop.refund_order)(17, "19.90")
    assert again.verdict is not None
    assert [(f.kind, f.column) for f in again.verdict.findings] == [("unrequested_change", "note")]
    assert again.calls == 2


def test_a_run_that_was_verified_and_is_delivered_again_stays_right(guards: Guards, shop: Shop) -> None:
    guard = guards()
    with guard.run("refund_order", inputs=INPUTS, id="R3") as run:
        run.wrap(shop.refund_order)(17, "19.90")
    with guard.run("refund_order", inputs=INPUTS, id="R3") as again, pytest.raises(CallRefused, match="already done"):
        again.wrap(shop.refund_order)(17, "19.90")
    assert again.verdict is not None
    assert again.verdict.kind == "verified"


def test_a_run_is_taken_up_with_the_inputs_and_the_task_it_was_opened_with(guards: Guards) -> None:
    guard = guards()
    with guard.run("refund_order", inputs=INPUTS, id="R4"):
        pass
    with pytest.raises(InputError, match="order_id"):
        guard.run("refund_order", inputs={"order_id": 18, "amount": "19.90"}, id="R4")
    with pytest.raises(GuardrailError, match="not of look_only"):
        guard.run("look_only", id="R4")
    with guard.run(id="R4") as again:
        pass
    assert (again.task, again.inputs["order_id"]) == ("refund_order", 17)


def test_a_failed_call_is_known_again_after_a_restart_though_its_arguments_were_not_recorded_whole(
    guards: Guards, shop: Shop
) -> None:
    args = {"note": "n" * 5000, "password": "p", "order_id": 17}

    def set_note(**args: object) -> dict[str, object]:
        shop.calls.append("set_note")
        return {"error": "busy"} if len(shop.calls) == 1 else {"ok": True}

    tools = {"set_note": {"effect": "write"}}
    first = guards(tools=tools)
    with first.run(id="R5") as run:
        run.call("set_note", args, set_note)
    first.close()
    with guards(tools=tools).run(id="R5") as again:
        again.call("set_note", args, set_note)
    assert (again.stop, again.open_holds) == (None, 0)


def test_a_table_created_during_a_run_is_found_where_all_tables_are_watched(guards: Guards, shop: Shop) -> None:
    guard = guards(tasks={"nothing_at_all": {"expect": "nothing"}})
    with guard.run("nothing_at_all") as run:
        shop.execute("create table extra (id integer primary key)")
    assert run.verdict is not None
    assert [(f.kind, f.place) for f in run.verdict.findings] == [("unrequested_change", "shop.extra")]
