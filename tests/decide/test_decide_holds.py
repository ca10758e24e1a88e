"""What retries a failed call, and what resolves a hold."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from guardrail.calls import Effect, Outcome, ToolCall
from guardrail.decide.arguments import identifiers, is_identifier, is_slip
from guardrail.decide.holds import Hold, is_retry, resolves


def hold(
    tool: str = "update",
    args: dict[str, object] | None = None,
    *,
    outcome: Outcome = "error",
    effect: Effect = "write",
    looked_for: bool = False,
    series: dict[str, object] | None = None,
) -> Hold:
    return Hold(1, tool, effect, outcome, args or {}, looked_for=looked_for, series=series)


def call(tool: str, **args: object) -> ToolCall:
    return ToolCall(tool, args)


@pytest.mark.parametrize("name", ["id", "order_id", "orderId", "customerEmail", "sku", "reference", "user_name"])
def test_a_name_that_says_which_entity_is_an_identifier(name: str) -> None:
    assert is_identifier(name)


@pytest.mark.parametrize("name", ["amount", "width", "identity_check", "note", "valid", "key_figures"])
def test_any_other_name_is_no_identifier(name: str) -> None:
    assert not is_identifier(name)


def test_the_same_call_again_is_a_retry() -> None:
    assert is_retry(hold(args={"id": 1, "amount": 5}), call("update", id=1, amount=5))


def test_one_changed_argument_is_still_a_retry_and_two_are_not() -> None:
    failed = hold(args={"id": 1, "amount": 5})
    assert is_retry(failed, call("update", id=1, amount=6))
    assert not is_retry(failed, call("update", id=2, amount=6))


def test_another_tool_is_no_retry() -> None:
    assert not is_retry(hold(args={"id": 1}), call("replace", id=1))


def test_after_not_found_the_identifier_may_be_what_changes() -> None:
    assert is_retry(hold(args={"id": 12}, outcome="rejected", looked_for=True), call("update", id=21))


def test_after_a_rejection_it_must_be_the_same_entity() -> None:
    rejected = hold(args={"id": 12, "amount": 5}, outcome="rejected")
    assert not is_retry(rejected, call("update", id=13, amount=5))
    assert is_retry(rejected, call("update", id=12, amount=4))


def test_another_article_for_the_same_order_is_about_the_same_entity() -> None:
    rejected = hold("reorder", {"sku": "CAM-1", "order_id": 7}, outcome="rejected")
    assert is_retry(rejected, call("reorder", sku="CAM-2", order_id=7))


def test_the_next_item_of_a_series_is_no_retry_of_the_one_that_failed() -> None:
    failed = hold(args={"id": "B-31"}, outcome="rejected", looked_for=True, series={"id": "B-11"})
    assert not is_retry(failed, call("update", id="B-14"))


def test_in_a_series_the_mended_slip_is_a_retry() -> None:
    failed = hold(args={"id": "B-31"}, outcome="rejected", looked_for=True, series={"id": "B-11"})
    assert is_retry(failed, call("update", id="B-13"))


def test_a_read_that_finds_the_same_entity_resolves_a_hold() -> None:
    failed = hold("lookup", {"order_id": 17}, effect="read", outcome="empty", looked_for=True)
    assert resolves(failed, call("search_orders", order_id="17", page=1), "read")
    assert not resolves(failed, call("search_orders", order_id="18"), "read")


def test_a_write_on_the_same_entity_resolves_nothing() -> None:
    assert not resolves(hold("lookup", {"order_id": 17}, effect="read"), call("ship", order_id=17), "write")


def test_a_write_in_doubt_is_not_tried_again_with_another_argument() -> None:
    doubtful = hold("charge", {"order_id": 17, "amount": 40}, outcome="in_doubt")
    assert not is_retry(doubtful, call("charge", order_id=17, amount=41))
    assert not is_retry(doubtful, call("charge", order_id=17, amount=40))


def test_an_idempotent_tool_may_do_the_identical_write_again_and_its_success_resolves() -> None:
    doubtful = Hold(1, "charge", "write", "in_doubt", {"order_id": 17, "amount": 40}, idempotent=True)
    assert is_retry(doubtful, call("charge", order_id=17, amount=40))
    assert resolves(doubtful, call("charge", order_id=17, amount=40), "write")
    assert not is_retry(doubtful, call("charge", order_id=17, amount=41))


def test_after_a_failed_precondition_it_must_be_the_same_entity_too() -> None:
    failed = hold(args={"order_id": 17, "amount": 5}, outcome="precondition_failed")
    assert not is_retry(failed, call("update", order_id=18, amount=5))
    assert is_retry(failed, call("update", order_id=17, amount=4))


def test_a_page_of_a_listing_is_no_entity() -> None:
    failed = hold("lookup", {"order_id": 1}, effect="read", outcome="empty", looked_for=True)
    assert not resolves(failed, call("list_items", page_number=1), "read")


def test_no_later_success_resolves_a_write_in_doubt() -> None:
    doubtful = hold("charge", {"order_id": 17}, outcome="in_doubt")
    assert not resolves(doubtful, call("charge", order_id=17), "write")
    assert not resolves(doubtful, call("lookup", order_id=17), "read")


def test_truth_values_and_blanks_are_no_identifiers() -> None:
    assert identifiers({"id": True, "sku": "", "email": None, "order_id": 17}) == {"17"}


class Odd:
    """A value whose comparison fails, as arrays' do."""

    def __eq__(self, other: object) -> bool:
        raise TypeError("no truth value")

    __hash__ = object.__hash__


def test_arguments_that_cannot_be_compared_are_taken_as_different() -> None:
    assert is_retry(hold(args={"id": Odd(), "x": 1}), call("update", id=Odd(), x=1))
    assert not is_retry(hold(args={"id": Odd(), "x": 1}), call("update", id=Odd(), x=2))


@pytest.mark.parametrize(
    ("one", "other"), [("12", "21"), ("B-31", "B-13"), ("abc", "abd"), ("abc", "ab"), ("abc", "xabc"), (12, "12")]
)
def test_one_slip_apart(one: object, other: object) -> None:
    assert is_slip(one, other)
    assert is_slip(other, one)


@pytest.mark.parametrize(("one", "other"), [("abcd", "abdx"), ("abc", "abcde"), ("BKG-90010", "BKG-90002"), ("", "ab")])
def test_more_than_one_slip_apart(one: str, other: str) -> None:
    assert not is_slip(one, other)


@given(st.text(min_size=2), st.data())
def test_swapping_two_neighbours_is_one_slip(text: str, data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(text) - 2))
    swapped = text[:at] + text[at + 1] + text[at] + text[at + 2 :]
    assert is_slip(text, swapped)


@given(st.dictionaries(st.sampled_from(["id", "amount", "note"]), st.integers()), st.booleans())
def test_an_unchanged_call_is_always_the_retry_of_itself(args: dict[str, object], looked_for: bool) -> None:
    assert is_retry(hold(args=args, looked_for=looked_for), ToolCall("update", args))
