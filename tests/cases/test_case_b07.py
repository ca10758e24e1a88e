"""B07: failure heuristics flag good results."""

from __future__ import annotations

import json
from typing import Any

import pytest

from support.cases import told, variant

MONITOR = {"status": "failed", "run_id": 88}
STATUS_ONLY = {"status": "failed"}
DENIAL = {"success": False, "reason": "address not deliverable"}


def texts(result: object) -> list[Any]:
    """A result, and the texts in which it may come."""
    return [
        result,
        json.dumps(result),
        json.dumps(result, indent=4),
        {"content": [{"type": "text", "text": json.dumps(result)}], "isError": False},
    ]


@pytest.mark.parametrize(
    "result",
    [
        variant(
            "B07", "error null per row", {"results": [{"url": "https://site.test/a", "text": "hello", "error": None}]}
        ),
        variant("B07", "failed zero", {"succeeded": 3, "failed": 0}),
        variant("B07", "errors false", {"errors": False, "items": [1]}),
        variant("B07", "the queried thing failed", {"job": {"id": 5, "status": "failed", "error": "disk full"}}),
    ],
)
def test_the_value_counts_and_the_root_and_no_key_by_its_name(result: dict[str, object]) -> None:
    for form in texts(result):
        seen = told(form)
        assert seen.went_on
        assert seen.outcome.outcome == "ok"


@pytest.mark.case("B07", "top-level status failed in a monitor tool")
def test_a_status_is_data_where_it_is_declared_so_or_stands_among_data() -> None:
    assert told(STATUS_ONLY, data=["status"]).went_on
    assert told(MONITOR, data=["status"]).went_on
    assert told(STATUS_ONLY).stopped  # undeclared, an answer that is nothing but a status says how the call went
    assert told(MONITOR).went_on  # beside other data it is data


@pytest.mark.case("B07", "success false as the answer to a question")
def test_success_false_is_an_error_unless_it_is_declared_as_data() -> None:
    seen = told(DENIAL)
    assert seen.stopped
    assert seen.outcome.outcome == "error"
    assert told(DENIAL, data=["success"]).went_on


@pytest.mark.case("B07", "short and long version of one result agree")
@pytest.mark.parametrize("error", [None, "disk full"])
def test_the_outcome_does_not_hang_on_length_order_or_blanks(error: str | None) -> None:
    short = {"error": error}
    versions: list[object] = [short, {"pad": "x" * 400, **short}, {**short, "pad": "x" * 400}]
    forms = [form for version in versions for form in texts(version)]
    assert {told(form).outcome.outcome for form in forms} == {"ok" if error is None else "error"}


@pytest.mark.case("B07", "real error text")
def test_an_error_that_says_something_is_one_although_null_is_among_its_words() -> None:
    seen = told({"error": "null pointer in mapper"})
    assert seen.stopped
    assert seen.outcome.outcome == "error"


@pytest.mark.case("B07", "one of many rows failed")
def test_one_failed_row_of_many_is_partial_and_named() -> None:
    seen = told({"results": [{"id": 1, "error": None}, {"id": 2, "error": "gone"}]})
    assert seen.stopped
    assert (seen.outcome.outcome, seen.outcome.message) == ("partial", "gone (not done: 2)")
