"""Results of every bad kind get a clear outcome: nothing is raised, nothing hangs."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from itertools import count
from typing import Any

import pytest

from guardrail.calls import Effect, Judgement, Returned
from guardrail.declare import bundled
from guardrail.declare.tools import Tool
from guardrail.judge.result import ResultRules, judge, open_value

RULES = ResultRules.of(Tool(), bundled.sentences())
JSON = ResultRules.of(Tool(returns="json"), bundled.sentences())
DEPTH = 3_000


def judged(value: object, effect: Effect = "read", rules: ResultRules = RULES) -> Judgement:
    open_value(Returned(value), rules)
    return judge(Returned(value), effect, rules)


def nested(name: str, depth: int = DEPTH) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for _ in range(depth):
        value = {name: value}
    return value


def ring(name: str, **more: object) -> dict[str, Any]:
    value: dict[str, Any] = dict(more)
    value[name] = value
    return value


class Raising:
    def __getattr__(self, name: str) -> object:
        raise RuntimeError(name)


class RaisingFlag:
    @property
    def is_error(self) -> bool:
        raise RuntimeError("no flag")

    @property
    def content(self) -> list[object]:
        raise ValueError("no content")


class Lazy(Mapping[str, object]):
    def __getitem__(self, name: str) -> object:
        raise RuntimeError("not loaded")

    def __iter__(self) -> Iterator[str]:
        raise RuntimeError("not loaded")

    def __len__(self) -> int:
        return 3


class Endless(Mapping[str, object]):
    """Pages of something far away, that are fetched as they are asked for."""

    def __getitem__(self, name: str) -> object:
        return {"id": name}

    def __iter__(self) -> Iterator[str]:
        return map(str, count())

    def __len__(self) -> int:
        return 10**9


class Tree(Mapping[str, object]):
    """What holds ever new things that hold ever new things."""

    def __getitem__(self, name: str) -> object:
        return Tree()

    def __iter__(self) -> Iterator[str]:
        return iter("abc")

    def __len__(self) -> int:
        return 3


class Torn(dict[str, object]):
    def get(self, *_: object) -> object:
        raise RuntimeError("torn")

    def keys(self) -> Any:
        raise RuntimeError("torn")

    def __iter__(self) -> Iterator[str]:
        raise RuntimeError("torn")


def _faceless(_: object) -> type:
    raise RuntimeError("no class")


Faceless = type("Faceless", (), {"__class__": property(_faceless)})


@pytest.mark.parametrize("name", ["result", "data", "output", "a", "error", "structuredContent", "body"])
def test_values_that_hold_themselves_are_judged(name: str) -> None:
    assert judged(ring(name, id=1)).outcome in ("ok", "error")
    assert judged(ring(name, error="boom")).outcome == "error"


def test_lists_that_hold_themselves_are_judged() -> None:
    value: list[object] = []
    value.append(value)
    assert judged(value).outcome == "ok"


@pytest.mark.parametrize("name", ["result", "data", "output", "a", "structuredContent"])
def test_values_of_great_depth_are_judged(name: str) -> None:
    assert judged(nested(name)).outcome == "ok"
    assert judged({"error": "boom", "deep": nested(name)}).outcome == "error"


def test_depth_decides_nothing_about_a_text() -> None:
    deep = '{"a":' * DEPTH + "1" + "}" * DEPTH
    assert judged(deep).outcome == "ok"
    assert judged('{"deep": ' + deep + ', "error": "boom"}') == judged('{"error": "boom"}')
    assert judged("[" * DEPTH + "]" * DEPTH).outcome == "ok"
    assert judged('{"a":' * DEPTH).outcome == "ok"
    assert judged('{"a":' * DEPTH, "write", JSON).sign == "not_json"


def test_brackets_inside_texts_do_not_count_as_depth() -> None:
    deep = "[" * DEPTH + r'"]]]\"]]"' + "]" * DEPTH
    assert judged('{"deep": ' + deep + ', "error": "boom"}').outcome == "error"


@pytest.mark.parametrize("rows", [1, 200_000])
def test_length_decides_nothing(rows: int) -> None:
    value: dict[str, Any] = {"rows": [{"id": i, "name": "n" * 20} for i in range(rows)], "error": None}
    assert judged(json.dumps(value)).outcome == "ok"
    assert judged(json.dumps({**value, "error": "boom"})) == Judgement("error", "error_field", "boom")
    assert judged(json.dumps({"results": [*value["rows"], {"id": "z", "error": "gone"}]})).failed_items == ("z",)


@pytest.mark.parametrize("value", ["x" * 10_000_000, "<html>" + "x" * 10_000_000, "x " * 5_000_000])
def test_a_long_document_is_no_failure(value: str) -> None:
    assert judged(value).outcome == "ok"


def test_a_long_text_of_blanks_is_empty() -> None:
    assert judged(" \n" * 1_000_000) == Judgement("empty", "absence", listed=True)


def test_a_fault_behind_a_long_header_is_a_fault() -> None:
    assert judged("<Envelope><Header>" + "<x/>" * 500_000 + "</Header><Body><Fault>").sign == "soap_fault"


def test_a_text_beyond_the_bound_is_not_parsed_and_says_so() -> None:
    text = '{"error": "' + "x" * (1 << 24) + '"}'
    assert judged(text) == Judgement("ok", "too_long")
    assert judged(text, rules=JSON) == Judgement("ok", "too_long")


def test_large_collections_are_judged() -> None:
    assert judged({str(i): i for i in range(200_000)}).outcome == "ok"
    assert judged({**{str(i): i for i in range(200_000)}, "error": "boom"}).outcome == "error"
    assert judged([{"id": i} for i in range(200_000)]).outcome == "ok"
    assert judged(list(range(200_000))).outcome == "ok"


def test_messages_and_items_are_bounded() -> None:
    judgement = judged({"results": [{"id": "i" * 1_000, "error": ["x" * 1_000] * 1_000}] * 5_000})
    assert len(judgement.message) == 500
    assert len(judgement.failed_items) == 1_000
    assert len(judged({"error": "word" * 1_000_000}).message) == 500
    assert len(judged({"error": {"a" * 5_000: {"b" * 5_000: "c" * 5_000}}}).message) <= 500


@pytest.mark.parametrize("kind", [Raising, RaisingFlag, Lazy])
def test_attributes_that_raise_are_taken_as_absent(kind: type) -> None:
    assert judged(kind()).outcome == "ok"
    assert judged({"result": kind()}).outcome == "ok"


@pytest.mark.parametrize("kind", [Torn, Faceless, Endless])
def test_a_value_that_cannot_be_read_at_all_is_no_success(kind: type) -> None:
    value = kind()
    assert (judged(value).outcome, judged(value).sign) == ("error", "unreadable")
    assert judged(value, "write").outcome == "in_doubt"
    assert open_value(Returned(value), RULES) is None


@pytest.mark.timeout(600)  # it is given up after a million values
def test_a_tree_that_grows_as_it_is_looked_at_is_judged() -> None:
    assert judged({"page": Tree()}).outcome == "ok"


def test_what_is_read_of_values_that_are_made_anew_each_time_is_not_mixed_up() -> None:
    class Fresh(Mapping[str, object]):
        def __getitem__(self, name: str) -> object:
            return {"name": name, "in": {"name": name}}

        def __iter__(self) -> Iterator[str]:
            return map(str, range(500))

        def __len__(self) -> int:
            return 500

    expected = {str(n): {"name": str(n), "in": {"name": str(n)}} for n in range(500)}
    assert open_value(Returned({"page": Fresh()}), RULES) == {"page": expected}


ODD: list[Any] = [
    {1: 2},
    {None: None},
    {("a", 1): []},
    {"error": object()},
    {"error": 10**5_000},
    {"status": 10**5_000},
    10**5_000,
    "1" * 6_000,
    '{"n": ' + "1" * 6_000 + "}",
    "\ud800",
    {"error": "\ud800"},
    float("nan"),
    {"items": [None, 1, object()]},
    {"data": [[]]},
    {"errors": [[[[[["x"]]]]]]},
    {"isError": "yes"},
    {"content": 5, "isError": False},
    {"jsonrpc": []},
    {"_shards": 5},
    {"_shards": {"failed": "x"}},
    {"items": 5, "errors": True},
    {"UnprocessedItems": 5},
    {"FailedEntryCount": 1, "Entries": 5},
    {"messages": [5]},
    {"status_code": 404, "body": object()},
    {"error": {"path": [{}], "message": {}}},
]


@pytest.mark.parametrize("value", ODD, ids=[type(value).__name__ for value in ODD])
def test_odd_values_are_judged(value: object) -> None:
    for effect in ("read", "write", "unknown"):
        assert judged(value, effect).outcome in ("ok", "empty", "error", "partial", "rejected")
