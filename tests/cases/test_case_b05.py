"""B05: a batch call answers 200 although some items were not written."""

from __future__ import annotations

from typing import Any

import pytest

from support.cases import history_of, outcome_of, told, variant
from support.shop import Guards, Shop

BULK: dict[str, Any] = {
    "took": 4,
    "errors": True,
    "items": [
        {"index": {"_id": "a", "status": 201}},
        {"index": {"_id": "b", "status": 403, "error": {"type": "security_exception"}}},
    ],
}
LEFT: dict[str, Any] = {"UnprocessedItems": {"orders": [{"PutRequest": {"Item": {"id": {"S": "9"}}}}]}}
SHARDS: dict[str, Any] = {
    "timed_out": False,
    "_shards": {"total": 5, "successful": 4, "failed": 1},
    "hits": {"total": {"value": 0}, "hits": []},
}


@pytest.mark.parametrize(
    ("result", "words"),
    [
        variant("B05", "bulk errors true, one of two failed", BULK, "security_exception (not done: b)"),
        variant("B05", "left-over items", LEFT, "UnprocessedItems is not empty (not done: orders/0)"),
    ],
)
def test_a_batch_with_failed_items_is_partial_and_the_record_names_them(result: object, words: str) -> None:
    seen = told(result, effect="write")
    assert seen.stopped
    assert (seen.outcome.outcome, seen.outcome.message) == ("partial", words)
    assert seen.stop is not None
    assert seen.stop.detail == words


@pytest.mark.parametrize(
    "result",
    [
        variant(
            "B05",
            "bulk errors false",
            {"took": 4, "errors": False, "items": [{"index": {"_id": "a", "status": 201}}]},
        ),
        variant("B05", "left-over map present but empty", {"UnprocessedItems": {}}),
    ],
)
def test_a_batch_that_was_written_whole_is_ok(result: object) -> None:
    seen = told(result, effect="write")
    assert seen.went_on
    assert seen.outcome.outcome == "ok"


@pytest.mark.case("B05", "search with failed shards")
def test_an_empty_list_of_hits_is_no_answer_when_shards_failed() -> None:
    seen = told(SHARDS)
    assert seen.stopped
    assert seen.outcome.outcome == "partial"
    whole = {**SHARDS, "_shards": {"total": 5, "successful": 5, "failed": 0}}
    assert told(whole).outcome.outcome == "empty"


@pytest.mark.case("B05", "left-over items one level deeper")
def test_left_over_items_are_looked_for_at_the_declared_root() -> None:
    deeper = {"data": LEFT}
    seen = told(deeper, effect="write", root="/data")
    assert seen.stopped
    assert seen.outcome.outcome == "partial"
    assert told(deeper, effect="write").outcome.outcome == "ok"  # undeclared, what stands deeper is data


def test_what_was_written_of_a_batch_is_on_record_and_seen_in_the_state(guards: Guards, shop: Shop) -> None:
    task = {
        "watch": {"shop.audit": {"key": "id"}},
        "expect": [{"inserted": "shop.audit", "values": {"what": what}} for what in ("a", "b")],
    }
    guard = guards(tools={"bulk_index": {"effect": "write"}}, tasks={"index": task})

    def bulk_index() -> dict[str, Any]:
        shop.execute("insert into audit (what) values ('a')")
        return BULK

    with guard.run("index") as run:
        run.wrap(bulk_index)()
    outcome = outcome_of(history_of(guard, run.id), 1)
    assert (outcome.outcome, outcome.executed) == ("partial", True)
    assert run.verdict is not None
    assert run.verdict.kind == "silent_failure"
    assert [(f.kind, f.place, f.expected) for f in run.verdict.findings] == [
        ("missing_change", "shop.audit", {"what": "b"})
    ]
