"""Cases from bug reports: what has to be found in them, and what has not."""

from __future__ import annotations

from typing import Any

import pytest

from guardrail.pictures import ColumnKind, Picture, Unanswered
from guardrail.state import unsettled
from support.pictures import picture, told, verified

# --- B14: one field was to change, the rest was reset ------------------------------------------------------------

PRODUCT_KINDS: dict[str, ColumnKind] = {
    "id": "integer",
    "name": "text",
    "price": "decimal",
    "active": "boolean",
    "note": "text",
    "updated_at": "instant",
    "meta": "json",
}
VASE = {"id": 12, "name": "Vase", "price": 30.0, "active": 1, "note": None, "updated_at": "2026-11-30 10:00:00"}
CUP = {"id": 13, "name": "Cup", "price": 5.0, "active": 1, "note": None, "updated_at": "2026-11-30 10:00:00"}
SET_NOTE: dict[str, Any] = {
    "watch": {"shop.products": {"key": "id"}},
    "expect": [{"updated": "shop.products", "key": {"id": 12}, "values": {"note": "fragile"}}],
}


def products(*rows: dict[str, Any]) -> list[Picture]:
    return [picture("shop.products", rows, PRODUCT_KINDS)]


def test_b14_collateral_fields_are_named_each_with_old_and_new_value() -> None:
    reset = {**VASE, "note": "fragile", "name": "12", "price": None, "active": 0}
    assert told(verified(SET_NOTE, products(VASE, CUP), products(reset, CUP)).findings) == [
        "unrequested_change: shop.products id=12: active changed from true to false, and nobody asked for it",
        "unrequested_change: shop.products id=12: name changed from 'Vase' to '12', and nobody asked for it",
        "unrequested_change: shop.products id=12: price changed from 30.0 to NULL, and nobody asked for it",
    ]


def test_b14_only_the_note_is_what_was_asked_for() -> None:
    assert verified(SET_NOTE, products(VASE, CUP), products({**VASE, "note": "fragile"}, CUP)).findings == ()


def test_b14_the_note_is_right_and_another_row_was_touched() -> None:
    after = products({**VASE, "note": "fragile"}, {**CUP, "note": "fragile"})
    [finding] = verified(SET_NOTE, products(VASE, CUP), after).findings
    assert (finding.kind, finding.place, finding.key, finding.column) == (
        "unrequested_change",
        "shop.products",
        {"id": 13},
        "note",
    )
    assert (finding.expected, finding.actual) == (None, "fragile")


def set_meta(value: Any) -> dict[str, Any]:
    return {
        "watch": {"shop.products": {"key": "id"}},
        "expect": [{"updated": "shop.products", "key": {"id": 12}, "values": {"meta": value}}],
    }


@pytest.mark.parametrize("as_text", [True, False])
def test_b14_a_key_removed_from_a_json_column_is_named_by_its_pointer(as_text: bool) -> None:
    before, after = ('{"a": 1, "b": 2}', '{"a": 9}') if as_text else ({"a": 1, "b": 2}, {"a": 9})
    task = set_meta({"json": {"/a": 9}})
    [finding] = verified(task, products({**VASE, "meta": before}), products({**VASE, "meta": after})).findings
    assert finding.column == "meta/b"
    assert finding.text == "shop.products id=12: meta/b was removed (it was 2), and nobody asked for it"


def test_b14_null_is_not_missing_in_a_json_column() -> None:
    nothing: dict[str, Any] = {"watch": {"shop.products": {"key": "id"}}, "expect": "nothing"}
    before, after = products({**VASE, "meta": '{"a": 1}'}), products({**VASE, "meta": '{"a": 1, "b": null}'})
    assert told(verified(nothing, before, after).findings) == [
        "unrequested_change: shop.products id=12: meta/b was added (NULL), and nobody asked for it"
    ]
    ignored: dict[str, Any] = {"watch": {"shop.products": {"key": "id", "ignore": ["meta"]}}, "expect": "nothing"}
    assert verified(ignored, before, after).findings == ()


def test_b14_a_row_that_comes_back_with_another_id_is_a_delete_and_an_insert() -> None:
    nothing: dict[str, Any] = {"watch": {"shop.products": {"key": "id"}}, "expect": "nothing"}
    found = verified(nothing, products(VASE), products({**VASE, "id": 77})).findings
    assert [(finding.kind, finding.key) for finding in found] == [
        ("unrequested_change", {"id": 12}),
        ("unrequested_change", {"id": 77}),
    ]
    assert "the row was inserted (name='Vase', price=30.0," in found[1].text
    assert "the row was deleted (name='Vase', price=30.0," in found[0].text


@pytest.mark.parametrize(
    "declared",
    [
        {"watch": {"shop.products": {"key": "id", "ignore": ["updated_at"]}}},
        {"allow": [{"updated": "shop.products", "key": {"id": 12}, "columns": ["updated_at"]}]},
    ],
)
def test_b14_a_declared_side_effect_is_no_finding(declared: dict[str, Any]) -> None:
    after = products({**VASE, "note": "fragile", "updated_at": "2026-11-30 11:00:00"}, CUP)
    assert verified({**SET_NOTE, **declared}, products(VASE, CUP), after).findings == ()
    assert len(verified(SET_NOTE, products(VASE, CUP), after).findings) == 1


# --- B15: others write at the same time --------------------------------------------------------------------------

TICKET_KINDS: dict[str, ColumnKind] = {
    "id": "integer",
    "owner": "text",
    "updated_at": "instant",
    "sla_due": "instant",
    "n": "integer",
}
FOUR = {"id": 4, "owner": "lee", "updated_at": "2026-11-30 09:00:00", "sla_due": None, "n": 5}
NINE = {"id": 9, "owner": "ann", "updated_at": "2026-11-30 09:00:00", "sla_due": "2026-12-01 00:00:00", "n": 0}
OWNED = [
    {**FOUR, "owner": "kim", "updated_at": "2026-11-30 10:00:05"},
    {**NINE, "sla_due": "2026-12-02 00:00:00"},
]


def tickets(*rows: dict[str, Any]) -> list[Picture]:
    return [picture("desk.tickets", rows, TICKET_KINDS)]


def owner(watch: dict[str, Any], **more: Any) -> dict[str, Any]:
    expect = [{"updated": "desk.tickets", "key": {"id": 4}, "values": {"owner": "kim"}}]
    return {"watch": {"desk.tickets": {"key": "id", **watch}}, "expect": expect, **more}


def test_b15_allowed_columns_may_be_touched_by_a_sync() -> None:
    allow = [{"updated": "desk.tickets", "columns": ["updated_at", "sla_due"]}]
    assert verified(owner({}, allow=allow), tickets(FOUR, NINE), tickets(*OWNED)).findings == ()


def test_b15_nothing_allowed_is_two_unrequested_changes() -> None:
    found = verified(owner({}), tickets(FOUR, NINE), tickets(*OWNED)).findings
    assert [(f.kind, f.key["id"], f.column, f.warning) for f in found] == [
        ("unrequested_change", 4, "updated_at", False),
        ("unrequested_change", 9, "sla_due", False),
    ]


def test_b15_in_a_shared_table_they_are_shown_as_warnings() -> None:
    found = verified(owner({"shared": True}), tickets(FOUR, NINE), tickets(*OWNED)).findings
    assert [(f.kind, f.warning) for f in found] == [("unrequested_change", True)] * 2
    assert found[1].text == (
        "desk.tickets id=9: sla_due changed from 2026-12-01T00:00:00 to 2026-12-02T00:00:00, "
        "and nobody asked for it (others write here too)"
    )


def test_b15_a_value_that_another_overwrote_is_wrong_even_in_a_shared_table() -> None:
    changed = {**FOUR, "owner": "lea"}
    assert told(verified(owner({"shared": True}), tickets(FOUR), tickets(changed)).findings) == [
        "wrong_value: desk.tickets id=4: owner is 'lea', expected 'kim'"
    ]


def test_b15_each_of_two_runs_watches_its_own_rows() -> None:
    allow_nothing = owner({})
    after = tickets({**FOUR, "owner": "kim"})
    assert verified(allow_nothing, tickets(FOUR), after).findings == ()


@pytest.mark.parametrize(
    ("expected", "kinds"),
    [
        ({"increased_by": 2}, []),
        ({"increased_by": 1}, ["wrong_value"]),
        ({"increased_by": {"at_least": 1}}, []),
        (6, ["wrong_value"]),
    ],
)
def test_b15_an_increment_by_two_actors_needs_a_relative_expectation(expected: Any, kinds: list[str]) -> None:
    task: dict[str, Any] = {
        "watch": {"desk.tickets": {"key": "id"}},
        "expect": [{"updated": "desk.tickets", "key": {"id": 4}, "values": {"n": expected}}],
    }
    found = verified(task, tickets(FOUR), tickets({**FOUR, "n": 7})).findings
    assert [finding.kind for finding in found] == kinds


# --- B24: same value, other form (the rest are data: comparisons.json) -------------------------------------------


def test_b24_a_not_equal_expectation_is_met_by_null() -> None:
    task: dict[str, Any] = {
        "watch": {"desk.tickets": {"key": "id"}},
        "expect": [{"updated": "desk.tickets", "key": {"id": 4}, "values": {"n": {"not": 5}}}],
    }
    assert verified(task, tickets(FOUR), tickets({**FOUR, "n": None})).findings == ()
    assert [f.kind for f in verified(task, tickets(FOUR), tickets(FOUR)).findings] == ["missing_change"]


def test_b24_values_that_print_alike_are_shown_with_their_types() -> None:
    kinds: dict[str, ColumnKind] = {"id": "integer", "code": "text"}
    task: dict[str, Any] = {
        "watch": {"desk.codes": {"key": "id"}},
        "expect": [{"updated": "desk.codes", "key": {"id": 1}, "values": {"code": "01"}}],
    }
    codes = [[picture("desk.codes", [{"id": 1, "code": code}], kinds)] for code in ("", 1)]
    assert told(verified({**task, "expect": [{**task["expect"][0], "values": {"code": "1"}}]}, *codes).findings) == [
        "wrong_value: desk.codes id=1: code is 1 (integer), expected '1' (text)"
    ]


def test_b24_a_time_without_a_zone_is_no_proof_until_one_is_declared() -> None:
    expect = [{"updated": "desk.tickets", "key": {"id": 4}, "values": {"updated_at": "2026-11-30T09:00:00Z"}}]
    task: dict[str, Any] = {"watch": {"desk.tickets": {"key": "id"}}, "expect": expect}
    [finding] = verified(task, tickets(FOUR), tickets(FOUR)).findings
    assert finding.kind == "check_error"
    assert finding.text.startswith("desk.tickets id=4: updated_at cannot be checked: one of two times has no zone")
    zoned = {"watch": {"desk.tickets": {"key": "id", "compare": {"updated_at": {"zone": "UTC"}}}}, "expect": expect}
    assert verified(zoned, tickets(FOUR), tickets(FOUR)).findings == ()


# --- B10, B25: the state decides, and it may need time ----------------------------------------------------------

ORDER_KINDS: dict[str, ColumnKind] = {"id": "integer", "status": "text", "note": "text"}
CANCEL: dict[str, Any] = {
    "watch": {"shop.orders": {"key": "id"}},
    "expect": [{"updated": "shop.orders", "key": {"id": 501}, "values": {"status": "cancelled"}}],
}


def order(status: str, note: str | None = None) -> list[Picture]:
    return [picture("shop.orders", [{"id": 501, "status": status, "note": note}], ORDER_KINDS)]


def test_b10_no_call_at_all_is_a_missing_change() -> None:
    assert told(verified(CANCEL, order("open"), order("open")).findings) == [
        "missing_change: shop.orders id=501: status is 'open', expected 'cancelled'"
    ]


def test_b10_another_tool_than_the_right_one_is_a_missing_change_and_an_unrequested_one() -> None:
    found = verified(CANCEL, order("open"), order("open", "please cancel")).findings
    assert [finding.kind for finding in found] == ["missing_change", "unrequested_change"]


def test_b10_an_error_that_was_repaired_leaves_no_finding() -> None:
    assert verified(CANCEL, order("open"), order("cancelled")).findings == ()


@pytest.mark.parametrize(
    ("after", "again"),
    [
        (order("open"), True),
        (order("pending"), True),
        (order("cancelled"), False),
        (order("cancelled", "collateral"), False),
    ],
)
def test_b25_only_what_may_still_come_true_is_looked_at_again(after: list[Picture], again: bool) -> None:
    assert unsettled(verified(CANCEL, order("open"), after)) is again


def test_b25_a_store_that_is_away_is_a_check_error_and_never_met() -> None:
    [before] = order("open")
    found = verified(CANCEL, [before], {"shop.orders": Unanswered("connection refused")})
    assert told(found.findings) == [
        "check_error: shop.orders: it could not be looked at after the run: connection refused"
    ]
    assert not unsettled(found)
