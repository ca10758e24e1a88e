"""B08: an empty result is sometimes a stop, sometimes an answer."""

from __future__ import annotations

import pytest

from support.cases import told, variant


@pytest.mark.parametrize(
    "result",
    [
        variant("B08", "stop tool, list empty", []),
        variant("B08", "stop tool, null", None),
        variant("B08", "stop tool, text null", "null"),
        variant("B08", "stop tool, white space", "  \n"),
        variant("B08", "stop tool, wrapper with zero total", {"results": [], "total": 0, "page": 1}),
        variant("B08", "stop tool, JSON text in text", '"[]"'),
        variant("B08", "stop tool, prose", "No results found."),
    ],
)
@pytest.mark.parametrize("policy", ["strict", "balanced"])
def test_a_lookup_that_found_nothing_stops_where_that_is_declared(result: object, policy: str) -> None:
    seen = told(result, policy=policy, empty="stop")
    assert seen.stopped
    assert seen.outcome.outcome == "empty"


@pytest.mark.case("B08", "allow tool, list empty")
def test_no_match_is_an_answer_where_that_is_declared_and_it_is_recorded_as_empty() -> None:
    seen = told([], empty="allow")
    assert seen.went_on
    assert (seen.given, seen.outcome.outcome, seen.outcome.action) == ([], "empty", "allow")


def test_undeclared_the_shape_decides() -> None:
    assert told([]).went_on
    assert told(None).stopped
    assert told(None, policy="balanced").outcome.action == "hold"


@pytest.mark.parametrize(
    "result",
    [
        variant("B08", "zero is a value", 0),
        variant("B08", "false is a value", False),
        variant("B08", "balance zero", {"balance": 0}),
        variant("B08", "title contains the phrase", [{"title": "No results found: a study"}]),
    ],
)
def test_a_value_is_not_empty_because_it_is_falsy_or_speaks_of_nothing(result: object) -> None:
    seen = told(result, empty="stop")
    assert seen.went_on
    assert seen.outcome.outcome == "ok"


@pytest.mark.case("B08", "write tool that returns nothing")
def test_of_a_write_to_return_nothing_is_normal() -> None:
    seen = told(None, effect="write")
    assert seen.went_on
    assert seen.outcome.outcome == "ok"
