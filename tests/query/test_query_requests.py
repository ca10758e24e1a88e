"""Inputs fill single path segments and query values of a request, and nothing else."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from enum import Enum
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from guardrail.errors import QueryRefused, StoreError
from guardrail.query.requests import prove_request


class Colour(Enum):
    RED = "red"


@pytest.mark.parametrize(
    ("path", "query", "values", "target"),
    [
        ("/tickets", {}, {}, "/tickets"),
        ("/", {}, {}, "/"),
        ("/tickets/:id", {}, {"id": 7}, "/tickets/7"),
        ("/tickets/:id/", {}, {"id": "a b/".strip("/")}, "/tickets/a%20b/"),
        ("/orders/:id.json", {}, {"id": 7}, "/orders/7.json"),
        ("/Orders(:id)", {}, {"id": 7}, "/Orders(7)"),
        ("/:a-:b", {}, {"a": 1, "b": 2}, "/1-2"),
        ("/items::batchGet", {}, {}, "/items:batchGet"),
        ("/group%2Fname/issues", {}, {}, "/group%2Fname/issues"),
        ("/t", {"state": "open", "since": ":since"}, {"since": "2026-01-01"}, "/t?state=open&since=2026-01-01"),
        ("/t", {"q": "type:ticket :since"}, {}, "/t?q=type%3Aticket%20%3Asince"),
        ("/t", {"q": "::since"}, {}, "/t?q=%3Asince"),
        ("/t", {"a[]": ["x", ":y", 2]}, {"y": "&z=1"}, "/t?a%5B%5D=x&a%5B%5D=%26z%3D1&a%5B%5D=2"),
        ("/t", {"n": 1, "d": Decimal("1.50"), "b": True}, {}, "/t?n=1&d=1.50&b=true"),
        ("/:x", {}, {"x": Decimal("1E+3")}, "/1000"),
        ("/:x", {}, {"x": 1.5}, "/1.5"),
        ("/:x", {}, {"x": False}, "/false"),
        ("/:x", {}, {"x": Colour.RED}, "/red"),
        ("/:x", {}, {"x": date(2026, 1, 2)}, "/2026-01-02"),
        ("/:x", {}, {"x": datetime(2026, 1, 2, tzinfo=UTC)}, "/2026-01-02T00%3A00%3A00%2B00%3A00"),
        ("/:x", {}, {"x": UUID(int=1)}, "/00000000-0000-0000-0000-000000000001"),
        ("/:x", {}, {"x": "ü"}, "/%C3%BC"),
        ("/:x", {}, {"x": "a.b"}, "/a.b"),
        ("/:x", {}, {"x": "17;admin=1?x#y"}, "/17%3Badmin%3D1%3Fx%23y"),
        ("/:x", {}, {"x": ":y"}, "/%3Ay"),
    ],
)
def test_inputs_are_filled_in_encoded(path: str, query: Any, values: dict[str, object], target: str) -> None:
    assert prove_request(path, query).target(values) == target


@pytest.mark.parametrize(
    "value",
    [
        *("", ".", "..", "../x", "..;x", "a/b", "/", "a\\b", "..\\x", "a\nb", "a\0b", "a\x7fb", "\u202e17"),
        *("%2e%2e", "%2E%2e%2fadmin", "a%2fb", "a%5Cb", "..%2f", "\ud800", "x" * 1001, "ü" * 400),
        *(None, [1], {"a": 1}, b"x", object(), float("nan"), float("inf"), Decimal("NaN")),
    ],
)
def test_a_value_that_could_lead_out_of_its_segment_is_refused_and_not_quoted(value: object) -> None:
    with pytest.raises(StoreError) as refusal:
        prove_request("/customers/:id/tickets").target({"id": value})
    assert "admin" not in str(refusal.value)


@pytest.mark.parametrize(("path", "values"), [("/:a:b/x", {"a": ".", "b": "."}), ("/.:a/x", {"a": "."})])
def test_a_segment_that_several_parts_make_lead_elsewhere_is_refused(path: str, values: dict[str, object]) -> None:
    with pytest.raises(StoreError):
        prove_request(path).target(values)


def test_a_value_of_a_query_may_hold_what_a_segment_may_not() -> None:
    request = prove_request("/t", {"q": ":q"})
    assert request.target({"q": "../a&b=c\n"}) == "/t?q=..%2Fa%26b%3Dc%0A"


def test_a_missing_value_and_a_request_that_is_too_long_are_refused() -> None:
    with pytest.raises(StoreError, match=":id has no value"):
        prove_request("/t/:id").target({})
    with pytest.raises(StoreError, match=r"longer than 8,000"):
        prove_request("/t", {f"q{n}": ":q" for n in range(9)}).target({"q": "x" * 1000})


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("tickets", "begin with /"),
        ("https://evil.example/", "begin with /"),
        ("/t?x=1", "under `query`"),
        ("/t#x", "under `query`"),
        ("/a b", "percent-encoded"),
        ("/ü", "percent-encoded"),
        ("/a\\b", "percent-encoded"),
        ("/a\nb", "percent-encoded"),
        ("/%zz", "percent-encoded"),
        ("/a/../b", "leads elsewhere"),
        ("/a/%2e%2E/b", "leads elsewhere"),
        ("/./b", "leads elsewhere"),
        ("//evil.example/x", "empty segment"),
        ("/a//b", "empty segment"),
    ],
)
def test_a_path_that_is_not_plainly_one_is_refused(path: str, why: str) -> None:
    with pytest.raises(QueryRefused, match=why):
        prove_request(path)


def test_a_request_knows_its_parameters_each_once_and_its_template() -> None:
    request = prove_request("/c/:id/t/:kind.json", {"since": ":since", "again": ":id", "x": "y"})
    assert request.parameters == ("id", "kind", "since")
    assert request.template == "/c/{id}/t/{kind}.json"


@given(st.text(), st.text())
@settings(deadline=None)
def test_whatever_the_values_are_a_server_finds_the_segments_and_the_query_that_were_written(
    one: str, two: str
) -> None:
    request = prove_request("/a/:one/b", {"x": ":two", "y": "z"})
    try:
        target = request.target({"one": one, "two": two})
    except StoreError:
        return
    parts = urlsplit(f"http://host{target}")
    assert unquote(parts.path).split("/") == ["", "a", one, "b"]
    assert parse_qsl(parts.query, keep_blank_values=True) == [("x", two), ("y", "z")]
