"""B06: 200 OK around a failure, and a failure reported around a delivery.

What the reports call an error the library tells apart: `rejected` is the tool's own no, `empty` a "not found" of a
read. All of them stop a strict run.
"""

from __future__ import annotations

import pytest

from guardrail import CallRefused
from support.cases import history_of, outcome_of, told, variant
from support.shop import Guards

FAULT = (
    "<soap:Envelope xmlns:soap='http://schemas.xmlsoap.org/soap/envelope/'><soap:Body><soap:Fault>"
    "<faultcode>soap:Client</faultcode><faultstring>bad id</faultstring></soap:Fault></soap:Body></soap:Envelope>"
)


@pytest.mark.parametrize(
    ("result", "outcome", "words"),
    [
        variant("B06", "ok false", {"ok": False, "error": "channel_not_found"}, "rejected", "channel_not_found"),
        variant(
            "B06",
            "function error with outer 200",
            {
                "StatusCode": 200,
                "FunctionError": "Unhandled",
                "Payload": '{"errorMessage":"boom","errorType":"KeyError"}',
            },
            "error",
            "boom",
        ),
        variant(
            "B06",
            "JSON-RPC error",
            {"jsonrpc": "2.0", "id": 1, "error": {"code": -32602, "message": "bad params"}},
            "error",
            "bad params",
        ),
        variant(
            "B06",
            "problem document",
            {"type": "https://example.test/out-of-stock", "title": "Out of stock", "status": 409, "detail": "0 left"},
            "rejected",
            "0 left",
        ),
        variant(
            "B06",
            "provider error object",
            {"error": {"code": 404, "status": "NOT_FOUND", "message": "no such file"}},
            "rejected",
            "no such file",
        ),
        variant(
            "B06",
            "payment error object",
            {"error": {"type": "card_error", "code": "card_declined"}},
            "error",
            "card_declined",
        ),
        variant("B06", "SOAP fault text", FAULT, "error", "bad id"),
    ],
)
def test_a_failure_inside_a_200_stops_the_run(result: object, outcome: str, words: str) -> None:
    seen = told(result, effect="write")
    assert seen.stopped
    assert (seen.outcome.outcome, seen.outcome.message) == (outcome, words)


def test_of_a_read_not_found_is_an_empty_answer_and_stops_too() -> None:
    seen = told({"error": {"code": 404, "status": "NOT_FOUND", "message": "no such file"}})
    assert seen.stopped
    assert seen.outcome.outcome == "empty"


@pytest.mark.case("B06", "HTML where JSON was declared")
def test_what_is_no_json_is_an_error_where_json_is_declared() -> None:
    page = "<!doctype html><title>Sign in</title>"
    seen = told(page, returns="json")
    assert seen.stopped
    assert seen.outcome.outcome == "error"
    assert told(page, returns="text").went_on


@pytest.mark.case("B06", "ok true with a warning")
def test_a_warning_is_no_failure() -> None:
    assert told({"ok": True, "warning": "missing_charset", "ts": "1.2"}, effect="write").went_on


@pytest.mark.case("B06", "JSON-RPC result null")
def test_a_null_result_is_empty_and_no_error() -> None:
    seen = told({"jsonrpc": "2.0", "id": 1, "result": None})
    assert seen.outcome.outcome == "empty"
    assert told({"jsonrpc": "2.0", "id": 1, "result": None}, empty="allow").went_on


class ApiError(Exception):
    """The error of a client library that nobody has heard of."""


@pytest.mark.case("B06", "write delivered, then the tool's follow-up read failed")
def test_a_write_that_raised_after_sending_is_in_doubt_and_not_tried_again(guards: Guards) -> None:
    guard = guards(tools={"post_message": {"effect": "write"}})
    delivered: list[str] = []

    def post_message(channel: str, text: str) -> None:
        delivered.append(text)
        raise ApiError("channel_not_found")  # of the look at the channel after the message was sent

    with guard.run() as run:
        post = run.wrap(post_message)
        with pytest.raises(ApiError):
            post("C1", "hello")
        for _ in range(3):
            with pytest.raises(CallRefused) as refused:
                post("C1", "hello")
            assert refused.value.reason == "in_doubt"
    assert delivered == ["hello"]
    assert outcome_of(history_of(guard, run.id), 1).outcome == "in_doubt"


def test_under_strict_a_write_in_doubt_ends_the_run() -> None:
    seen = told(raises=ApiError("channel_not_found"), effect="write")
    assert seen.stopped
    assert seen.outcome.outcome == "in_doubt"
