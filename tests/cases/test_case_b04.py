"""B04: GraphQL answers HTTP 200 with an errors list."""

from __future__ import annotations

from typing import Any

import pytest

from support.cases import Seen, told, variant

HALF: dict[str, Any] = {"data": {"a": 1, "b": None}, "errors": [{"message": "b timed out", "path": ["b"]}]}


def answered(body: dict[str, object], **declared: Any) -> Seen:
    """The answer by itself and inside the response of a transport that says 200 come to the same."""
    bare, inside = told(body, **declared), told({"status": 200, "headers": {}, "body": body}, **declared)
    assert (bare.outcome[2:6], bare.stop) == (inside.outcome[2:6], inside.stop)
    return bare


@pytest.mark.parametrize(
    ("body", "outcome", "words"),
    [
        variant(
            "B04",
            "mutation field null with errors",
            {"data": {"updateDeal": None}, "errors": [{"message": "deal is locked", "path": ["updateDeal"]}]},
            "rejected",  # the tool's own no: a state forbids it
            "deal is locked (at updateDeal)",
        ),
        variant("B04", "errors only", {"errors": [{"message": "unknown field"}]}, "error", "unknown field"),
        variant("B04", "data null, no errors", {"data": None}, "error", "data is null"),
        variant(
            "B04",
            "errors is an object instead of a list",
            {"data": {"a": None}, "errors": {"message": "no"}},
            "error",
            "no",
        ),
    ],
)
def test_errors_stop_the_run_although_the_transport_was_well(body: dict[str, object], outcome: str, words: str) -> None:
    seen = answered(body, effect="write")
    assert seen.stopped
    assert (seen.outcome.outcome, seen.outcome.message) == (outcome, words)


@pytest.mark.case("B04", "query with one failed optional field")
def test_errors_beside_data_are_partial_and_stop_unless_a_tool_is_declared_to_allow_it() -> None:
    seen = answered(HALF)
    assert seen.stopped
    assert (seen.outcome.outcome, seen.outcome.message) == ("partial", "b timed out (at b) (not done: b)")
    allowed = answered(HALF, outcomes={"partial": "allow"})
    assert allowed.went_on
    assert allowed.outcome.outcome == "partial"


@pytest.mark.parametrize(
    "body",
    [
        variant("B04", "errors present but empty list", {"data": {"deal": {"id": 3}}, "errors": []}),
        variant("B04", "error present but empty text", {"data": {"deals": [{"id": 3}]}, "error": ""}),
    ],
)
def test_an_errors_field_without_an_error_is_no_failure(body: dict[str, object]) -> None:
    assert answered(body).went_on


def test_the_messages_and_paths_of_all_errors_are_in_the_record() -> None:
    errors = [{"message": f"{name} timed out", "path": ["deal", name]} for name in "abc"]
    seen = told({"data": {"deal": None}, "errors": errors})
    assert seen.outcome.message == ("a timed out (at deal.a); b timed out (at deal.b); c timed out (at deal.c)")
