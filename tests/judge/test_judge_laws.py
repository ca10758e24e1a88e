"""Laws of judging, for any JSON."""

from __future__ import annotations

import json
import re
from typing import Any, TypeAlias

from hypothesis import given, settings
from hypothesis import strategies as st

from guardrail.calls import Effect, Raised, Returned
from guardrail.declare import bundled
from guardrail.declare.tools import Tool
from guardrail.judge.result import ResultRules, judge, open_value

Json: TypeAlias = Any

RULES = ResultRules.of(Tool(), bundled.sentences())
# A signal that never holds sends every value the long way, through the envelope.
LONG_WAY = ResultRules.of(
    Tool.model_validate({"signals": [{"at": "/never/there", "in": ["x"], "means": "error"}]}), bundled.sentences()
)

NAMES = st.sampled_from(
    re.findall(r"\w+", "error errors success ok status code message data items results result output total next_cursor isError is_error content "
    "structuredContent text type id title detail statusCode body headers jsonrpc _shards UnprocessedItems found role "
    "tool_call_id messages errorMessage hits d value has_more name a b")
)  # fmt: skip
TEXTS = st.sampled_from(
    ["", " ", "error", "failed", "not found", "Order not found", "ok", "text", "null", "[]", '{"error": "x"}', "tool", "None"]
) | st.text(max_size=8)  # fmt: skip
SCALARS = st.none() | st.booleans() | st.integers(-1, 600) | st.floats(allow_nan=False, allow_infinity=False) | TEXTS
VALUES: st.SearchStrategy[Json] = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=4), max_leaves=10
)
OBJECTS = st.dictionaries(NAMES, VALUES, max_size=5)
EFFECTS: st.SearchStrategy[Effect] = st.sampled_from(("read", "write", "unknown"))


@settings(max_examples=400, deadline=None)
@given(VALUES, EFFECTS)
def test_any_json_is_judged_and_opened(value: Json, effect: Effect) -> None:
    judgement = judge(Returned(value), effect, RULES)
    assert judgement.outcome in ("ok", "empty", "incomplete", "partial", "rejected", "error", "in_doubt")
    assert len(judgement.message) <= 500
    open_value(Returned(value), RULES)


@settings(max_examples=400, deadline=None)
@given(VALUES, EFFECTS)
def test_the_short_way_and_the_long_way_lead_to_the_same(value: Json, effect: Effect) -> None:
    assert judge(Returned(value), effect, RULES) == judge(Returned(value), effect, LONG_WAY)


@settings(max_examples=400, deadline=None)
@given(VALUES, EFFECTS)
def test_a_value_and_its_json_text_are_judged_alike(value: Json, effect: Effect) -> None:
    text = json.dumps(value)
    assert judge(Returned(text), effect, RULES) == judge(Returned(value), effect, RULES)
    assert judge(Returned(f" {text}\n"), effect, RULES) == judge(Returned(value), effect, RULES)


@settings(max_examples=400, deadline=None)
@given(OBJECTS, st.sampled_from([None, "", False, 0, [], {}]), EFFECTS)
def test_an_error_field_that_holds_nothing_changes_nothing(
    value: dict[str, Json], nothing: Json, effect: Effect
) -> None:
    plain = {name: kept for name, kept in value.items() if name != "error"}
    if judge(Returned(plain), effect, RULES).outcome == "ok":
        assert judge(Returned({**plain, "error": nothing}), effect, RULES).outcome == "ok"


@settings(max_examples=400, deadline=None)
@given(OBJECTS, st.randoms(use_true_random=False), EFFECTS)
def test_the_order_of_fields_decides_nothing(value: dict[str, Json], random: Any, effect: Effect) -> None:
    names = list(value)
    random.shuffle(names)
    there, back = judge(Returned(value), effect, RULES), judge(Returned({n: value[n] for n in names}), effect, RULES)
    assert (there.outcome, there.sign, there.listed) == (back.outcome, back.sign, back.listed)


@settings(max_examples=200, deadline=None)
@given(st.dictionaries(NAMES, SCALARS, max_size=4), st.text("xyz ", min_size=1, max_size=500), EFFECTS)
def test_a_longer_result_is_judged_like_a_shorter_one(value: dict[str, Json], padding: str, effect: Effect) -> None:
    short = judge(Returned({**value, "pad": "x"}), effect, RULES)
    assert judge(Returned({**value, "pad": padding}), effect, RULES).outcome == short.outcome


@settings(max_examples=100, deadline=None)
@given(VALUES)
def test_only_a_write_is_ever_in_doubt_and_a_write_is_never_empty(value: Json) -> None:
    assert judge(Returned(value), "read", RULES).outcome != "in_doubt"
    assert judge(Returned(value), "write", RULES).outcome not in ("empty", "incomplete")


@settings(max_examples=100, deadline=None)
@given(st.text(max_size=40), st.sampled_from([ValueError, RuntimeError, OSError, KeyError, TimeoutError]), EFFECTS)
def test_whatever_is_raised_is_never_a_success(text: str, kind: type[Exception], effect: Effect) -> None:
    judgement = judge(Raised(kind(text)), effect, RULES)
    assert judgement.outcome in ("empty", "rejected", "error", "in_doubt")
    assert judgement.message
