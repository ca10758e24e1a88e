"""What holds of changes and contracts whatever the tables hold."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from math import isclose
from typing import Any

from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st

from guardrail.declare.contracts import Deleted, Expectation, Inserted, Loosely, Task, Updated, Watch
from guardrail.pictures import ColumnKind, Key, Picture, Row
from guardrail.state import Change, Contract, Evidence, Verified, differences, verify

KINDS: dict[str, ColumnKind] = {
    "id": "integer",
    "name": "text",
    "amount": "decimal",
    "share": "float",
    "active": "boolean",
    "meta": "json",
    "note": "unknown",
}
TABLE = "s.t"

documents = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 2) | st.sampled_from(["", "a", "$a", "1"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["a", "any", "in"]), inner, max_size=2),
    max_leaves=4,
)
columns = {
    "name": st.none() | st.sampled_from(["", "a", "A", "$name", "1"]),
    "amount": st.none() | st.sampled_from([Decimal("1.0"), Decimal("1.00"), 1, 2.5, "2.5", Decimal("3.01")]),
    "share": st.none() | st.sampled_from([0.0, 0.3, 0.1 + 0.2, 2.5]),
    "active": st.sampled_from([None, 0, 1, True, False]),
    "meta": documents,
    "note": st.none() | st.sampled_from(["x", 1, True, 2.5]),
}
contents = st.tuples(*columns.values())
tables = st.dictionaries(st.integers(0, 6), contents, max_size=5)


def picture(table: Mapping[int, tuple[Any, ...]]) -> Picture:
    rows: dict[Key, Row] = {(key,): (key, *row) for key, row in table.items()}
    return Picture(TABLE, ("id",), tuple(KINDS), KINDS, rows)


def literally(values: Mapping[str, Any]) -> dict[str, Any]:
    return {column: {"equals": value} for column, value in values.items()}


def expectation_of(change: Change) -> Expectation:
    match change.kind:
        case "insert":
            return Inserted(inserted=change.table, values=literally(change.after or {}))
        case "delete":
            return Deleted(deleted=change.table, key=literally(change.key))
        case "update":
            new = {column: (change.after or {})[column] for column in change.columns or ()}
            return Updated(updated=change.table, key=literally(change.key), values=literally(new))


def check(expect: list[Expectation], before: Picture, after: Picture, **watch: Any) -> Verified:
    task = Task(watch={TABLE: Watch(key="id", **watch)}, expect=tuple(expect) or "nothing")
    return verify(Contract.of(task, "task"), Evidence(before={TABLE: before}, after={TABLE: after}))


@given(tables, tables)
def test_the_changes_applied_to_the_state_before_give_the_state_after(
    old: dict[int, tuple[Any, ...]], new: dict[int, tuple[Any, ...]]
) -> None:
    before, after = picture(old), picture(new)
    state = {key: dict(zip(before.columns, row, strict=True)) for key, row in before.rows.items()}
    for change in differences(before, after):
        key = tuple(change.key.values())
        if change.after is None:
            del state[key]
        else:
            state[key] = {**state.get(key, change.after), **{c: change.after[c] for c in change.columns or ()}}
    rebuilt = Picture(TABLE, ("id",), tuple(KINDS), KINDS, {key: tuple(row.values()) for key, row in state.items()})
    assert differences(rebuilt, after) == ()


@given(tables)
def test_a_state_that_did_not_change_meets_a_contract_of_nothing(table: dict[int, tuple[Any, ...]]) -> None:
    assert differences(picture(table), picture(table)) == ()
    assert check([], picture(table), picture(table)).findings == ()


@given(tables, tables)
def test_a_contract_made_of_the_changes_holds(old: dict[int, tuple[Any, ...]], new: dict[int, tuple[Any, ...]]) -> None:
    before, after = picture(old), picture(new)
    assert check([expectation_of(change) for change in differences(before, after)], before, after).findings == ()


@given(tables, tables, st.randoms(use_true_random=False))
def test_any_change_that_is_not_expected_is_found(
    old: dict[int, tuple[Any, ...]], new: dict[int, tuple[Any, ...]], random: Any
) -> None:
    before, after = picture(old), picture(new)
    changes = list(differences(before, after))
    assume(changes)
    left_out = changes.pop(random.randrange(len(changes)))
    found = check([expectation_of(change) for change in changes], before, after).findings
    assert left_out.key in [finding.key for finding in found]
    assert {finding.kind for finding in found} == {"unrequested_change"}
    assert all(finding.text.startswith(TABLE) for finding in found)


@given(tables, tables, st.integers(7, 9), contents)
def test_one_more_row_than_expected_is_found_by_its_key(
    old: dict[int, tuple[Any, ...]], new: dict[int, tuple[Any, ...]], key: int, row: tuple[Any, ...]
) -> None:
    before, after = picture(old), picture(new)
    expect = [expectation_of(change) for change in differences(before, after)]
    found = check(expect, before, picture({**new, key: row})).findings
    assert [finding.key for finding in found] == [{"id": key}]


@given(tables, tables, tables, st.randoms(use_true_random=False))
@settings(suppress_health_check=[HealthCheck.too_slow])
def test_the_order_in_which_changes_are_expected_does_not_matter(
    old: dict[int, tuple[Any, ...]], planned: dict[int, tuple[Any, ...]], new: dict[int, tuple[Any, ...]], random: Any
) -> None:
    before, after = picture(old), picture(new)
    expect = [expectation_of(change) for change in differences(before, picture(planned))]
    shuffled = list(expect)
    random.shuffle(shuffled)
    assert sorted(map(repr, check(expect, before, after).findings)) == sorted(
        map(repr, check(shuffled, before, after).findings)
    )


def is_as_planned(before: Picture, planned: Picture, after: Picture) -> bool:
    """Whether a state is the planned one.

    A float that was to become another may have become one that differs from that in its noise alone; one that was to
    stay must be the same to the last digit.
    """
    changes = {change.key["id"]: change for change in differences(before, planned)}
    for found in differences(planned, after):
        change = changes.get(found.key["id"])
        if found.kind != "update" or change is None:
            return False
        meant = KINDS if change.kind == "insert" else change.columns or ()
        old, new = found.before or {}, found.after or {}
        if not all(column in meant and is_noise(old[column], new[column]) for column in found.columns or ()):
            return False
    return True


def is_noise(one: object, other: object) -> bool:
    """Whether two values are floats that differ behind their twelfth digit."""
    return isinstance(one, float) and isinstance(other, float) and isclose(one, other, rel_tol=1e-12, abs_tol=1e-12)


def with_share(share: float, name: str = "") -> dict[int, tuple[Any, ...]]:
    return {0: (name, None, share, None, None, None)}


@given(tables, tables, tables)
@example({}, with_share(0.1 + 0.2), with_share(0.3))
@example(with_share(2.5), with_share(0.1 + 0.2), with_share(0.3))
@example(with_share(0.3), with_share(0.1 + 0.2), with_share(0.3))
@example(with_share(0.3), with_share(0.3, "a"), with_share(0.1 + 0.2, "a"))
@example(with_share(0.3), with_share(0.3), with_share(0.1 + 0.2))
@example({}, with_share(0.1 + 0.2), with_share(0.30001))
def test_a_state_holds_against_a_plan_just_when_it_does_not_differ_from_the_planned_one(
    old: dict[int, tuple[Any, ...]], planned: dict[int, tuple[Any, ...]], new: dict[int, tuple[Any, ...]]
) -> None:
    before, plan, after = picture(old), picture(planned), picture(new)
    expect = [expectation_of(change) for change in differences(before, plan)]
    assert (check(expect, before, after).findings == ()) == is_as_planned(before, plan, after)


@given(
    tables,
    tables,
    st.fixed_dictionaries({}, optional={"case": st.just("ignore"), "blanks": st.just("ignore")}),
    st.sampled_from([{}, {"tolerance": "0.5"}]),
)
def test_loosely_equal_states_are_equal_in_both_directions(
    old: dict[int, tuple[Any, ...]], new: dict[int, tuple[Any, ...]], text: dict[str, Any], number: dict[str, Any]
) -> None:
    compare = {"name": Loosely(**text), "amount": Loosely(**number), "meta": Loosely(unordered=True)}
    there = differences(picture(old), picture(new), compare=compare)
    back = differences(picture(new), picture(old), compare=compare)
    assert sorted((c.key["id"], c.columns) for c in there if c.kind == "update") == sorted(
        (c.key["id"], c.columns) for c in back if c.kind == "update"
    )
