"""B14: one field was to change, the rest was reset."""

from __future__ import annotations

import json
from typing import Any

import pytest

from guardrail import Finding, Run
from support.shop import Guards, Shop

PRODUCTS = """
create table products (
  id integer primary key, name text, price decimal(10, 2), active boolean, note text, meta json, updated_at timestamp
)
"""
ROWS = [
    (12, "Vase", "30.00", 1, None, '{"a": 1, "b": 2}', "2026-11-30 10:00:00"),
    (13, "Cup", "5.00", 1, None, None, "2026-11-30 10:00:00"),
]
NOTE = {"updated": "shop.products", "key": {"id": 12}, "values": {"note": "fragile"}}
SET_NOTE: dict[str, Any] = {"watch": {"shop.products": {"key": "id"}}, "expect": [NOTE]}


@pytest.fixture
def products(shop: Shop) -> Shop:
    shop.execute(PRODUCTS)
    for row in ROWS:
        shop.execute("insert into products values (?, ?, ?, ?, ?, ?, ?)", *row)
    return shop


def run_of(guards: Guards, shop: Shop, task: dict[str, Any], *writes: str) -> Run:
    """A run in which a tool that says that all went well makes these writes."""

    def patch_product(id: int) -> dict[str, object]:
        for write in writes:
            shop.execute(write)
        return {"status": 200, "id": id}

    guard = guards(policy="strict", tools={"patch_product": {"effect": "write"}}, tasks={"patch": task})
    with guard.run("patch") as run:
        run.wrap(patch_product)(12)
    return run


def findings(run: Run) -> tuple[Finding, ...]:
    assert run.verdict is not None
    assert run.verdict.kind == ("silent_failure" if run.verdict.findings else "verified")
    return run.verdict.findings


def texts(run: Run) -> list[str]:
    assert {finding.kind for finding in findings(run)} <= {"unrequested_change"}
    return [finding.text for finding in findings(run)]


@pytest.mark.case("B14", "collateral fields")
def test_columns_that_were_reset_are_named_each_with_old_and_new_value(guards: Guards, products: Shop) -> None:
    write = "update products set note = 'fragile', name = '12', price = null, active = 0 where id = 12"
    assert texts(run_of(guards, products, SET_NOTE, write)) == [
        "shop.products id=12: active changed from true to false, and nobody asked for it",
        "shop.products id=12: name changed from 'Vase' to '12', and nobody asked for it",
        "shop.products id=12: price changed from 30 to NULL, and nobody asked for it",
    ]


@pytest.mark.case("B14", "only the note")
def test_the_requested_column_alone_is_what_was_asked_for(guards: Guards, products: Shop) -> None:
    assert findings(run_of(guards, products, SET_NOTE, "update products set note = 'fragile' where id = 12")) == ()


@pytest.mark.case("B14", "note right, other row touched")
def test_another_row_that_was_touched_is_named(guards: Guards, products: Shop) -> None:
    [finding] = findings(run_of(guards, products, SET_NOTE, "update products set note = 'fragile'"))
    assert (finding.kind, finding.place, dict(finding.key), finding.column, finding.expected, finding.actual) == (
        "unrequested_change",
        "shop.products",
        {"id": 13},
        "note",
        None,
        "fragile",
    )


def set_meta(value: object) -> dict[str, Any]:
    return {**SET_NOTE, "expect": [{"updated": "shop.products", "key": {"id": 12}, "values": {"meta": value}}]}


@pytest.mark.case("B14", "key removed from a JSON column")
def test_a_key_that_is_gone_from_a_document_is_named(guards: Guards, products: Shop) -> None:
    run = run_of(
        guards, products, set_meta({"json": {"/a": 9}}), """update products set meta = '{"a": 9}' where id = 12"""
    )
    assert texts(run) == ["shop.products id=12: meta/b was removed (it was 2), and nobody asked for it"]


@pytest.mark.case("B14", "null against missing in a JSON column")
def test_a_null_that_was_missing_in_a_document_is_reported_unless_the_rest_may_change(
    guards: Guards, products: Shop
) -> None:
    added = json.dumps({"a": 1, "b": 2, "c": None})
    write = f"update products set note = 'fragile', meta = '{added}' where id = 12"
    assert texts(run_of(guards, products, SET_NOTE, write)) == [
        "shop.products id=12: meta/c was added (NULL), and nobody asked for it"
    ]


def test_the_rest_of_a_document_may_be_declared_free(guards: Guards, products: Shop) -> None:
    task = set_meta({"json": {"/a": 9}, "rest": "any"})
    write = """update products set meta = '{"a": 9, "c": null}' where id = 12"""
    assert findings(run_of(guards, products, task, write)) == ()


@pytest.mark.case("B14", "row disappears and comes back with another id")
def test_a_row_that_comes_back_under_another_id_is_a_delete_and_an_insert(guards: Guards, products: Shop) -> None:
    nothing: dict[str, Any] = {**SET_NOTE, "expect": "nothing"}
    found = findings(run_of(guards, products, nothing, "update products set id = 77 where id = 12"))
    assert {(finding.key["id"], "deleted" in finding.text, "inserted" in finding.text) for finding in found} == {
        (12, True, False),
        (77, False, True),
    }
    assert {finding.kind for finding in found} == {"unrequested_change"}


@pytest.mark.case("B14", "declared side effect")
@pytest.mark.parametrize(
    "declared",
    [
        {"watch": {"shop.products": {"key": "id", "ignore": ["updated_at"]}}},
        {"allow": [{"updated": "shop.products", "key": {"id": 12}, "columns": ["updated_at"]}]},
    ],
)
def test_a_declared_side_effect_is_no_finding_and_an_undeclared_one_is(
    guards: Guards, products: Shop, declared: dict[str, Any]
) -> None:
    write = "update products set note = 'fragile', updated_at = '2026-11-30 11:00:00' where id = 12"
    assert findings(run_of(guards, products, {**SET_NOTE, **declared}, write)) == ()
    products.execute("update products set note = null, updated_at = '2026-11-30 10:00:00' where id = 12")
    assert [finding.column for finding in findings(run_of(guards, products, SET_NOTE, write))] == ["updated_at"]
