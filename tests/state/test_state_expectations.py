"""How a state differs from a contract."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from inline_snapshot import snapshot

from guardrail.calls import Finding
from guardrail.declare.contracts import Task
from guardrail.digests import Digest
from guardrail.pictures import ColumnKind, Picture, Unanswered
from guardrail.state import Contract, Window, keys_wanted
from support.pictures import picture, told, verified

ORDERS: dict[str, ColumnKind] = {"id": "integer", "status": "text", "amount": "decimal", "meta": "json"}
REFUNDS: dict[str, ColumnKind] = {
    "id": "integer",
    "order_id": "integer",
    "amount": "decimal",
    "at": "instant",
    "reason": "text",
}
O17 = {"id": 17, "status": "paid", "amount": "19.90", "meta": '{"state": "open", "n": 1}'}
O18 = {"id": 18, "status": "paid", "amount": "5.00", "meta": None}
R1 = {"id": 1, "order_id": 17, "amount": "19.90", "at": "2026-11-30T10:00:05Z", "reason": "late"}
DONE = {**O17, "status": "refunded"}
INPUTS = {"order_id": 17, "amount": Decimal("19.90")}
REFUND: dict[str, Any] = {
    "inputs": {"order_id": "integer", "amount": "decimal"},
    "watch": {"shop.orders": {"key": "id"}, "shop.refunds": {"key": "id"}},
    "expect": [
        {"updated": "shop.orders", "key": {"id": "$order_id"}, "values": {"status": "refunded"}},
        {
            "inserted": "shop.refunds",
            "values": {"id": {"generated": True}, "order_id": "$order_id", "amount": "$amount"},
        },
    ],
}


def shop(orders: Sequence[Mapping[str, Any]], refunds: Sequence[Mapping[str, Any]] = (), **more: Any) -> list[Picture]:
    return [picture("shop.orders", orders, ORDERS, **more), picture("shop.refunds", refunds, REFUNDS, **more)]


def refund(after: Sequence[Picture], before: Sequence[Picture] | None = None, **more: Any) -> list[str]:
    """What is told of the refund task, with parts of the task replaced where given."""
    parts: dict[str, Any] = {name: more.pop(name) for name in ("watch", "expect", "allow") if name in more}
    task = {**REFUND, **parts}
    more.setdefault("inputs", INPUTS)
    return told(verified(task, before or shop([O17, O18]), after, **more).findings)


def test_a_state_that_is_as_expected_has_no_findings() -> None:
    assert refund(shop([DONE, O18], [R1])) == []


def test_nothing_done_is_two_missing_changes() -> None:
    assert refund(shop([O17, O18])) == snapshot(
        [
            "missing_change: shop.orders id=17: status is 'paid', expected 'refunded'",
            "missing_change: shop.refunds: no row with order_id=17, amount=19.90 was inserted",
        ]
    )


def test_a_wrong_amount_is_a_wrong_value_of_the_row_that_was_meant() -> None:
    assert refund(shop([DONE, O18], [{**R1, "amount": "199.00"}])) == [
        "wrong_value: shop.refunds id=1: amount is 199.00, expected 19.90"
    ]


def test_a_value_that_was_right_before_is_met() -> None:
    assert refund(shop([DONE, O18], [R1]), before=shop([DONE, O18])) == []


def test_a_value_that_changed_to_another_than_expected_is_wrong() -> None:
    assert refund(shop([{**O17, "status": "void"}, O18], [R1])) == [
        "wrong_value: shop.orders id=17: status is 'void', expected 'refunded'"
    ]


def test_a_row_that_was_deleted_instead_is_missing_and_its_deletion_unrequested() -> None:
    assert [line.split(" (")[0] for line in refund(shop([O18], [R1]))] == [
        "missing_change: shop.orders id=17: the row was deleted, expected it to be updated",
        "unrequested_change: shop.orders id=17: the row was deleted",
    ]


def test_a_row_that_never_was_there_is_a_missing_change() -> None:
    assert refund(shop([O18], [R1]), before=shop([O18])) == ["missing_change: shop.orders id=17: there is no such row"]


def test_another_row_of_the_table_may_not_change() -> None:
    assert refund(shop([DONE, {**O18, "status": "void"}], [R1])) == [
        "unrequested_change: shop.orders id=18: status changed from 'paid' to 'void', and nobody asked for it"
    ]


def test_one_row_too_many_is_an_unrequested_insert() -> None:
    found = refund(shop([DONE, O18], [R1, {**R1, "id": 2}]))
    assert len(found) == 1
    assert found[0].startswith("unrequested_change: shop.refunds id=2: the row was inserted (order_id=17,")


def test_a_row_of_which_nothing_is_right_is_not_taken_for_the_expected_one() -> None:
    found = refund(shop([DONE, O18], [{**R1, "order_id": 99, "amount": "1.00"}]))
    assert [line.split(":")[0] for line in found] == ["missing_change", "unrequested_change"]


def test_others_rows_in_a_shared_table_are_not_taken_for_the_expected_one() -> None:
    watch = {**REFUND["watch"], "shop.refunds": {"key": "id", "shared": True}}
    found = refund(shop([DONE, O18], [{**R1, "amount": "7.00"}]), watch=watch)
    assert [line.split(":")[0] for line in found] == ["missing_change", "unrequested_change (warning)"]


def expecting(*expect: dict[str, Any]) -> dict[str, Any]:
    return {"expect": expect}


@pytest.mark.parametrize("turned", [False, True])
def test_a_loose_expectation_does_not_take_the_row_of_a_tight_one(turned: bool) -> None:
    loose = {"inserted": "shop.refunds", "values": {"order_id": 17}}
    tight = {"inserted": "shop.refunds", "values": {"order_id": 17, "amount": "1.00"}}
    expect = [tight, loose] if turned else [loose, tight]
    rows = [{**R1, "amount": "1.00"}, {**R1, "id": 2, "amount": "2.00"}]
    assert refund(shop([O17, O18], rows), **expecting(*expect)) == []
    assert refund(shop([O17, O18], rows[::-1]), **expecting(*expect)) == []


@pytest.mark.parametrize(
    ("count", "there", "found"),
    [
        (2, 2, []),
        (2, 1, ["missing_change: shop.refunds: no row with order_id=17 was inserted"]),
        (3, 1, ["missing_change: shop.refunds: 2 rows with order_id=17 were not inserted"]),
        (1, 2, ["unrequested_change: shop.refunds id=1: the row was inserted"]),
    ],
)
def test_as_many_rows_as_are_counted_must_be_there(count: int, there: int, found: list[str]) -> None:
    expect = expecting({"inserted": "shop.refunds", "count": count, "values": {"order_id": 17}})
    rows = [{**R1, "id": number} for number in range(there)]
    assert [line.split(" (")[0] for line in refund(shop([O17, O18], rows), **expect)] == found


def test_generated_values_must_be_there() -> None:
    expect = expecting({"inserted": "shop.refunds", "values": {"order_id": 17, "reason": {"generated": True}}})
    assert refund(shop([O17, O18], [R1]), **expect) == []
    assert refund(shop([O17, O18], [{**R1, "reason": None}]), **expect) == [
        "wrong_value: shop.refunds id=1: reason is NULL, expected any value but NULL"
    ]


@pytest.mark.parametrize(
    ("value", "amount", "found"),
    [
        ({"decreased_by": "$amount"}, "0.00", []),
        ({"decreased_by": "19.90"}, "0.01", ["amount is 0.01, expected 0.00"]),
        ({"increased_by": 1}, 20.9, []),
        ({"increased_by": {"in": [1, 2]}}, "21.90", []),
        ({"increased_by": {"at_most": 1}}, "21.90", ["amount is 21.90, expected increased by at most 1"]),
        ({"at_least": 0}, "0", []),
        ({"at_least": "19.91"}, "19.90", ["amount is 19.90, expected at least '19.91'"]),
        ({"in": ["19.9", 5]}, "19.90", []),
        ({"in": ["20", 5]}, "19.90", ['amount is 19.90, expected one of ["20", 5]']),
        ({"not": "19.9"}, "19.90", ["amount is 19.90, expected anything but '19.9'"]),
        ({"not": "19.9"}, None, []),
        ({"any": True}, None, []),
    ],
)
def test_a_column_is_held_against_a_form(value: Any, amount: Any, found: list[str]) -> None:
    expect = expecting({"updated": "shop.orders", "key": {"id": 17}, "values": {"amount": value}})
    lines = refund(shop([{**O17, "amount": amount}, O18]), **expect)
    assert [line.partition("id=17: ")[2] for line in lines] == found


@pytest.mark.parametrize(
    ("status", "value", "holds"),
    [
        ("R-17", {"matches": "R-[0-9]+"}, True),
        ("R-17x", {"matches": "R-[0-9]+"}, False),
        (None, {"matches": ".*"}, False),
        ("paid", {"not": {"in": ["open", "void"]}}, True),
        ("$5", "$$5", True),
        ("x", {"in": "$allowed"}, True),
        ("z", {"in": "$allowed"}, False),
    ],
)
def test_a_text_is_held_against_a_form(status: Any, value: Any, holds: bool) -> None:
    expect = expecting({"updated": "shop.orders", "key": {"id": 17}, "values": {"status": value}})
    found = refund(shop([{**O17, "status": status}, O18]), inputs={**INPUTS, "allowed": ["x", "y"]}, **expect)
    assert (found == []) is holds


RUN = Window(datetime(2026, 11, 30, 10, 0, 0, 400_000, UTC), datetime(2026, 11, 30, 10, 0, 20, 600_000, UTC))


@pytest.mark.parametrize(
    ("at", "outcome"),
    [
        ("2026-11-30T10:00:05Z", None),
        ("2026-11-30T11:00:05+01:00", None),
        ("2026-11-30T10:00:00Z", None),
        ("2026-11-30T10:00:21Z", None),
        ("2026-11-30T10:00:00.399Z", "wrong_value"),
        ("2026-11-30T10:00:00.400Z", None),
        ("2026-11-30T09:59:59Z", "wrong_value"),
        ("2026-11-30T10:00:22Z", "wrong_value"),
        ("2026-11-30T10:00:20.700001Z", "wrong_value"),
        ("2026-11-30 10:00:05", "check_error"),
        (1796040005, "check_error"),
        ("soon", "wrong_value"),
        (None, "wrong_value"),
    ],
)
def test_an_instant_must_lie_in_the_run(at: Any, outcome: str | None) -> None:
    expect = expecting({"inserted": "shop.refunds", "values": {"order_id": 17, "at": {"during": "run"}}})
    found = refund(shop([O17, O18], [{**R1, "at": at}]), window=RUN, **expect)
    assert [line.split(":")[0] for line in found] == ([] if outcome is None else [outcome])


@pytest.mark.parametrize(
    ("day", "zone", "outcome"),
    [
        ("2026-11-30", "UTC", []),
        ("2026-11-29", "UTC", ["wrong_value"]),
        ("2026-12-01", "UTC", ["wrong_value"]),
        ("2026-12-01", "Pacific/Kiritimati", []),
        ("2026-11-30", None, ["check_error"]),
    ],
)
def test_a_date_must_be_a_day_of_the_run(day: str, zone: str | None, outcome: list[str]) -> None:
    kinds: dict[str, ColumnKind] = {"id": "integer", "day": "date"}
    compare = {} if zone is None else {"compare": {"day": {"zone": zone}}}
    task: dict[str, Any] = {
        "watch": {"shop.days": {"key": "id", **compare}},
        "expect": [{"inserted": "shop.days", "values": {"id": 1, "day": {"during": "run"}}}],
    }
    rows: list[dict[str, Any]] = [{"id": 1, "day": day}]
    found = verified(task, [picture("shop.days", [], kinds)], [picture("shop.days", rows, kinds)], window=RUN)
    assert [finding.kind for finding in found.findings] == outcome


@pytest.mark.parametrize(
    ("value", "meta", "found"),
    [
        ({"json": {"/state": "paid"}}, '{"n": 1, "state": "paid"}', []),
        ({"json": {"/state": "paid"}}, '{"n": 1, "state": "open"}', ["meta/state is 'open', expected 'paid'"]),
        ({"json": {"/state": "paid"}}, '{"n": 1}', ["meta/state is missing, expected 'paid'"]),
        (
            {"json": {"/state": "paid"}},
            '{"n": 2, "state": "paid"}',
            ["meta/n changed from 1 to 2, and nobody asked for it"],
        ),
        ({"json": {"/state": "paid"}, "rest": "any"}, '{"state": "paid", "x": 1}', []),
        ({"json": {"/n": {"increased_by": 1}}}, '{"n": 2, "state": "open"}', []),
        ({"json": {"/new/deep": 1}}, '{"n": 1, "state": "open", "new": {"deep": 1}}', []),
        ({"json": {"/state": "paid"}}, None, ["meta/state is missing, expected 'paid'"]),
        ({"state": "paid", "n": 1}, '{"n": 1, "state": "paid"}', []),
        ({"state": {"any": True}, "n": "$n"}, '{"n": 7, "state": null}', []),
        ({"state": {"any": True}, "n": "$n"}, '{"n": 7}', ['meta is {"n": 7}, expected {state: anything, n: 7}']),
        ({"state": "open", "n": 2}, '{"n": 1, "state": "open"}', ["meta/n is 1, expected 2"]),
        ({"unordered": ["a", "$tag", {"any": True}]}, '["x", "b", "a"]', []),
        ({"unordered": ["a", "b"]}, '["a"]', ['meta is ["a"], expected ["a", "b"] in any order']),
        (["a", {"not": "b"}], '["a", "c"]', []),
        ({"equals": {"any": True}}, '{"any": true}', []),
    ],
)
def test_a_document_is_held_against_its_parts(value: Any, meta: str | None, found: list[str]) -> None:
    expect = expecting({"updated": "shop.orders", "key": {"id": 17}, "values": {"meta": value}})
    lines = refund(shop([{**O17, "meta": meta}, O18]), inputs={"tag": "b", "n": 7}, **expect)
    assert [line.partition("id=17: ")[2] for line in lines if "meta changed" not in line][: len(found) or None] == found


def test_a_part_of_a_new_row_s_document_needs_no_rest() -> None:
    expect = expecting({"inserted": "shop.orders", "values": {"id": 19, "meta": {"json": {"/state": "new"}}}})
    after = shop([O17, O18, {**O18, "id": 19, "meta": '{"state": "new", "more": 1}'}])
    assert refund(after, **expect) == []


def test_expected_deletes_must_be_gone() -> None:
    expect = expecting({"deleted": "shop.orders", "key": {"id": "$order_id"}})
    assert refund(shop([O18]), **expect) == []
    assert refund(shop([O17, O18]), **expect) == ["missing_change: shop.orders id=17: the row was not deleted"]
    assert refund(shop([O18]), before=shop([O18]), **expect) == []
    assert len(refund(shop([]), **expect)) == 1


def test_a_key_is_found_in_the_form_of_its_column() -> None:
    assert refund(shop([DONE, O18], [R1]), inputs={"order_id": "17", "amount": "19.90"}) == []


def test_a_row_can_be_named_by_other_columns_than_its_key() -> None:
    expect = expecting({"updated": "shop.orders", "key": {"amount": 19.9}, "values": {"status": "refunded"}})
    assert refund(shop([DONE, O18]), **expect) == []
    assert refund(shop([O17, O18]), **expect) == [
        "missing_change: shop.orders id=17: status is 'paid', expected 'refunded'"
    ]


def test_a_key_that_names_several_rows_is_no_proof() -> None:
    expect = expecting({"updated": "shop.orders", "key": {"status": "paid"}, "values": {"status": "refunded"}})
    assert refund(shop([O17, O18]), **expect) == [
        "check_error: shop.orders status='paid': 2 rows have this key; name one of them, or use `each`"
    ]


def test_each_row_that_was_read_before_is_expected() -> None:
    task = expecting(
        {"updated": "shop.orders", "each": "$due", "key": {"id": "$each.id"}, "values": {"status": "$each.wanted"}}
    )
    lets = {"due": ({"id": 17, "wanted": "void"}, {"id": 18, "wanted": "refunded"})}
    after = shop([{**O17, "status": "void"}, {**O18, "status": "refunded"}])
    assert refund(after, lets=lets, **task) == []
    assert refund(shop([{**O17, "status": "void"}, O18]), lets=lets, **task) == [
        "missing_change: shop.orders id=18: status is 'paid', expected 'refunded'"
    ]


def test_that_nothing_was_expected_of_a_list_without_items_is_said() -> None:
    each = {"key": {"id": "$each.id"}, "values": {"status": "$each.wanted"}}
    over_rows = expecting({"updated": "shop.orders", "each": "$due", **each})
    over_input = expecting({"updated": "shop.orders", "each": "$wishes", **each})
    assert refund(shop([O17, O18]), lets={"due": ()}, **over_rows) == [
        "check_error (warning): shop.orders: $due had no rows before the run, so nothing was expected of it"
    ]
    assert refund(shop([O17, O18]), inputs={"wishes": []}, **over_input) == [
        "check_error (warning): shop.orders: $wishes is empty, so nothing was expected of it"
    ]


def test_each_item_of_a_list_input_is_expected() -> None:
    task = expecting({"inserted": "shop.refunds", "each": "$amounts", "values": {"order_id": 17, "amount": "$each"}})
    rows = [{**R1, "id": 1, "amount": "2.00"}, {**R1, "id": 2, "amount": "1.00"}]
    assert refund(shop([O17, O18], rows), inputs={"amounts": [1, 2]}, **task) == []
    assert len(refund(shop([O17, O18], rows), inputs={"amounts": [1, 3]}, **task)) == 1


ACCOUNTS: dict[str, ColumnKind] = {"id": "integer", "balance": "decimal", "refund_id": "integer"}


def named(*expect: dict[str, Any]) -> dict[str, Any]:
    return {
        "watch": {"shop.refunds": {"key": "id"}, "shop.accounts": {"key": "id"}},
        "expect": [
            {
                "updated": "shop.accounts",
                "key": {"id": "$due.account"},
                "values": {"balance": {"decreased_by": "$amount"}, "refund_id": "$refund.id"},
            },
            {"inserted": "shop.refunds", "as": "refund", "values": {"order_id": 17, "amount": "$amount"}},
            *expect,
        ],
    }


def bank(refunds: Sequence[Mapping[str, Any]], *accounts: tuple[int, str, int | None]) -> list[Picture]:
    rows = [dict(zip(ACCOUNTS, account, strict=True)) for account in accounts]
    return [picture("shop.refunds", refunds, REFUNDS), picture("shop.accounts", rows, ACCOUNTS)]


DUE = {"due": ({"account": 5}, {"account": 5})}


def test_a_row_that_was_found_can_be_used_by_its_name_wherever_it_stands() -> None:
    before = bank([], (5, "100.00", None))
    right = verified(named(), before, bank([R1], (5, "80.10", 1)), inputs=INPUTS, lets=DUE)
    assert right.findings == ()
    wrong = verified(named(), before, bank([R1], (5, "80.10", 2)), inputs=INPUTS, lets=DUE)
    assert told(wrong.findings) == ["wrong_value: shop.accounts id=5: refund_id is 2, expected 1"]


def test_what_depends_on_a_row_that_is_not_there_cannot_be_checked_and_hides_nothing() -> None:
    found = verified(named(), bank([], (5, "100.00", None)), bank([], (5, "90.00", 1)), inputs=INPUTS, lets=DUE)
    assert told(found.findings) == snapshot(
        [
            "check_error: shop.accounts: refund_id cannot be checked: no row is known to be $refund",
            "wrong_value: shop.accounts id=5: balance is 90.00, expected 80.10",
            "missing_change: shop.refunds: no row with order_id=17, amount=19.90 was inserted",
        ]
    )


def test_of_several_rows_that_a_name_may_stand_for_the_fitting_one_is_taken() -> None:
    other = {"inserted": "shop.refunds", "values": {"order_id": 17}}
    before = bank([], (5, "100.00", None))
    for refund_id in (1, 2):
        after = bank([R1, {**R1, "id": 2}], (5, "80.10", refund_id))
        assert verified(named(other), before, after, inputs=INPUTS, lets=DUE).findings == ()
    after = bank([R1, {**R1, "id": 2}], (5, "80.10", 3))
    assert [f.kind for f in verified(named(other), before, after, inputs=INPUTS, lets=DUE).findings] == ["wrong_value"]


@pytest.mark.parametrize(
    ("lets", "why"),
    [
        ({"due": ({"account": 5}, {"account": 6})}, "$due.account has 2 rows with different values; use `each`"),
        ({"due": ()}, "$due.account has no value: $due has no rows"),
        ({"due": ({"id": 5},)}, "$due.account has no value: there is no account in it"),
        ({"due": Unanswered("the store is away")}, "$due could not be read: the store is away"),
        ({}, "$due.account has no value: no input, row or `let` is called due"),
    ],
)
def test_a_name_that_stands_for_no_single_value_is_no_proof(lets: dict[str, Any], why: str) -> None:
    before, after = bank([], (5, "100.00", None)), bank([R1], (5, "100.00", None))
    found = verified(named(), before, after, inputs=INPUTS, lets=lets)
    assert told(found.findings) == [f"check_error: shop.accounts: a row cannot be told: {why}"]


def test_names_that_wait_for_each_other_are_no_proof() -> None:
    task: dict[str, Any] = {
        "watch": {"shop.refunds": {"key": "id"}},
        "expect": [
            {"inserted": "shop.refunds", "as": "a", "values": {"order_id": "$b.order_id"}},
            {"inserted": "shop.refunds", "as": "b", "values": {"order_id": "$a.order_id"}},
        ],
    }
    found = verified(task, [picture("shop.refunds", [], REFUNDS)], [picture("shop.refunds", [], REFUNDS)])
    assert told(found.findings) == ["check_error: shop.refunds: the expected insert uses a name that waits for it"]


@pytest.mark.parametrize(
    ("allow", "left"),
    [
        ({"updated": "shop.orders"}, []),
        ({"updated": "shop.orders", "columns": ["status"]}, ["amount"]),
        ({"updated": "shop.orders", "key": {"id": 18}}, []),
        ({"updated": "shop.orders", "key": {"id": 17}}, ["amount", "status"]),
        ({"updated": "shop.orders", "values": {"status": "void"}}, []),
        ({"updated": "shop.orders", "values": {"status": "open"}}, ["amount", "status"]),
        ({"updated": "shop.refunds"}, ["amount", "status"]),
        ({"deleted": "shop.orders"}, ["amount", "status"]),
    ],
)
def test_an_allowed_update_may_happen(allow: dict[str, Any], left: list[str]) -> None:
    after = shop([O17, {**O18, "status": "void", "amount": "0"}])
    task = {**REFUND, "expect": "nothing", "allow": [allow]}
    found = verified(task, shop([O17, O18]), after)
    assert sorted(str(finding.column) for finding in found.findings) == left
    assert verified(task, shop([O17, O18]), shop([O17, O18])).findings == ()


@pytest.mark.parametrize(
    ("allow", "left"),
    [
        ([{"inserted": "shop.refunds"}], []),
        ([{"inserted": "shop.refunds", "max": 2}], ["no more than 2 may be"]),
        ([{"inserted": "shop.refunds", "max": 2}, {"inserted": "shop.refunds", "max": 1}], []),
        ([{"inserted": "shop.refunds", "values": {"reason": "late"}}], ["nobody asked for it"]),
        (
            [
                {"inserted": "shop.refunds", "values": {"order_id": 17}, "max": 1},
                {"inserted": "shop.refunds", "values": {"reason": "late"}, "max": 2},
            ],
            [],
        ),
        ([{"deleted": "shop.refunds"}], ["nobody asked for it"] * 3),
    ],
)
def test_allowed_inserts_may_happen_as_often_as_is_said(allow: list[dict[str, Any]], left: list[str]) -> None:
    rows = [R1, {**R1, "id": 2, "order_id": 18}, {**R1, "id": 3, "reason": None}]
    found = verified({**REFUND, "expect": "nothing", "allow": allow}, shop([O17]), shop([O17], rows)).findings
    assert [finding.text.rpartition("and ")[2] for finding in found] == left


def test_allowed_updates_and_deletes_may_happen_as_often_as_is_said() -> None:
    void = [{**O17, "status": "void"}, {**O18, "status": "void"}]
    allow = [{"updated": "shop.orders", "max": 1}, {"updated": "shop.orders", "key": {"id": 17}, "max": 1}]
    assert verified({**REFUND, "expect": "nothing", "allow": allow}, shop([O17, O18]), shop(void)).findings == ()
    one = {**REFUND, "expect": "nothing", "allow": [{"updated": "shop.orders", "max": 1}]}
    assert len(verified(one, shop([O17, O18]), shop(void)).findings) == 1
    gone = {**REFUND, "expect": "nothing", "allow": [{"deleted": "shop.orders", "max": 1}]}
    assert len(verified(gone, shop([O17, O18]), shop([])).findings) == 1
    assert verified(gone, shop([O17, O18]), shop([O17])).findings == ()


def test_an_allowance_is_used_only_by_what_no_expectation_asked_for() -> None:
    allow = [{"inserted": "shop.refunds", "max": 1}]
    assert refund(shop([DONE, O18], [R1, {**R1, "id": 2}]), allow=allow) == []


def test_an_allowance_that_cannot_be_compared_is_no_proof() -> None:
    allow = [{"inserted": "shop.refunds", "values": {"at": "2026-11-30T10:00:05"}}]
    found = verified({**REFUND, "expect": "nothing", "allow": allow}, shop([O17]), shop([O17], [R1])).findings
    assert [finding.kind for finding in found] == ["check_error"]


ANY_OF: dict[str, Any] = {
    "watch": {"shop.orders": {"key": "id"}, "shop.refunds": {"key": "id"}},
    "any_of": {
        "voided": {"expect": [{"updated": "shop.orders", "key": {"id": 17}, "values": {"status": "void"}}]},
        "refunded": {
            "expect": [
                {"updated": "shop.orders", "key": {"id": 17}, "values": {"status": "refunded"}},
                {"inserted": "shop.refunds", "values": {"order_id": 17}},
            ]
        },
    },
}


def test_the_alternative_that_holds_is_named() -> None:
    found = verified(ANY_OF, shop([O17]), shop([DONE], [R1]))
    assert (found.alternative, found.findings, found.note) == ("refunded", (), "")
    found = verified(ANY_OF, shop([O17]), shop([{**O17, "status": "void"}]))
    assert (found.alternative, found.findings) == ("voided", ())


def test_where_none_holds_the_best_fitting_one_is_judged_and_named() -> None:
    found = verified(ANY_OF, shop([O17]), shop([DONE]))
    assert found.alternative == "refunded"
    assert told(found.findings) == ["missing_change: shop.refunds: no row with order_id=17 was inserted"]
    assert found.note == "none of voided and refunded holds; refunded fits best"


def test_where_more_than_one_holds_that_is_a_finding() -> None:
    either = {"expect": [{"updated": "shop.orders", "key": {"id": 17}, "values": {"status": {"in": ["void", "paid"]}}}]}
    task = {**ANY_OF, "any_of": {**ANY_OF["any_of"], "either": either}}
    found = verified(task, shop([O17]), shop([{**O17, "status": "void"}]))
    assert told(found.findings) == ["check_failed: any_of: voided and either hold, and exactly one of them must"]
    assert found.note == "voided and either hold"


def conditional(**whens: str) -> dict[str, Any]:
    branches: dict[str, Any] = ANY_OF["any_of"]
    chosen = {name: {**branches[name], "when": {"store": "shop", "sql": sql}} for name, sql in whens.items()}
    return {**ANY_OF, "any_of": {**branches, **chosen}}


def test_the_alternative_that_its_when_chooses_is_judged_even_if_another_holds() -> None:
    task, after = conditional(voided="select 1"), shop([DONE], [R1])
    assert verified(task, shop([O17]), after, whens={"voided": True}).alternative == "voided"
    assert len(verified(task, shop([O17]), after, whens={"voided": True}).findings) == 2
    assert verified(task, shop([O17]), after, whens={"voided": False}).alternative == "refunded"
    assert verified(task, shop([O17]), after, whens={"voided": False}).findings == ()


def test_a_when_that_could_not_be_asked_is_a_check_error() -> None:
    found = verified(
        conditional(voided="select 1"), shop([O17]), shop([DONE], [R1]), whens={"voided": Unanswered("away")}
    )
    assert found.alternative == "refunded"
    assert told(found.findings) == ["check_error: any_of.voided.when: whether it applies could not be told: away"]


def test_alternatives_that_may_both_hold_are_no_finding_where_not_all_is_known() -> None:
    task = {**ANY_OF, "any_of": {name: {"expect": "nothing"} for name in ("one", "two")}}
    found = verified(task, [], shop([O17]))
    assert {finding.kind for finding in found.findings} == {"check_error"}
    assert found.note == "which of one and two holds could not be told"


def test_no_alternative_that_applies_is_a_check_error() -> None:
    task = conditional(voided="select 1", refunded="select 1")
    found = verified(task, shop([O17]), shop([O17]), whens={"voided": False, "refunded": False})
    assert found.alternative is None
    assert [finding.kind for finding in found.findings] == ["check_error"]


def test_the_checks_of_an_alternative_decide_whether_it_holds() -> None:
    task = {**ANY_OF, "any_of": {name: {"expect": "nothing"} for name in ("one", "two")}}
    failed = Finding("check_failed", "one.balance", "one.balance: answered 1, expected 2")
    found = verified(task, shop([O17]), shop([O17]), checks={"one": [failed], "two": []})
    assert (found.alternative, found.findings) == ("two", ())


def test_what_a_task_expects_beside_its_alternatives_holds_for_each() -> None:
    common = {"expect": [{"inserted": "shop.refunds", "values": {"reason": "log"}}]}
    rows = [{**R1, "order_id": 0, "reason": "log"}]
    found = verified({**ANY_OF, **common}, shop([O17]), shop([{**O17, "status": "void"}], rows))
    assert (found.alternative, found.findings) == ("voided", ())


def test_a_task_of_checks_alone_judges_no_changes_unless_it_watches() -> None:
    checks = {"checks": [{"store": "shop", "sql": "select 1"}]}
    after = shop([{**O17, "status": "void"}])
    assert verified(checks, shop([O17]), after).findings == ()
    assert len(verified({**checks, "watch": {"shop.orders": {"key": "id"}}}, shop([O17]), after).findings) == 1


def test_without_a_picture_from_before_the_end_is_judged_as_far_as_it_tells() -> None:
    task = {**REFUND, "watch": {"shop.orders": {"key": "id"}, "shop.refunds": {"key": "id"}}}
    found = verified(task, [], shop([O17, O18], []), inputs=INPUTS)
    assert [(f.kind, f.place) for f in found.findings] == [
        ("check_error", "shop.orders"),
        ("check_error", "shop.refunds"),
        ("missing_change", "shop.orders"),
        ("missing_change", "shop.refunds"),
    ]
    right = verified(task, [], shop([DONE, O18], [R1]), inputs=INPUTS)
    assert [f.kind for f in right.findings] == ["check_error", "check_error"]


def test_columns_that_came_or_went_during_the_run_are_no_proof() -> None:
    [before, _] = shop([O17])
    after = picture("shop.orders", [{**O17, "note": 1}], {**ORDERS, "note": "integer"})
    task = {"watch": {"shop.orders": {"key": "id"}}, "expect": "nothing"}
    assert told(verified(task, [before], [after]).findings) == [
        "check_error: shop.orders: its columns changed during the run: note"
    ]


def test_a_column_that_is_not_looked_at_is_no_proof() -> None:
    expect = expecting({"updated": "shop.orders", "key": {"id": 17}, "values": {"staus": "paid"}})
    [line] = refund(shop([O17, O18]), **expect)
    assert line.startswith("check_error: shop.orders id=17: staus cannot be checked: staus is not looked at")


def test_a_table_that_is_not_watched_is_no_proof() -> None:
    found = verified(REFUND, [], [], inputs=INPUTS)
    assert {finding.kind for finding in found.findings} == {"check_error"}
    assert {finding.place for finding in found.findings} == {"shop.orders", "shop.refunds"}


# --- Pictures of hashes ------------------------------------------------------------------------------------------


def big(orders: Sequence[Mapping[str, Any]], refunds: Sequence[Mapping[str, Any]], *pinned: int) -> list[Picture]:
    return shop(orders, refunds, hashed=True, pinned=[(key,) for key in pinned])


def test_pinned_rows_of_big_tables_are_judged_whole() -> None:
    assert refund(big([DONE, O18], [R1], 17, 1), before=big([O17, O18], [], 17)) == []
    collateral = big([{**DONE, "amount": "0"}, O18], [R1], 17, 1)
    assert refund(collateral, before=big([O17, O18], [], 17)) == [
        "unrequested_change: shop.orders id=17: amount changed from 19.90 to 0, and nobody asked for it"
    ]


def test_changes_of_unknown_content_in_big_tables_are_named_by_their_key() -> None:
    assert refund(big([DONE, {**O18, "status": "void"}], [R1], 17, 1), before=big([O17, O18], [], 17)) == [
        "unrequested_change: shop.orders id=18: the row was changed (old values unknown), and nobody asked for it"
    ]


def test_what_only_hashes_are_known_of_is_no_proof() -> None:
    found = refund(big([DONE, O18], [R1]), before=big([O17, O18], []))
    assert found == snapshot(
        [
            "check_error: shop.orders id=17: the values of the row are unknown",
            "check_error: shop.refunds id=1: the values of the row are unknown",
            "check_error: shop.orders id=17: old values are unknown, so whether other columns changed is too",
        ]
    )


def test_a_relative_expectation_needs_the_value_from_before() -> None:
    expect = expecting({"updated": "shop.orders", "key": {"id": 17}, "values": {"amount": {"decreased_by": 1}}})
    found = refund(big([{**O17, "amount": "18.90"}, O18], [], 17), before=big([O17, O18], []), **expect)
    assert [line.split(":")[0] for line in found] == ["check_error", "check_error"]


def test_a_row_of_a_big_table_is_named_by_its_key_only() -> None:
    expect = expecting({"updated": "shop.orders", "key": {"status": "paid"}, "values": {"amount": 1}})
    [line] = refund(big([O17, O18], []), before=big([O17, O18], []), **expect)
    assert "is too large to look for a row by status; name it by id" in line


def test_the_rows_that_a_contract_names_are_known_beforehand() -> None:
    task = Task.model_validate(
        {
            "inputs": {"order_id": "integer"},
            "let": {"due": {"store": "shop", "rows": "select 1"}},
            "watch": {"shop.orders": {"key": "id"}, "shop.lines": {"key": ["order_id", "line"]}},
            "expect": [
                {"updated": "shop.orders", "key": {"id": "$order_id"}, "values": {"status": "x"}},
                {"updated": "shop.orders", "key": {"status": "paid"}, "values": {"status": "x"}},
                {
                    "updated": "shop.lines",
                    "each": "$due",
                    "key": {"line": "$each.line", "order_id": "$order_id"},
                    "values": {"state": "x"},
                },
                {"deleted": "shop.orders", "key": {"id": "$row.id"}},
                {"inserted": "shop.orders", "as": "row", "values": {"status": "x"}},
            ],
            "allow": [{"updated": "shop.orders", "key": {"id": 5}}],
        }
    )
    lets = {"due": ({"line": 1}, {"line": 2})}
    found = keys_wanted(Contract.of(task, "task"), {"order_id": 17}, lets)
    assert found == {"shop.orders": ((17,), (5,)), "shop.lines": ((17, 1), (17, 2))}


# --- What may be shown -------------------------------------------------------------------------------------------


def test_redacted_values_are_in_no_finding() -> None:
    after = shop(
        [{**O17, "status": "hunter2", "meta": '{"state": "open", "n": 1, "pin": "hunter2"}'}, O18],
        [{**R1, "reason": "hunter2", "amount": "1.00"}, {**R1, "id": 2, "reason": "hunter2"}],
    )
    expect = expecting(
        {"updated": "shop.orders", "key": {"id": 17}, "values": {"status": "hunter3", "meta": {"pin": "hunter3"}}},
        {"inserted": "shop.refunds", "values": {"reason": {"not": "hunter2"}, "amount": "1.00"}},
        {"inserted": "shop.refunds", "values": {"reason": "hunter3", "order_id": 1}},
        {"deleted": "shop.orders", "key": {"id": 18}},
    )
    secret = frozenset({"status", "reason", "pin"})
    found = verified({**REFUND, **expect}, shop([O17, O18]), after, inputs=INPUTS, secret=secret).findings
    assert len(found) >= 5
    assert "hunter" not in repr(found)
    assert "shop.orders id=17: status is [redacted], expected [redacted]" in [str(finding) for finding in found]


def test_a_redacted_key_is_not_shown_either() -> None:
    kinds: dict[str, ColumnKind] = {"token": "text", "n": "integer"}
    before, after = ([picture("s.t", [{"token": "hunter2", "n": n}], kinds, ("token",))] for n in (1, 2))
    [finding] = verified(
        {"watch": {"s.t": {}}, "expect": "nothing"}, before, after, secret=frozenset({"token"})
    ).findings
    assert finding.text == "s.t token=[redacted]: n changed from 1 to 2, and nobody asked for it"
    assert finding.key == {"token": "[redacted]"}


def test_long_values_are_shortened_to_where_they_differ() -> None:
    expect = expecting({"updated": "shop.orders", "key": {"id": 17}, "values": {"status": "a" * 500 + "x" + "b" * 500}})
    [line] = refund(shop([{**O17, "status": "a" * 500 + "y" + "b" * 500}, O18]), **expect)
    assert len(line) < 400
    assert "aaay" in line
    assert "aaax" in line


def test_a_finding_is_one_line_whatever_the_values_hold() -> None:
    [finding] = verified(
        {**REFUND, "expect": "nothing"},
        shop([O17]),
        shop([{**O17, "status": "a\nb\x1b[31m", "meta": O17["meta"]}]),
    ).findings
    assert "\n" not in finding.text
    assert "\x1b" not in finding.text


def test_a_thousand_expected_rows_are_found_in_any_order() -> None:
    rows = [{**R1, "id": number, "reason": f"r{number}"} for number in range(1000)]
    expect = [
        {"inserted": "shop.refunds", "values": {"order_id": 17, "reason": f"r{n}"}} for n in reversed(range(1000))
    ]
    assert refund(shop([O17, O18], rows), expect=expect) == []
    assert refund(shop([O17, O18], rows[1:]), expect=expect) == [
        "missing_change: shop.refunds: no row with order_id=17, reason='r0' was inserted"
    ]


# --- Values that were not kept (a before-picture taken up after a crash) ----------------------------------------

KEY = b"k" * 16


def kept(*rows: dict[str, Any], column: str) -> list[Picture]:
    """Orders in which a column was kept as digests."""
    hidden = [{**row, column: Digest.of(row[column], KEY)} for row in rows]
    return [picture("shop.orders", hidden, ORDERS), picture("shop.refunds", [], REFUNDS)]


def test_a_column_that_was_not_kept_is_judged_by_its_end() -> None:
    expect = expecting({"updated": "shop.orders", "key": {"id": 17}, "values": {"status": "refunded"}})
    before = kept(O17, O18, column="status")
    assert refund(shop([DONE, O18]), before=before, **expect) == []
    assert refund(shop([O17, O18]), before=before, **expect) == [
        "missing_change: shop.orders id=17: status is 'paid', expected 'refunded'"
    ]
    assert refund(shop([DONE, {**O18, "status": "void"}]), before=before, **expect) == [
        "unrequested_change: shop.orders id=18: status changed from [redacted] to 'void', and nobody asked for it"
    ]


@pytest.mark.parametrize(("column", "value"), [("amount", {"decreased_by": 1}), ("meta", {"json": {"/state": "open"}})])
def test_a_value_that_was_not_kept_is_no_base_for_what_depends_on_it(column: str, value: Any) -> None:
    expect = expecting({"updated": "shop.orders", "key": {"id": 17}, "values": {column: value}})
    found = refund(shop([O17, O18]), before=kept(O17, O18, column=column), **expect)
    assert [line.split(":")[0] for line in found] == ["check_error"]


@pytest.mark.parametrize(
    ("column", "value", "outcome"),
    [
        ("status", "paid", []),
        ("status", "void", ["missing_change"]),
        ("status", {"not": "void"}, []),
        ("status", {"in": ["void", "paid"]}, []),
        ("status", {"generated": True}, []),
        ("status", {"matches": "p.*"}, ["check_error"]),
        ("amount", "19.90", []),
        ("amount", Decimal("19.90"), ["check_error"]),
        ("meta", {"json": {"/state": "open"}, "rest": "any"}, ["check_error"]),
    ],
)
def test_a_live_value_that_is_only_known_by_its_digest_proves_what_it_can(
    column: str, value: Any, outcome: list[str]
) -> None:
    expect = expecting({"updated": "shop.orders", "key": {"id": 17}, "values": {column: value}})
    hidden = kept(O17, O18, column=column)
    assert [line.split(":")[0] for line in refund(hidden, before=hidden, **expect)] == outcome


# --- What cannot be told never passes ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("expect", "why"),
    [
        (
            {"inserted": "shop.refunds", "each": "$due", "values": {"order_id": "$each.id"}},
            "shop.refunds: rows cannot be told: $due could not be read: away",
        ),
        (
            {"inserted": "shop.refunds", "each": "$amount", "values": {"amount": "$each"}},
            "shop.refunds: rows cannot be told: $amount is no list",
        ),
        (
            {"updated": "shop.orders", "key": {"id": 17}, "values": {"status": "$due"}},
            "shop.orders: status cannot be checked: $due could not be read: away",
        ),
        (
            {"updated": "shop.orders", "key": {"id": 17}, "values": {"status": {"in": "$amount"}}},
            "shop.orders id=17: status cannot be checked: the expected value is no list",
        ),
        (
            {"updated": "shop.orders", "key": {"id": 17}, "values": {"amount": {"increased_by": "$word"}}},
            "shop.orders id=17: amount cannot be checked: by how much it should have changed is no number",
        ),
        (
            {"updated": "shop.orders", "key": {"id": 17}, "values": {"meta": {"increased_by": 1}}},
            "shop.orders id=17: meta cannot be checked: its value before the run is unknown or no number",
        ),
        (
            {"updated": "shop.orders", "key": {"id": 17}, "values": {"status": {"at_least": 5}}},
            "shop.orders id=17: status cannot be checked: one of two values is neither a number nor an instant,"
            " so they have no order",
        ),
        (
            {"updated": "shop.orders", "key": {"id": 17}, "values": {"status": {"during": "run"}}},
            "shop.orders id=17: status cannot be checked: there is no run during which it could have been",
        ),
        (
            {"updated": "shop.orders", "key": {"sku": 1}, "values": {"status": "x"}},
            "shop.orders sku=1: the row cannot be told: sku is not looked at: the watch ignores it, or there is no"
            " such column",
        ),
        (
            {"inserted": "shop.lines", "values": {"id": 1}},
            "shop.lines: it could not be looked at after the run: there is no picture of it; is it watched?",
        ),
    ],
)
def test_what_cannot_be_told_is_a_check_error(expect: dict[str, Any], why: str) -> None:
    inputs = {**INPUTS, "word": "much"}
    found = refund(shop([O17, O18]), lets={"due": Unanswered("away")}, inputs=inputs, **expecting(expect))
    assert found == [f"check_error: {why}"]


def test_a_change_between_values_that_cannot_be_compared_is_a_check_error() -> None:
    before, after = shop([O17], [R1]), shop([O17], [{**R1, "at": "2026-11-30T10:00:05"}])
    [finding] = verified({**REFUND, "expect": "nothing"}, before, after).findings
    assert (finding.kind, finding.key, finding.column) == ("check_error", {"id": 1}, "at")


def test_a_row_that_fits_but_for_what_cannot_be_compared_is_a_check_error() -> None:
    expect = expecting({"inserted": "shop.refunds", "values": {"order_id": 17, "at": "2026-11-30T10:00:05"}})
    [line] = refund(shop([O17, O18], [R1]), **expect)
    assert line.startswith("check_error: shop.refunds id=1: at cannot be checked: one of two times has no zone")
    [line] = refund(shop([O17, O18], [{**R1, "order_id": 18}]), **expect)[:1]
    assert line.startswith("missing_change")


def test_a_check_that_cannot_be_made_hides_no_proven_wrong_value() -> None:
    expect = expecting(
        {"updated": "shop.orders", "key": {"id": 17}, "values": {"amount": "$unknown", "status": "refunded"}}
    )
    assert [line.split(":")[0] for line in refund(shop([O17, O18]), **expect)] == ["check_error", "missing_change"]


def test_a_time_that_became_a_number_in_a_row_nobody_may_touch_is_proved() -> None:
    after = shop([DONE, O18], [{**R1, "at": 1767261600}])
    assert refund(after, before=shop([DONE, O18], [R1]), expect="nothing") == [
        "unrequested_change: shop.refunds id=1: at changed from 2026-11-30T10:00:05+00:00 to 1767261600, and nobody asked "
        "for it"
    ]


def test_one_cent_of_ten_thousand_millions_is_a_change() -> None:
    kinds: dict[str, ColumnKind] = {"id": "integer", "total": "float"}
    before, after = (
        [picture("shop.accounts", [{"id": 1, "total": t}], kinds)] for t in (10_000_000_000.0, 10_000_000_000.01)
    )
    task: dict[str, Any] = {"watch": {"shop.accounts": {}}, "expect": "nothing"}
    assert [finding.kind for finding in verified(task, before, after).findings] == ["unrequested_change"]
    task["watch"] = {"shop.accounts": {"compare": {"total": {"tolerance": 1}}}}
    assert verified(task, before, after).findings == ()


def test_the_case_of_letters_does_not_matter_in_names_of_columns() -> None:
    task: dict[str, Any] = {
        "watch": {
            "shop.orders": {"key": "ID", "compare": {"STATUS": {"case": "ignore"}}, "ignore": ["Meta"]},
            "shop.refunds": {"key": "Id"},
        },
        "expect": [
            {"updated": "shop.orders", "key": {"Id": "$order_id"}, "values": {"Status": "REFUNDED"}, "as": "order"},
            {"inserted": "shop.refunds", "values": {"Order_ID": "$order.ID", "AMOUNT": "$amount"}},
        ],
        "allow": [
            {"updated": "shop.orders", "key": {"ID": 18}, "columns": ["STATUS"]},
            {"inserted": "shop.refunds", "values": {"REASON": "extra"}},
        ],
    }
    done = shop([DONE, {**O18, "status": "void"}], [R1, {**R1, "id": 2, "reason": "extra", "order_id": 18}])
    assert refund(done, **task) == []
    wrong = shop([{**DONE, "amount": "1"}, O18], [{**R1, "amount": "1"}])
    assert refund(wrong, **task) == [
        "wrong_value: shop.refunds id=1: amount is 1, expected 19.90",
        "unrequested_change: shop.orders id=17: amount changed from 19.90 to 1, and nobody asked for it",
    ]


def test_names_that_differ_by_case_alone_are_told_apart() -> None:
    kinds: dict[str, ColumnKind] = {"id": "integer", "note": "text", "Note": "text"}
    before = [picture("s.t", [{"id": 1, "note": "a", "Note": "b"}], kinds)]
    after = [picture("s.t", [{"id": 1, "note": "c", "Note": "d"}], kinds)]
    expect = [{"updated": "s.t", "key": {"id": 1}, "values": {"note": "c", "Note": "d"}}]
    assert verified({"watch": {"s.t": {}}, "expect": expect}, before, after).findings == ()
    expect[0]["values"] = {"NOTE": "c"}
    found = verified({"watch": {"s.t": {}}, "expect": expect}, before, after).findings
    assert "NOTE is not looked at" in found[0].text


def test_a_key_named_in_other_letters_is_pinned() -> None:
    task = Task.model_validate({**REFUND, "expect": [{"deleted": "shop.orders", "key": {"ID": "$order_id"}}]})
    assert keys_wanted(Contract.of(task, "task"), INPUTS, {}, {"shop.orders": ("id",)}) == {"shop.orders": ((17,),)}


SECRET_TASK: dict[str, Any] = {
    "inputs": {"order_id": "integer", "amount": "decimal", "codeword": "text", "notes": "list"},
    "expect": [
        {"updated": "shop.orders", "key": {"id": "$order_id"}, "values": {"status": "$codeword"}, "as": "order"},
        {"inserted": "shop.refunds", "values": {"reason": "$order.status", "amount": {"not": 3}}},
    ],
}


def everything(findings: Sequence[Finding]) -> str:
    return repr([(f.text, f.key, f.expected, f.actual) for f in findings])


@pytest.mark.parametrize(
    ("orders", "refunds"),
    [
        ([{**O17, "status": "was-secret"}, O18], []),
        ([{**O17, "status": "hush-hush"}, {**O18, "status": "hush-hush"}], [{**R1, "reason": "hush-hush!"}]),
        ([O18], [{**R1, "reason": "hush-hush"}, {**R1, "id": 2, "reason": "hush-hush"}]),
        ([{**O17, "status": "hush-hush"}], [{**R1, "reason": "hush-hush", "amount": "3"}]),
    ],
)
def test_a_value_that_came_from_a_secret_input_is_in_no_finding(
    orders: list[dict[str, Any]], refunds: list[dict[str, Any]]
) -> None:
    inputs = {**INPUTS, "codeword": "hush-hush"}
    before = shop([{**O17, "status": "was-secret"}, O18])
    found = verified(
        {**REFUND, **SECRET_TASK}, before, shop(orders, refunds), inputs=inputs, secret=frozenset({"codeword"})
    ).findings
    assert found
    assert "hush" not in everything(found)
    assert "was-secret" not in everything(found)


def test_beside_a_secret_input_the_place_is_still_told() -> None:
    inputs = {**INPUTS, "codeword": "hush-hush"}
    found = verified(
        {**REFUND, **SECRET_TASK}, shop([O17]), shop([O17]), inputs=inputs, secret=frozenset({"codeword"})
    ).findings
    assert told(found) == [
        "missing_change: shop.orders id=17: status is [redacted], expected [redacted]",
        "missing_change: shop.refunds: no row with reason=[redacted], amount=anything but 3 was inserted",
    ]
    assert (found[0].expected, found[0].actual) == ("[redacted]", "[redacted]")


def test_the_key_and_the_items_of_a_secret_input_are_in_no_finding() -> None:
    expect = [
        {"updated": "shop.orders", "key": {"id": "$order_id"}, "values": {"status": "refunded"}},
        {"inserted": "shop.refunds", "each": "$notes", "values": {"reason": "$each.text", "order_id": 5}},
    ]
    inputs = {**INPUTS, "order_id": 1717, "notes": [{"text": "hush-hush"}]}
    task = {**REFUND, **SECRET_TASK, "expect": expect}
    orders = [{**O17, "id": 1717}]
    secret = frozenset({"order_id", "notes"})
    for after in (shop(orders), shop([])):
        found = verified(task, shop(orders), after, inputs=inputs, secret=secret).findings
        assert [finding.kind for finding in found if finding.kind != "unrequested_change"] == ["missing_change"] * 2
        assert "1717" not in everything(found)
        assert "hush" not in everything(found)


def test_that_nothing_was_expected_decides_between_no_alternatives() -> None:
    each = {"updated": "shop.orders", "each": "$wishes", "key": {"id": "$each.id"}, "values": {"status": "void"}}
    branches = {"empty": {"expect": [each]}, "deleted": {"expect": [{"deleted": "shop.orders", "key": {"id": 17}}]}}
    task = {
        "inputs": {"wishes": "list"},
        "watch": {"shop.orders": {"key": "id"}, "shop.refunds": {"key": "id"}},
        "any_of": branches,
    }
    chosen = verified(task, shop([O17]), shop([O17]), inputs={"wishes": []})
    assert (chosen.alternative, chosen.note) == ("empty", "")
    assert [(finding.kind, finding.warning) for finding in chosen.findings] == [("check_error", True)]


def test_an_expected_text_of_a_column_of_numbers_is_shown_as_a_number() -> None:
    expect: list[dict[str, Any]] = [
        {"updated": "shop.orders", "key": {"id": "17"}, "values": {"amount": "19.95"}},
        {"inserted": "shop.refunds", "values": {"order_id": "17", "amount": "19.95", "reason": "17"}},
        {"deleted": "shop.orders", "key": {"id": 18}},
    ]
    assert refund(shop([O17]), expect=expect) == [
        "missing_change: shop.orders id=17: amount is 19.90, expected 19.95",
        "missing_change: shop.refunds: no row with order_id=17, amount=19.95, reason='17' was inserted",
    ]
    expect[0]["values"] = {"amount": "much"}
    assert refund(shop([O17]), expect=expect)[0].endswith("expected 'much'")
