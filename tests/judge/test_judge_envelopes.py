"""Objects that tools return: opened by their fields, without any framework, and without side effects."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, ClassVar, NamedTuple, cast

import httpx
import pydantic
import pytest

from guardrail.calls import Effect, Judgement, Returned
from guardrail.declare import bundled
from guardrail.declare.tools import Tool
from guardrail.judge.result import ResultRules, judge, open_value

RULES = ResultRules.of(Tool(), bundled.sentences())


def judged(value: object, effect: Effect = "read") -> Judgement:
    return judge(Returned(value), effect, RULES)


def opened(value: object, **tool: Any) -> object:
    return open_value(Returned(value), ResultRules.of(Tool(**tool), ()))


class CallToolResult(pydantic.BaseModel):
    """As MCP 1.x gives it."""

    content: list[Any]
    structuredContent: dict[str, Any] | None = None
    isError: bool = False


class ToolMessage(pydantic.BaseModel):
    """As LangChain gives it."""

    content: Any
    type: str = "tool"
    tool_call_id: str = "c1"
    status: str = "success"
    artifact: Any = None


class Order(pydantic.BaseModel):
    id: int
    error: str | None = None
    customer: SimpleNamespace | None = None

    model_config = pydantic.ConfigDict(arbitrary_types_allowed=True, extra="allow")


class Numbers(pydantic.RootModel[list[int]]):
    """A model that is a list."""


@dataclass(frozen=True, slots=True)
class Refund:
    ok: bool
    error: str = ""
    lines: list[Any] = field(default_factory=lambda: [1])


@dataclass
class ToolReturn:
    """What a framework lets a tool return beside its answer; of all of its instances it has something, too."""

    return_value: object
    content: str | None = None
    kind: str = "tool-return"
    field_of_content: ClassVar[str] = "return_value"


class Answer(NamedTuple):
    ok: object
    error: object


class Slotted:
    """An object without a dict whose flag is a property, as an MCP 2.x client may wrap it."""

    __slots__ = ("_failed",)

    def __init__(self, failed: bool) -> None:
        self._failed = failed

    @property
    def is_error(self) -> bool:
        return self._failed

    @property
    def content(self) -> list[object]:
        return [SimpleNamespace(type="text", text="the disk is gone")]


def text(words: str) -> list[dict[str, str]]:
    return [{"type": "text", "text": words}]


OBJECTS: list[tuple[Any, str]] = [
    (CallToolResult(content=text('{"id": 1}')), "ok"),
    (CallToolResult(content=text("fine"), isError=True), "error"),
    (CallToolResult(content=[], structuredContent={"rows": []}), "empty"),
    (SimpleNamespace(content=[], structured_content={"rows": [1]}, is_error=False), "ok"),
    (SimpleNamespace(content=[SimpleNamespace(type="text", text="boom")], is_error=True), "error"),
    (Slotted(failed=True), "error"),
    (Slotted(failed=False), "ok"),
    (ToolMessage(content='{"error": "x"}'), "error"),
    (ToolMessage(content="boom", status="error"), "error"),
    (ToolMessage(content=text("Order not found")), "empty"),
    ([ToolMessage(content="Error: x")], "error"),
    ({"messages": [ToolMessage(content="Error: x")]}, "error"),
    (SimpleNamespace(update={"messages": [ToolMessage(content="Error: x")]}, goto=()), "error"),
    (SimpleNamespace(return_value={"error": "x"}, content=None, metadata=None, kind="tool-return"), "error"),
    (ToolReturn({"error": "x"}), "error"),
    (ToolReturn({"id": 1}), "ok"),
    ([SimpleNamespace(update={"messages": [ToolMessage(content="x", status="error")]}, goto=())] * 2, "error"),
    ([SimpleNamespace(update={"messages": [ToolMessage(content='{"error": "x"}')]}, goto=())] * 2, "error"),
    ([SimpleNamespace(update={"messages": [ToolMessage(content="done")]}, goto=())] * 2, "ok"),
    (Order(id=1), "ok"),
    (Order(id=1, error="wrong version"), "error"),
    (Order.model_validate({"id": 1, "success": False}), "error"),
    (Numbers([]), "empty"),
    (Numbers([0]), "ok"),
    (Refund(ok=True), "ok"),
    (Refund(ok=False, error="no"), "error"),
    (Answer(ok=False, error="no"), "error"),
    ([Refund(ok=True), Refund(ok=False, error="no")], "partial"),
    ((), "empty"),
    (set(), "empty"),
    (b"", "empty"),
    (b'{"error": "x"}', "error"),
    (b"\xff\xfe", "ok"),
    (httpx.Response(200, json={"id": 1}), "ok"),
    (httpx.Response(200, json={"error": "x"}), "error"),
    (httpx.Response(200, json=[]), "empty"),
    (httpx.Response(404, text="no such order"), "empty"),
    (httpx.Response(409, json={"detail": "paid already"}), "rejected"),
    (httpx.Response(503, text="down"), "error"),
    (SimpleNamespace(status_code=200, json=lambda: {"error": "x"}), "error"),
    (SimpleNamespace(status_code=422, json=lambda: 1 / 0, text="bad"), "rejected"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("value", "outcome"), OBJECTS, ids=[f"{place} {type(value).__name__}" for place, (value, _) in enumerate(OBJECTS)]
)
def test_an_object_is_judged_by_its_fields(value: object, outcome: str) -> None:
    assert judged(value).outcome == outcome


def test_a_server_error_of_a_write_is_in_doubt() -> None:
    assert judged(httpx.Response(503, text="down"), "write").outcome == "in_doubt"
    assert judged(httpx.Response(503, text="down"), "write").message == "down"


def test_a_body_that_was_not_read_stays_unread() -> None:
    def chunks() -> Iterator[bytes]:
        yield b'{"error": "x"}'

    response = httpx.Response(200, content=chunks())
    assert judged(response).outcome == "ok"
    assert not response.is_stream_consumed
    assert response.read() == b'{"error": "x"}'


def test_a_body_that_must_be_awaited_is_left_alone() -> None:
    class Response:
        status = 200

        async def json(self) -> dict[str, str]:
            return {"error": "x"}

    response = Response()
    response.status = 500
    assert judged(response).outcome == "error"
    response.status = 200
    assert judged(response).outcome == "ok"


def test_a_generator_is_not_consumed() -> None:
    def rows() -> Iterator[int]:
        yield 1

    generator = rows()
    assert judged(generator).outcome == "ok"
    assert opened(generator) is generator
    assert list(generator) == [1]


def test_a_table_without_rows_is_an_empty_list() -> None:
    class Table:
        empty = True

    assert judged(Table()) == Judgement("empty", "absence", listed=True)


@pytest.mark.parametrize("value", [print, dict, threading, threading.Lock(), object(), lambda: None, 3 + 4j])
def test_things_that_are_no_answers_are_no_failures(value: object) -> None:
    assert judged(value).outcome == "ok"


class TestOpenedValue:
    def test_it_is_what_the_tool_said(self) -> None:
        assert opened(CallToolResult(content=text('{"id": 1}'))) == {"id": 1}
        assert opened(ToolMessage(content='"[1]"')) == [1]
        assert opened(httpx.Response(200, json={"id": 1})) == {"id": 1}
        assert opened("null") is None

    def test_it_leaves_an_identifier_of_digits_a_text(self) -> None:
        assert opened("17") == "17"
        assert opened("00017") == "00017"
        assert opened(CallToolResult(content=text("17"))) == "17"

    def test_it_keeps_a_wrapper_that_is_the_tools_own(self) -> None:
        assert opened({"success": True, "result": {"id": 1}}) == {"success": True, "result": {"id": 1}}
        assert opened({"result": "ready"}) == {"result": "ready"}

    def test_it_looks_into_a_wrapper_around_a_text(self) -> None:
        assert opened({"success": True, "output": '{"id": 1}'}) == {"id": 1}

    def test_it_is_plain_all_the_way_down(self) -> None:
        value = [Order(id=1, customer=SimpleNamespace(name="Ada")), Refund(ok=True, lines=[Answer(1, 2)])]
        assert opened(value) == [
            {"id": 1, "error": None, "customer": {"name": "Ada"}},
            {"ok": True, "error": "", "lines": [{"ok": 1, "error": 2}]},
        ]

    def test_it_stands_at_the_declared_root(self) -> None:
        assert opened({"data": {"items": [{"id": 1}]}}, root="/data/items/0") == {"id": 1}
        assert opened({"success": True, "result": {"id": 1}}, root="/result/id") == 1
        assert opened({"success": True, "result": {"id": 1}}, root="/id") == 1
        assert opened(Order(id=1, customer=SimpleNamespace(name="Ada")), root="/customer/name") == "Ada"
        assert opened({"data": 1}, root="/items") is None

    def test_a_value_that_holds_itself_comes_back(self) -> None:
        ring: dict[str, object] = {}
        ring["self"] = ring
        value = opened(ring)
        assert isinstance(value, dict)
        assert list(cast("dict[str, object]", value)) == ["self"]
