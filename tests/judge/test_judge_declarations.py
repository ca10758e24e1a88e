"""What is declared of a tool wins over everything generic."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest

from guardrail.calls import Effect, Judgement, Returned
from guardrail.declare import bundled
from guardrail.declare.tools import Tool
from guardrail.judge.result import ResultRules, judge


def judged(value: object, effect: Effect = "read", /, **tool: Any) -> Judgement:
    return judge(Returned(value), effect, ResultRules.of(Tool.model_validate(tool), bundled.sentences()))


class TestRoot:
    def test_only_the_declared_root_is_judged(self) -> None:
        value = {"error": "an old one", "data": {"id": 1}}
        assert judged(value, root="/data").outcome == "ok"
        assert judged(value).outcome == "error"

    def test_emptiness_is_that_of_the_root(self) -> None:
        assert judged({"data": {"rows": []}, "took": "5 ms"}, root="/data") == Judgement(
            "empty", "absence", listed=True
        )

    def test_a_text_at_the_root_is_read(self) -> None:
        assert judged({"reply": "Order not found"}, root="/reply").outcome == "empty"

    def test_a_missing_root_is_judged_by_what_there_is(self) -> None:
        assert judged({"error": "boom"}, root="/data").sign == "error_field"
        assert judged(None, root="/data").outcome == "empty"
        assert judged(None, "write", root="/data").outcome == "ok"

    def test_a_missing_root_of_an_answer_is_an_error(self) -> None:
        judgement = judged({"rows": [1]}, root="/data/items")
        assert (judgement.outcome, judgement.sign) == ("error", "root_missing")
        assert "/data/items" in judgement.message

    def test_a_root_may_be_named_from_outside_or_inside_a_wrapper(self) -> None:
        value = {"success": True, "result": {"order": {"error": "x"}}}
        assert judged(value, root="/result/order").outcome == "error"
        assert judged(value, root="/order").outcome == "error"

    def test_a_failed_envelope_is_final(self) -> None:
        value = {"isError": True, "content": [{"type": "text", "text": '{"data": {"id": 1}}'}]}
        assert judged(value, root="/data").outcome == "error"


class TestSignals:
    FAILED: ClassVar[Any] = {"at": "/state", "in": ["failed"], "means": "rejected"}

    def test_a_declared_field_tells_the_outcome(self) -> None:
        judgement = judged({"state": "failed", "message": "no stock"}, signals=[self.FAILED])
        assert judgement == Judgement("rejected", "declared", "no stock")
        assert judged({"state": "done"}, signals=[self.FAILED]).outcome == "ok"

    def test_a_declared_good_sign_wins_over_the_generic_ones(self) -> None:
        fine = {"at": "/error", "in": ["none left"], "means": "ok"}
        assert judged({"error": "none left"}, signals=[fine]) == Judgement("ok", "declared")

    def test_a_declared_good_sign_does_not_undo_a_failed_envelope(self) -> None:
        fine = {"at": "/state", "in": ["ok"], "means": "ok"}
        value = {"isError": True, "structuredContent": {"state": "ok"}}
        assert judged(value, signals=[fine]).outcome == "error"

    def test_the_first_signal_that_holds_counts(self) -> None:
        second = {"at": "/state", "in": ["failed"], "means": "error"}
        assert judged({"state": "failed"}, signals=[self.FAILED, second]).outcome == "rejected"

    def test_a_signal_starts_at_the_root(self) -> None:
        assert judged({"job": {"state": "failed"}}, root="/job", signals=[self.FAILED]).outcome == "rejected"

    def test_a_signal_reaches_into_a_wrapper_from_outside(self) -> None:
        value = {"success": True, "result": {"state": "failed"}}
        outside = {"at": "/result/state", "in": ["failed"], "means": "partial"}
        assert judged(value, signals=[outside]).outcome == "partial"
        assert judged(value, signals=[self.FAILED]).outcome == "rejected"

    @pytest.mark.parametrize(
        ("found", "listed", "holds"),
        [(True, 1, False), (1, True, False), (1, 1, True), (0, False, False), (None, None, True)],
    )
    def test_true_is_not_one(self, found: object, listed: object, holds: bool) -> None:
        signal = {"at": "/n", "in": [listed], "means": "error"}
        assert (judged({"n": found, "id": 1}, signals=[signal]).sign == "declared") is holds

    def test_a_missing_field_is_not_null(self) -> None:
        assert judged({"id": 1}, signals=[{"at": "/n", "in": [None], "means": "error"}]).outcome == "ok"


class TestBatch:
    BATCH: ClassVar[Any] = {"items": "/lines", "error": "/problem", "key": "sku"}

    def test_some_failed_items_are_partial(self) -> None:
        value = {"lines": [{"sku": "a", "problem": None}, {"sku": "b", "problem": {"message": "no stock"}}]}
        assert judged(value, "write", batch=self.BATCH) == Judgement(
            "partial", "batch", "no stock", failed_items=("b",)
        )

    def test_all_failed_items_are_an_error(self) -> None:
        judgement = judged({"lines": [{"sku": "a", "problem": "x"}]}, "write", batch=self.BATCH)
        assert (judgement.outcome, judgement.failed_items) == ("error", ("a",))

    def test_no_failed_item_is_fine(self) -> None:
        assert judged({"lines": [{"sku": "a", "problem": ""}]}, "write", batch=self.BATCH).outcome == "ok"
        assert judged({"lines": []}, "write", batch=self.BATCH).outcome == "ok"
        assert judged({}, "write", batch=self.BATCH).outcome == "ok"

    def test_items_without_a_key_are_named_by_their_place(self) -> None:
        batch = {"items": "", "error": "/problem"}
        assert judged([{"problem": 0}, {"problem": "x"}], batch=batch).failed_items == ("1",)

    def test_items_may_be_a_mapping_and_the_key_a_pointer(self) -> None:
        batch = {"items": "/by_sku", "error": "/problem"}
        assert judged({"by_sku": {"a": {}, "b": {"problem": "x"}}}, batch=batch).failed_items == ("b",)
        deep = {"items": "/lines", "error": "/problem", "key": "/product/sku"}
        assert judged({"lines": [{}, {"product": {"sku": "c"}, "problem": "x"}]}, batch=deep).failed_items == ("c",)

    def test_the_names_of_failed_items_are_bounded(self) -> None:
        lines = [{"sku": "x" * 1_000, "problem": "x"}] * 2_000
        judgement = judged({"lines": lines}, "write", batch=self.BATCH)
        assert len(judgement.failed_items) == 1_000
        assert max(map(len, judgement.failed_items)) == 200


def test_fields_that_are_data_are_no_signs() -> None:
    value = {"error": "E1", "success": False, "status": "error", "id": 7}
    assert judged(value, data=["error", "success", "status"]).outcome == "ok"
    assert judged(value, data=["error", "status"]).sign == "success_field"


def test_a_pointer_that_is_none_is_refused() -> None:
    with pytest.raises(ValueError, match="JSON pointer"):
        ResultRules.of(Tool.model_construct(root="data"), ())
