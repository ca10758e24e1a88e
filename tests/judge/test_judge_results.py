"""Results of many services, as a table: what each comes to."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from guardrail.calls import Returned
from guardrail.declare import bundled
from guardrail.declare.tools import Tool
from guardrail.judge.result import ResultRules, judge

TABLE: list[dict[str, Any]] = json.loads(Path(__file__).with_name("results.json").read_text("utf-8"))


@pytest.mark.parametrize("row", TABLE, ids=[row["name"] for row in TABLE])
def test_a_result_comes_to_what_the_table_says(row: dict[str, Any]) -> None:
    rules = ResultRules.of(Tool.model_validate(row.get("tool", {})), bundled.sentences())
    judgement = judge(Returned(row["value"]), row["effect"], rules)
    assert judgement.outcome == row["outcome"], judgement
    told = {"listed", "sign", "message", "not_found"} & row.keys()
    assert {name: getattr(judgement, name) for name in told} == {name: row[name] for name in told}
    assert list(judgement.failed_items) == row.get("failed_items", list(judgement.failed_items))


@pytest.mark.parametrize("row", TABLE, ids=[row["name"] for row in TABLE])
def test_a_result_comes_to_the_same_as_a_text_and_inside_an_mcp_result(row: dict[str, Any]) -> None:
    rules = ResultRules.of(Tool.model_validate(row.get("tool", {})), bundled.sentences())
    value = row["value"]
    judgement = judge(Returned(value), row["effect"], rules)
    text = value if isinstance(value, str) else json.dumps(value)
    wrapped = {"content": [{"type": "text", "text": text}], "isError": False}
    assert judge(Returned(text), row["effect"], rules) == judgement
    assert judge(Returned(wrapped), row["effect"], rules) == judgement
