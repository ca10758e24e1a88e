"""B03: the truth sits in another part of the MCP envelope than the one that is read."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from support.cases import told, variant

VAGUE = {
    "content": [{"type": "text", "text": "Still looking into it"}],
    "structuredContent": {"state": "failed", "code": "E42"},
    "isError": False,
}


@pytest.mark.parametrize(
    "result",
    [
        variant(
            "B03", "flag nested below success:true", {"success": True, "output": '{"is_error": true, "content": []}'}
        ),
        variant("B03", "error without content", {"content": [], "isError": True}),
    ],
)
def test_a_flag_that_is_raised_anywhere_in_the_envelope_stops_the_run(result: object) -> None:
    seen = told(result)
    assert seen.stopped
    assert seen.outcome.outcome == "error"


@pytest.mark.case("B03", "vague text, terminal failure in structured part")
def test_a_state_in_the_structured_part_tells_the_outcome_where_it_is_declared() -> None:
    seen = told(VAGUE, signals=[{"at": "/state", "in": ["failed", "aborted"], "means": "error"}])
    assert seen.stopped
    assert (seen.outcome.outcome, seen.outcome.sign) == ("error", "declared")
    assert told(VAGUE).went_on  # undeclared, the state of a job is data


@pytest.mark.parametrize(
    "result",
    [
        variant(
            "B03",
            "content [] and data in structured part",
            {"content": [], "structuredContent": {"rows": [{"id": 7}]}, "isError": False},
        ),
        variant(
            "B03",
            "attribute style object with snake_case names",
            SimpleNamespace(content=[], structured_content={"rows": [1]}, is_error=False),
        ),
    ],
)
def test_data_in_the_structured_part_is_an_answer_although_the_content_is_empty(result: object) -> None:
    seen = told(result, empty="stop")
    assert seen.went_on
    assert seen.outcome.outcome == "ok"


@pytest.mark.parametrize(
    "result",
    [
        variant("B03", "content [] and no structured part", {"content": [], "isError": False}),
        variant(
            "B03",
            "structured [] is a real empty list",
            {"content": [{"type": "text", "text": "0 rows"}], "structuredContent": [], "isError": False},
        ),
    ],
)
def test_emptiness_is_judged_over_the_whole_envelope(result: object) -> None:
    assert told(result).outcome.outcome == "empty"
    assert told(result, empty="stop").stopped


@pytest.mark.parametrize("name", ["is_error", "isError"])
def test_a_failed_result_with_attributes_is_one_in_both_spellings(name: str) -> None:
    assert told(SimpleNamespace(content=[], **{name: True})).stopped
