"""What changed between two pictures."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from guardrail.declare.contracts import Loosely
from guardrail.pictures import ColumnKind, Key, Picture, Row
from guardrail.pointers import MISSING
from guardrail.state import Incomparable, differences, unseen
from guardrail.state.documents import document_differences, put
from guardrail.state.unknown import UNKNOWN
from support.pictures import Rows, picture

KINDS: dict[str, ColumnKind] = {"id": "integer", "status": "text", "amount": "decimal", "meta": "json"}


def orders(*rows: dict[str, Any], **options: Any) -> Picture:
    return picture("shop.orders", rows, KINDS, **options)


PAID = {"id": 17, "status": "paid", "amount": "19.90", "meta": '{"a": 1}'}
OPEN = {"id": 18, "status": "open", "amount": "5.00", "meta": None}


def test_equal_pictures_have_no_changes() -> None:
    assert differences(orders(PAID, OPEN), orders(OPEN, PAID)) == ()


def test_a_changed_row_is_an_update_that_names_its_columns() -> None:
    [change] = differences(orders(PAID, OPEN), orders({**PAID, "status": "void", "amount": "0"}, OPEN))
    assert (change.table, change.kind, change.key) == ("shop.orders", "update", {"id": 17})
    assert change.columns == ("status", "amount")
    assert change.before == PAID
    assert change.after == {**PAID, "status": "void", "amount": "0"}
    assert change.attribution == "unattributed"


def test_new_and_missing_rows_are_inserts_and_deletes() -> None:
    deleted, inserted = differences(orders(PAID), orders(OPEN))
    assert (inserted.kind, inserted.key, inserted.before, inserted.after) == ("insert", {"id": 18}, None, OPEN)
    assert (deleted.kind, deleted.key, deleted.before, deleted.after) == ("delete", {"id": 17}, PAID, None)


def test_a_row_whose_key_changed_is_a_delete_and_an_insert() -> None:
    found = differences(orders(PAID), orders({**PAID, "id": 77}))
    assert [(change.kind, change.key) for change in found] == [("delete", {"id": 17}), ("insert", {"id": 77})]


NAN = float("nan")


def test_changes_come_in_the_order_of_the_keys_whatever_these_are() -> None:
    moment = datetime(2026, 3, 1, tzinfo=UTC)
    keys = [-1, Decimal("0.5"), True, 9, 9.5, 10**400, "", "10", "9", "B", "a", b"a", None]
    others = [date(2026, 1, 1), moment, moment + timedelta(microseconds=1), datetime(2026, 3, 2), NAN]
    empty, full = orders(), orders(*({**PAID, "id": key} for key in reversed([*keys, *others])))
    found = [change.key["id"] for change in differences(empty, full)]
    assert found == [change.key["id"] for change in differences(full, empty)]
    assert [key for key in found if key in keys] == keys
    assert found.index(moment) < found.index(others[2])


def test_the_parts_of_a_key_count_in_their_order() -> None:
    kinds: dict[str, ColumnKind] = {"code": "text", "part": "integer"}
    keys = [("a", 9), ("a", 10), ("b", 1)]
    rows = [{"code": code, "part": part} for code, part in keys]
    [empty, full] = (picture("shop.parts", found, kinds, key=("code", "part")) for found in ([], rows[::-1]))
    assert [tuple(change.key.values()) for change in differences(empty, full)] == keys


@pytest.mark.parametrize("column", ["amount", "meta"])
def test_the_same_value_in_another_form_is_no_change(column: str) -> None:
    other = {"amount": "19.9", "meta": '{ "a" : 1.0 }'}[column]
    assert differences(orders(PAID), orders({**PAID, column: other})) == ()


def test_true_in_a_document_that_became_1_is_a_change() -> None:
    [change] = differences(orders({**PAID, "meta": {"a": True}}), orders({**PAID, "meta": {"a": 1}}))
    assert change.columns == ("meta",)


def test_ignored_columns_are_left_out() -> None:
    [change] = differences(
        orders(PAID), orders({**PAID, "status": "void", "amount": "1"}), ignore=frozenset({"amount"})
    )
    assert change.columns == ("status",)
    assert "amount" not in (change.before or {})
    assert "amount" not in (change.after or {})
    assert differences(orders(PAID), orders({**PAID, "amount": "1"}), ignore=frozenset({"amount"})) == ()


def test_loosely_equal_columns_are_no_change() -> None:
    compare = {"status": Loosely(case="ignore")}
    assert differences(orders(PAID), orders({**PAID, "status": "PAID"}), compare=compare) == ()
    assert len(differences(orders(PAID), orders({**PAID, "status": "PAID"}))) == 1


def test_values_that_cannot_be_compared_count_as_changed() -> None:
    kinds: dict[str, ColumnKind] = {"id": "integer", "at": "instant"}
    before, after = ([{"id": 1, "at": at}] for at in ("2026-11-30T12:00:00", "2026-11-30T12:00:00Z"))
    [change] = differences(picture("shop.log", before, kinds), picture("shop.log", after, kinds))
    assert change.columns == ("at",)


def test_rows_are_told_apart_by_all_columns_of_their_key() -> None:
    kinds: dict[str, ColumnKind] = {"order_id": "integer", "line": "integer", "sku": "text"}

    def lines(sku: str) -> Picture:
        rows: Rows = [{"order_id": 1, "line": 1, "sku": "a"}, {"order_id": 1, "line": 2, "sku": sku}]
        return picture("shop.lines", rows, kinds, ("order_id", "line"))

    [change] = differences(lines("b"), lines("c"))
    assert change.key == {"order_id": 1, "line": 2}


def test_pictures_of_hashes_give_changes_with_unknown_old_values() -> None:
    changes = differences(orders(PAID, OPEN, hashed=True), orders({**PAID, "status": "void"}, hashed=True))
    updated, deleted = changes
    assert updated.kind == "update"
    assert updated.columns is None
    assert updated.before == {"id": 17, "status": UNKNOWN, "amount": UNKNOWN, "meta": UNKNOWN}
    assert (deleted.kind, deleted.key) == ("delete", {"id": 18})
    assert str(UNKNOWN) == "unknown"


def test_pinned_rows_of_pictures_of_hashes_compare_whole() -> None:
    before = orders(PAID, OPEN, hashed=True, pinned=[(17,)])
    [change] = differences(before, orders({**PAID, "status": "void"}, OPEN, hashed=True, pinned=[(17,)]))
    assert change.columns == ("status",)
    assert change.before == PAID
    assert differences(before, orders({**PAID, "amount": "19.9"}, OPEN, hashed=True, pinned=[(17,)])) == ()


def test_the_rows_that_only_their_hash_is_known_of_can_be_asked_for() -> None:
    before = orders(PAID, hashed=True)
    after = orders({**PAID, "status": "void"}, OPEN, hashed=True, pinned=[(18,)])
    assert unseen(before, after) == ((17,),)
    assert unseen(orders(PAID), orders(OPEN)) == ()


def test_pictures_of_different_forms_are_not_compared() -> None:
    with pytest.raises(Incomparable, match=r"one picture of shop\.orders holds whole rows and the other hashes"):
        differences(orders(PAID), orders(PAID, hashed=True))
    with pytest.raises(Incomparable, match=r"the key of shop\.orders changed"):
        differences(orders(PAID), orders(PAID, key=("id", "status")))


def test_columns_that_came_or_went_during_the_run_are_left_out() -> None:
    more: dict[str, ColumnKind] = {**KINDS, "note": "text"}
    after = picture("shop.orders", [{**PAID, "note": "x"}], more)
    assert differences(orders(PAID), after) == ()
    assert differences(after, orders(PAID)) == ()


@dataclass(frozen=True)
class Digest:
    """Stands for a value that the ledger did not keep."""

    of: object

    def matches(self, value: object, /) -> bool:
        return value == self.of


def test_a_kept_picture_without_its_secrets_still_tells_what_changed() -> None:
    kept = orders({**PAID, "status": Digest("paid")})
    assert differences(kept, orders(PAID)) == ()
    [change] = differences(kept, orders({**PAID, "status": "void"}))
    assert change.columns == ("status",)


def test_ten_changes_among_a_hundred_thousand_rows_are_found() -> None:
    rows: dict[Key, Row] = {(n,): (n, f"row {n}", "1.00", None) for n in range(100_000)}
    other: dict[Key, Row] = {key: (*row[:3], None) for key, row in rows.items()}
    for n in range(10):
        other[n * 1000,] = (n * 1000, "changed", "1.00", None)
    before = Picture("shop.big", ("id",), tuple(KINDS), KINDS, rows)
    found = differences(before, replace(before, rows=other))
    assert [(change.kind, change.key["id"], change.columns) for change in found] == [
        ("update", n * 1000, ("status",)) for n in range(10)
    ]


@pytest.mark.parametrize(
    ("before", "after", "found"),
    [
        ({"a": 1}, {"a": 1}, []),
        ({"a": 1, "b": 2}, {"a": 9}, [("/a", 1, 9), ("/b", 2, "missing")]),
        ({"a": 1}, {"a": 1, "b": None}, [("/b", "missing", None)]),
        ({"a": {"b/c": [1, {"d": 2}]}}, {"a": {"b/c": [1, {"d": 3}]}}, [("/a/b~1c/1/d", 2, 3)]),
        ([1, 2], [1, 2, 3], [("/2", "missing", 3)]),
        ([1, 2, 3], [1, 2], [("/2", 3, "missing")]),
        ([1, 2, 3], [2, 3], [("", [1, 2, 3], [2, 3])]),
        ({"a": [1]}, {"a": {"0": 1}}, [("/a", [1], {"0": 1})]),
        (None, {"a": 1}, [("", None, {"a": 1})]),
    ],
)
def test_documents_differ_at_pointers(before: object, after: object, found: list[tuple[str, object, object]]) -> None:
    differing = document_differences(before, after, lambda one, other: one == other)
    assert [
        (pointer, *("missing" if repr(v) == "missing" else v for v in pair)) for pointer, *pair in differing
    ] == found


@pytest.mark.parametrize(
    ("document", "pointer", "result"),
    [
        ({"a": 1}, "/a", {"a": 9}),
        ({"a": 1}, "/b", {"a": 1, "b": 9}),
        ({}, "/a/b", {"a": {"b": 9}}),
        ([1, 2, 3], "/1", [1, 9, 3]),
        ([1], "/1", [1, 9]),
        ({"a": [{"b": 1}]}, "/a/0/b", {"a": [{"b": 9}]}),
        ([1], "/x", [1]),
        (None, "/a", {"a": 9}),
    ],
)
def test_a_value_is_put_at_a_pointer_of_a_copy(document: Any, pointer: str, result: object) -> None:
    as_it_was = repr(document)
    assert put(document, pointer, 9) == result
    assert repr(document) == as_it_was


def test_nothing_put_at_a_pointer_takes_away_what_is_there() -> None:
    assert put({"a": 1, "b": 2}, "/b", MISSING) == {"a": 1}
    assert put([1, 2, 3], "/1", MISSING) == [1, 3]
    assert put({"a": 1}, "/b/c", MISSING) == {"a": 1}


def changed(kind: ColumnKind, one: object, other: object, **loosely: Any) -> bool:
    before, after = (picture("s.t", [{"id": 1, "v": value}], {"id": "integer", "v": kind}) for value in (one, other))
    return differences(before, after, compare={"v": Loosely(**loosely)}) != ()


@pytest.mark.parametrize(
    ("one", "other"),
    [(10_000_000_000.0, 10_000_000_000.01), (0.0, 1e-13), (0.3, 0.1 + 0.2), (float("inf"), 1e308), (1.0, float("nan"))],
)
@pytest.mark.parametrize("kind", ["float", "decimal", "unknown"])
def test_a_float_that_changed_by_its_noise_changed(kind: ColumnKind, one: float, other: float) -> None:
    assert changed(kind, one, other)
    assert changed("json", {"v": one}, {"v": other})


@pytest.mark.parametrize("kind", ["float", "decimal", "unknown"])
def test_a_float_that_is_the_same_did_not_change(kind: ColumnKind) -> None:
    assert not changed(kind, float("nan"), float("nan"))
    assert not changed(kind, 0.1 + 0.2, 0.30000000000000004)
    assert not changed(kind, 10_000_000_000.0, 10_000_000_000.01, tolerance="0.01")


@pytest.mark.parametrize("kind", ["instant", "date", "time"])
def test_a_time_as_text_that_became_a_number_changed(kind: ColumnKind) -> None:
    text = {"instant": "2026-01-01 10:00:00", "date": "2026-01-01", "time": "10:00:00"}[kind]
    assert changed(kind, text, 1767261600)
    assert changed(kind, 1767261600, text)


def test_pictures_of_hashes_of_other_columns_are_not_compared() -> None:
    before = picture("s.t", [{"id": 1, "v": 1}], {"id": "integer", "v": "integer"}, hashed=True)
    after = picture("s.t", [{"id": 1, "v": 1}], {"id": "integer", "v": "integer", "w": "text"}, hashed=True)
    with pytest.raises(Incomparable, match=r"the columns of s\.t changed during the run, and only hashes"):
        differences(before, after)
