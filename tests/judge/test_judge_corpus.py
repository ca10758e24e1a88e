"""Results of real tools, judged with nothing declared but the effect."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from guardrail.calls import Effect, Judgement, Returned
from guardrail.declare import bundled
from guardrail.declare.tools import Tool
from guardrail.judge.result import ResultRules, judge

RULES = ResultRules.of(Tool(), bundled.sentences())
OUTCOMES = {"precondition_failed": "rejected"}


def lines(path: Path) -> Iterator[dict[str, Any]]:
    content = path.read_bytes()
    text = gzip.decompress(content) if path.suffix == ".gz" else content
    yield from map(json.loads, text.decode().splitlines())


def judged(result: object, effect: Effect) -> Judgement:
    return judge(Returned(result), effect, RULES)


def calls(folder: Path) -> Iterator[tuple[dict[str, Any], Effect]]:
    effects = {name: tool["effect"] for name, tool in json.loads((folder / "tools.json").read_text())["tools"].items()}
    for run in lines(folder / "runs.jsonl.gz"):
        yield from ((call, effects[call["tool"]]) for call in run["calls"])


def test_ok_and_not_ok_are_told_apart(corpus: Path) -> None:
    count: Counter[tuple[bool, bool]] = Counter()
    for row in lines(corpus / "tool_results.jsonl"):
        judgement = judged(row["result"], "write" if row["writes"] else "read")
        count[row["label"] != "ok", judgement.outcome != "ok"] += 1
    precision = count[True, True] / (count[True, True] + count[False, True])
    recall = count[True, True] / (count[True, True] + count[True, False])
    assert (precision >= 0.98, recall >= 0.95) == (True, True), count


def test_the_kinds_of_not_ok_are_told_apart(corpus: Path) -> None:
    rows = [row for row in lines(corpus / "tool_results.jsonl") if row["label"] != "ok"]
    right = [
        judged(row["result"], "write" if row["writes"] else "read").outcome == OUTCOMES.get(row["label"], row["label"])
        for row in rows
    ]
    assert sum(right) >= 0.9 * len(right)


@pytest.mark.parametrize("folder", ["thinkingbox_retail", "thinkingbox_booking"])
def test_every_recorded_error_is_a_failure_and_nothing_else_is(corpus: Path, folder: str) -> None:
    def failed(judgement: Judgement) -> bool:
        return judgement.outcome not in ("ok", "empty") or (judgement.outcome == "empty" and not judgement.listed)

    wrong = [
        (call["tool"], call["result"])
        for call, effect in calls(corpus / folder)
        if failed(judged(call["result"], effect)) is not ("error" in call["result"])
    ]
    assert wrong == []


def test_a_python_result_that_holds_data_is_never_a_failure(corpus: Path) -> None:
    wrong = [
        call["result"]
        for run in lines(corpus / "workbench" / "runs.jsonl")
        for call in run["calls"]
        if str(call["result"]).startswith(("{'", "[{", "['")) and judged(call["result"], "read").outcome != "ok"
    ]
    assert wrong == []
