"""What a reader of a trace sees: whole traces as snapshots."""

from __future__ import annotations

import json
from typing import Any

import pytest
from inline_snapshot import snapshot
from opentelemetry import trace
from opentelemetry.trace import StatusCode

from guardrail.calls import Action, Finding, Outcome, Stop, Verdict
from guardrail.telemetry.redaction import snapshot_text
from guardrail.telemetry.traces import RunTrace
from support.recorder import Recorder

VERIFIED = Verdict("verified")


def open_run(recorder: Recorder, **attributes: object) -> RunTrace:
    return recorder.telemetry.open_run("run-1", "refund_order", "balanced", "enforce", attributes)


def test_a_good_run_is_a_tree_of_its_calls_and_its_verification(recorder: Recorder) -> None:
    run = open_run(recorder, **{"gen_ai.conversation.id": "conversation-8"})
    lookup = run.open_call("lookup_order", "read", 1, "call_a", '{"order_id": 17}')
    lookup.close("ok", "allow", executed=True, seconds=0.02)
    refund = run.open_call("refund_order", "write", 2)
    refund.close("ok", "allow", executed=True, seconds=0.03)
    verify = run.open_verify()
    verify.check("shop.refunds", "sqlite", "SELECT refunds", "SELECT id FROM refunds", None, table="refunds", rows=1)
    verify.check("paid once", "postgres", "SELECT refunds", "SELECT 1 WHERE order_id = :order_id", "pass", store="shop")
    verify.close([], looks=2, seconds=0.1)
    run.close(VERIFIED, calls=2, writing=1)
    assert recorder.tree() == snapshot(
        [
            {
                "name": "invoke_agent refund_order",
                "kind": "INTERNAL",
                "attributes": {
                    "gen_ai.conversation.id": "conversation-8",
                    "gen_ai.operation.name": "invoke_agent",
                    "gen_ai.agent.name": "refund_order",
                    "guardrail.run.id": "run-1",
                    "guardrail.task.name": "refund_order",
                    "guardrail.policy.name": "balanced",
                    "guardrail.mode": "enforce",
                    "guardrail.calls.total": 2,
                    "guardrail.calls.writing": 1,
                    "guardrail.calls.refused": 0,
                    "guardrail.verdict": "verified",
                    "guardrail.findings.total": 0,
                    "guardrail.holds.open": 0,
                    "guardrail.flagged": False,
                },
                "children": [
                    {
                        "name": "execute_tool lookup_order",
                        "kind": "INTERNAL",
                        "attributes": {
                            "gen_ai.operation.name": "execute_tool",
                            "gen_ai.tool.name": "lookup_order",
                            "gen_ai.tool.type": "function",
                            "guardrail.run.id": "run-1",
                            "guardrail.call.number": 1,
                            "guardrail.call.effect": "read",
                            "gen_ai.tool.call.id": "call_a",
                            "guardrail.call.outcome": "ok",
                            "guardrail.decision": "allow",
                            "guardrail.call.executed": True,
                        },
                    },
                    {
                        "name": "execute_tool refund_order",
                        "kind": "INTERNAL",
                        "attributes": {
                            "gen_ai.operation.name": "execute_tool",
                            "gen_ai.tool.name": "refund_order",
                            "gen_ai.tool.type": "function",
                            "guardrail.run.id": "run-1",
                            "guardrail.call.number": 2,
                            "guardrail.call.effect": "write",
                            "guardrail.call.outcome": "ok",
                            "guardrail.decision": "allow",
                            "guardrail.call.executed": True,
                        },
                    },
                    {
                        "name": "guardrail.verify refund_order",
                        "kind": "INTERNAL",
                        "attributes": {
                            "gen_ai.evaluation.name": "guardrail.state",
                            "guardrail.run.id": "run-1",
                            "guardrail.task.name": "refund_order",
                            "guardrail.verification.outcome": "pass",
                            "guardrail.findings.total": 0,
                            "guardrail.looks": 2,
                        },
                        "children": [
                            {
                                "name": "SELECT refunds",
                                "kind": "CLIENT",
                                "attributes": {
                                    "gen_ai.evaluation.name": "shop.refunds",
                                    "guardrail.run.id": "run-1",
                                    "db.system.name": "sqlite",
                                    "db.operation.name": "SELECT",
                                    "db.query.summary": "SELECT refunds",
                                    "db.query.text": "SELECT id FROM refunds",
                                    "db.collection.name": "refunds",
                                    "db.response.returned_rows": 1,
                                },
                            },
                            {
                                "name": "SELECT refunds",
                                "kind": "CLIENT",
                                "attributes": {
                                    "gen_ai.evaluation.name": "paid once",
                                    "guardrail.run.id": "run-1",
                                    "guardrail.store": "shop",
                                    "db.system.name": "postgresql",
                                    "db.operation.name": "SELECT",
                                    "db.query.summary": "SELECT refunds",
                                    "db.query.text": "SELECT 1 WHERE order_id = :order_id",
                                    "guardrail.check.outcome": "pass",
                                },
                            },
                        ],
                    },
                ],
            }
        ]
    )
    assert recorder.events == snapshot(
        [
            {
                "event": "gen_ai.evaluation.result",
                "severity": "INFO",
                "gen_ai.evaluation.name": "paid once",
                "gen_ai.evaluation.score.label": "pass",
                "guardrail.run.id": "run-1",
                "gen_ai.evaluation.score.value": 1.0,
            },
            {
                "event": "gen_ai.evaluation.result",
                "severity": "INFO",
                "gen_ai.evaluation.name": "guardrail.run",
                "gen_ai.evaluation.score.label": "pass",
                "guardrail.run.id": "run-1",
                "guardrail.task.name": "refund_order",
                "guardrail.verdict": "verified",
                "guardrail.findings.total": 0,
                "guardrail.holds.open": 0,
                "guardrail.flagged": False,
                "gen_ai.evaluation.score.value": 1.0,
            },
        ]
    )


def test_a_run_that_ended_cleanly_and_wrong_is_an_error_from_the_verification_up(recorder: Recorder) -> None:
    run = open_run(recorder)
    findings = (
        Finding("wrong_value", "shop.refunds", "amount is 29.90, not 19.90", {"id": 4}, "amount", "19.90", "29.90"),
        Finding("unrequested_change", "shop.orders", "order 18 was deleted", {"id": 18}),
        Finding("unrequested_change", "shop.accounts", "balance is 3", {"id": 1}, "balance", warning=True),
        Finding("check_failed", "paid once", "paid twice"),
    )
    verify = run.open_verify()
    verify.check("paid once", "sqlite", "SELECT refunds", "SELECT count(*) = 1 FROM refunds", "fail")
    verify.close(findings, seconds=0.1)
    run.close(Verdict("silent_failure", findings, open_holds=1, alternative="settled"), calls=3, writing=1)
    assert recorder.tree() == snapshot(
        [
            {
                "name": "invoke_agent refund_order",
                "kind": "INTERNAL",
                "attributes": {
                    "gen_ai.operation.name": "invoke_agent",
                    "gen_ai.agent.name": "refund_order",
                    "guardrail.run.id": "run-1",
                    "guardrail.task.name": "refund_order",
                    "guardrail.policy.name": "balanced",
                    "guardrail.mode": "enforce",
                    "guardrail.calls.total": 3,
                    "guardrail.calls.writing": 1,
                    "guardrail.calls.refused": 0,
                    "guardrail.verdict": "silent_failure",
                    "guardrail.findings.total": 3,
                    "guardrail.holds.open": 1,
                    "guardrail.alternative": "settled",
                    "guardrail.flagged": True,
                    "error.type": "guardrail.silent_failure",
                },
                "status": "ERROR: the run ended cleanly and left the wrong state",
                "children": [
                    {
                        "name": "guardrail.verify refund_order",
                        "kind": "INTERNAL",
                        "attributes": {
                            "gen_ai.evaluation.name": "guardrail.state",
                            "guardrail.run.id": "run-1",
                            "guardrail.task.name": "refund_order",
                            "guardrail.verification.outcome": "fail",
                            "guardrail.findings.total": 3,
                            "guardrail.looks": 1,
                            "error.type": "guardrail.wrong_value",
                        },
                        "status": "ERROR: the state differs from the contract",
                        "children": [
                            {
                                "name": "SELECT refunds",
                                "kind": "CLIENT",
                                "attributes": {
                                    "gen_ai.evaluation.name": "paid once",
                                    "guardrail.run.id": "run-1",
                                    "db.system.name": "sqlite",
                                    "db.operation.name": "SELECT",
                                    "db.query.summary": "SELECT refunds",
                                    "db.query.text": "SELECT count(*) = 1 FROM refunds",
                                    "guardrail.check.outcome": "fail",
                                },
                            }
                        ],
                    }
                ],
            }
        ]
    )
    assert recorder.events == snapshot(
        [
            {
                "event": "gen_ai.evaluation.result",
                "severity": "ERROR",
                "gen_ai.evaluation.name": "paid once",
                "gen_ai.evaluation.score.label": "fail",
                "guardrail.run.id": "run-1",
                "gen_ai.evaluation.score.value": 0.0,
            },
            {
                "event": "gen_ai.evaluation.result",
                "severity": "ERROR",
                "gen_ai.evaluation.name": "guardrail.state",
                "gen_ai.evaluation.score.label": "fail",
                "guardrail.run.id": "run-1",
                "gen_ai.evaluation.explanation": "wrong value: shop.refunds.amount",
                "guardrail.finding.kind": "wrong_value",
                "guardrail.finding.place": "shop.refunds",
                "guardrail.finding.column": "amount",
                "gen_ai.evaluation.score.value": 0.0,
            },
            {
                "event": "gen_ai.evaluation.result",
                "severity": "ERROR",
                "gen_ai.evaluation.name": "guardrail.state",
                "gen_ai.evaluation.score.label": "fail",
                "guardrail.run.id": "run-1",
                "gen_ai.evaluation.explanation": "unrequested change: shop.orders",
                "guardrail.finding.kind": "unrequested_change",
                "guardrail.finding.place": "shop.orders",
                "gen_ai.evaluation.score.value": 0.0,
            },
            {
                "event": "gen_ai.evaluation.result",
                "severity": "WARN",
                "gen_ai.evaluation.name": "guardrail.state",
                "gen_ai.evaluation.score.label": "warning",
                "guardrail.run.id": "run-1",
                "gen_ai.evaluation.explanation": "unrequested change: shop.accounts.balance",
                "guardrail.finding.kind": "unrequested_change",
                "guardrail.finding.place": "shop.accounts",
                "guardrail.finding.column": "balance",
            },
            {
                "event": "gen_ai.evaluation.result",
                "severity": "ERROR",
                "gen_ai.evaluation.name": "guardrail.run",
                "gen_ai.evaluation.score.label": "fail",
                "guardrail.run.id": "run-1",
                "guardrail.task.name": "refund_order",
                "guardrail.verdict": "silent_failure",
                "guardrail.findings.total": 3,
                "guardrail.holds.open": 1,
                "guardrail.alternative": "settled",
                "guardrail.flagged": True,
                "gen_ai.evaluation.explanation": "the run ended cleanly and left the wrong state",
                "gen_ai.evaluation.score.value": 0.0,
            },
        ]
    )
    assert "19.90" not in recorder.everything()


def test_a_stopped_run_shows_the_call_that_ended_it_and_what_was_refused_afterwards(recorder: Recorder) -> None:
    run = open_run(recorder)
    run.open_call("lookup_order", "read", 1).close("empty", "hold", executed=True, sign="not_found")
    run.open_call("refund_order", "write", 2).close("refused", "stop", executed=False, sign="write_under_hold")
    run.open_call("lookup_order", "read", 3).close("refused", "stop", executed=False, sign="write_under_hold")
    run.close(Verdict("stopped", stop=Stop("write_under_hold", 2, "refund_order", "order 17")), calls=3, refused=2)
    assert recorder.tree() == snapshot(
        [
            {
                "name": "invoke_agent refund_order",
                "kind": "INTERNAL",
                "attributes": {
                    "gen_ai.operation.name": "invoke_agent",
                    "gen_ai.agent.name": "refund_order",
                    "guardrail.run.id": "run-1",
                    "guardrail.task.name": "refund_order",
                    "guardrail.policy.name": "balanced",
                    "guardrail.mode": "enforce",
                    "guardrail.calls.total": 3,
                    "guardrail.calls.writing": 0,
                    "guardrail.calls.refused": 2,
                    "guardrail.verdict": "stopped",
                    "guardrail.findings.total": 0,
                    "guardrail.holds.open": 0,
                    "guardrail.stop.reason": "write_under_hold",
                    "guardrail.stop.call": 2,
                    "guardrail.flagged": True,
                    "error.type": "guardrail.stopped",
                },
                "status": "ERROR: the guard stopped the run",
                "children": [
                    {
                        "name": "execute_tool lookup_order",
                        "kind": "INTERNAL",
                        "attributes": {
                            "gen_ai.operation.name": "execute_tool",
                            "gen_ai.tool.name": "lookup_order",
                            "gen_ai.tool.type": "function",
                            "guardrail.run.id": "run-1",
                            "guardrail.call.number": 1,
                            "guardrail.call.effect": "read",
                            "guardrail.call.outcome": "empty",
                            "guardrail.decision": "hold",
                            "guardrail.call.executed": True,
                            "guardrail.call.sign": "not_found",
                            "error.type": "guardrail.empty",
                        },
                        "status": "ERROR: nothing was found",
                        "events": {
                            "guardrail.decision": {
                                "guardrail.decision": "hold",
                                "guardrail.call.outcome": "empty",
                                "guardrail.call.sign": "not_found",
                                "guardrail.call.effect": "read",
                                "guardrail.call.number": 1,
                                "gen_ai.tool.name": "lookup_order",
                                "guardrail.run.id": "run-1",
                            }
                        },
                    },
                    {
                        "name": "execute_tool refund_order",
                        "kind": "INTERNAL",
                        "attributes": {
                            "gen_ai.operation.name": "execute_tool",
                            "gen_ai.tool.name": "refund_order",
                            "gen_ai.tool.type": "function",
                            "guardrail.run.id": "run-1",
                            "guardrail.call.number": 2,
                            "guardrail.call.effect": "write",
                            "guardrail.call.outcome": "refused",
                            "guardrail.decision": "stop",
                            "guardrail.call.executed": False,
                            "guardrail.call.sign": "write_under_hold",
                            "error.type": "guardrail.refused",
                        },
                        "status": "ERROR: the guard refused the call",
                        "events": {
                            "guardrail.decision": {
                                "guardrail.decision": "stop",
                                "guardrail.call.outcome": "refused",
                                "guardrail.call.sign": "write_under_hold",
                                "guardrail.call.effect": "write",
                                "guardrail.call.number": 2,
                                "gen_ai.tool.name": "refund_order",
                                "guardrail.run.id": "run-1",
                            }
                        },
                    },
                    {
                        "name": "execute_tool lookup_order",
                        "kind": "INTERNAL",
                        "attributes": {
                            "gen_ai.operation.name": "execute_tool",
                            "gen_ai.tool.name": "lookup_order",
                            "gen_ai.tool.type": "function",
                            "guardrail.run.id": "run-1",
                            "guardrail.call.number": 3,
                            "guardrail.call.effect": "read",
                            "guardrail.call.outcome": "refused",
                            "guardrail.decision": "refuse",
                            "guardrail.call.executed": False,
                            "guardrail.call.sign": "write_under_hold",
                            "error.type": "guardrail.refused",
                        },
                        "status": "ERROR: the guard refused the call",
                        "events": {
                            "guardrail.decision": {
                                "guardrail.decision": "refuse",
                                "guardrail.call.outcome": "refused",
                                "guardrail.call.sign": "write_under_hold",
                                "guardrail.call.effect": "read",
                                "guardrail.call.number": 3,
                                "gen_ai.tool.name": "lookup_order",
                                "guardrail.run.id": "run-1",
                            }
                        },
                    },
                ],
            }
        ]
    )
    assert recorder.events == snapshot(
        [
            {
                "event": "guardrail.decision",
                "severity": "WARN",
                "guardrail.decision": "hold",
                "guardrail.call.outcome": "empty",
                "guardrail.call.sign": "not_found",
                "guardrail.call.effect": "read",
                "guardrail.call.number": 1,
                "gen_ai.tool.name": "lookup_order",
                "guardrail.run.id": "run-1",
            },
            {
                "event": "guardrail.decision",
                "severity": "WARN",
                "guardrail.decision": "stop",
                "guardrail.call.outcome": "refused",
                "guardrail.call.sign": "write_under_hold",
                "guardrail.call.effect": "write",
                "guardrail.call.number": 2,
                "gen_ai.tool.name": "refund_order",
                "guardrail.run.id": "run-1",
            },
            {
                "event": "guardrail.decision",
                "severity": "WARN",
                "guardrail.decision": "refuse",
                "guardrail.call.outcome": "refused",
                "guardrail.call.sign": "write_under_hold",
                "guardrail.call.effect": "read",
                "guardrail.call.number": 3,
                "gen_ai.tool.name": "lookup_order",
                "guardrail.run.id": "run-1",
            },
            {
                "event": "gen_ai.evaluation.result",
                "severity": "ERROR",
                "gen_ai.evaluation.name": "guardrail.run",
                "gen_ai.evaluation.score.label": "fail",
                "guardrail.run.id": "run-1",
                "guardrail.task.name": "refund_order",
                "guardrail.verdict": "stopped",
                "guardrail.findings.total": 0,
                "guardrail.holds.open": 0,
                "guardrail.stop.reason": "write_under_hold",
                "guardrail.stop.call": 2,
                "guardrail.flagged": True,
                "gen_ai.evaluation.explanation": "the guard stopped the run",
                "gen_ai.evaluation.score.value": 0.0,
            },
        ]
    )
    assert "order 17" not in recorder.everything()


def test_an_agent_that_raises_ends_its_run_with_the_class_of_its_error(recorder: Recorder) -> None:
    run = open_run(recorder)
    run.close(Verdict("agent_error"), agent_error=ConnectionError("postgres://u:pw@db is away"))
    span = recorder.span("invoke_agent refund_order")
    assert span.attributes is not None
    assert span.attributes["error.type"] == "ConnectionError"
    assert span.status.description == "the agent raised an error"
    assert "postgres" not in recorder.everything()


@pytest.mark.parametrize(
    ("outcome", "action", "error", "expected"),
    [
        ("ok", "allow", None, None),
        ("ok", "stop", None, None),
        ("empty", "allow", None, None),
        ("empty", "hold", None, "guardrail.empty"),
        ("empty", "allow", LookupError(), None),
        ("incomplete", "allow", None, None),
        ("partial", "hold", None, "guardrail.partial"),
        ("rejected", "hold", None, "guardrail.rejected"),
        ("error", "hold", None, "tool_error"),
        ("error", "hold", json.JSONDecodeError("x", "y", 0), "json.decoder.JSONDecodeError"),
        ("error", "allow", ValueError("x"), "ValueError"),
        ("in_doubt", "hold", TimeoutError(), "TimeoutError"),
        ("in_doubt", "hold", None, "guardrail.in_doubt"),
        ("cancelled", "allow", KeyboardInterrupt(), "KeyboardInterrupt"),
        ("precondition_failed", "hold", None, "guardrail.precondition_failed"),
        ("refused", "hold", None, "guardrail.refused"),
    ],
)
def test_a_failure_sets_status_and_error_type_whether_raised_or_returned(
    recorder: Recorder, outcome: Outcome, action: Action, error: BaseException | None, expected: str | None
) -> None:
    run = open_run(recorder)
    run.open_call("lookup_order", "read", 1).close(outcome, action, executed=True, error=error)
    span = recorder.span("execute_tool lookup_order")
    assert (span.attributes or {}).get("error.type") == expected
    assert span.status.status_code is (StatusCode.UNSET if expected is None else StatusCode.ERROR)
    assert not span.status.is_ok or expected is None


@pytest.mark.parametrize(
    ("outcome", "action", "decision"),
    [
        ("ok", "allow", "allow"),
        ("error", "hold", "hold"),
        ("rejected", "stop", "stop"),
        ("precondition_failed", "hold", "hold"),
        ("refused", "hold", "refuse"),
        ("refused", "stop", "stop"),
    ],
)
def test_a_decision_is_told_in_one_word(recorder: Recorder, outcome: Outcome, action: Action, decision: str) -> None:
    run = open_run(recorder)
    run.open_call("lookup_order", "read", 1).close(outcome, action, executed=True)
    assert recorder.attributes("execute_tool lookup_order")["guardrail.decision"] == decision
    assert [event["guardrail.decision"] for event in recorder.events] == ([] if decision == "allow" else [decision])


def test_every_span_bears_an_attribute_of_the_conventions(recorder: Recorder) -> None:
    run = open_run(recorder)
    run.check("shop.orders", "sqlite", "SELECT orders", "", None)
    run.open_call("lookup_order", "read", 1).close("ok", "allow", executed=True)
    verify = run.open_verify()
    verify.check("balanced books", "", "", "", "error", error="ZeroDivisionError")
    verify.close([])
    run.close(VERIFIED)
    assert len(recorder.spans) == 5
    assert all(any(name.startswith("gen_ai.") for name in span.attributes or {}) for span in recorder.spans)


def test_a_check_that_could_not_be_made_is_an_error_and_a_failed_one_is_not(recorder: Recorder) -> None:
    run = open_run(recorder)
    verify = run.open_verify()
    verify.check("balanced books", "", "", "", "error", error="ZeroDivisionError")
    verify.check("paid once", "mysql", "SELECT refunds", "SELECT 1", "fail", started=1_000, ended=3_000)
    verify.close([Finding("check_error", "balanced books", "division by zero")])
    books, paid = recorder.span("guardrail.check balanced books"), recorder.span("SELECT refunds")
    assert books.status.status_code is StatusCode.ERROR
    assert paid.status.status_code is StatusCode.UNSET
    assert (paid.start_time, paid.end_time) == (1_000, 3_000)
    assert recorder.attributes("guardrail.verify refund_order")["guardrail.verification.outcome"] == "error"
    assert [event["gen_ai.evaluation.score.label"] for event in recorder.events] == ["error", "fail"]


def test_while_the_state_settles_only_the_last_look_is_told(recorder: Recorder) -> None:
    run = open_run(recorder)
    verify = run.open_verify()
    for outcome in ("fail", "fail", "pass"):
        verify.check("shop.refunds", "sqlite", "SELECT refunds", "", None, rows=1)
        verify.check("paid once", "sqlite", "SELECT refunds", "", outcome)
    verify.close([], looks=3)
    assert len(recorder.spans) == 3
    assert [event["gen_ai.evaluation.score.label"] for event in recorder.events] == ["pass"]
    assert recorder.attributes("guardrail.verify refund_order")["guardrail.looks"] == 3


def test_the_before_picture_lies_under_the_run(recorder: Recorder) -> None:
    run = open_run(recorder)
    run.check("shop.orders", "sqlite", "SELECT orders", "SELECT id FROM orders", None, store="shop", table="orders")
    run.close(VERIFIED)
    assert recorder.parent("SELECT orders") == "invoke_agent refund_order"
    assert recorder.attributes("SELECT orders")["db.collection.name"] == "orders"


def test_a_hold_that_is_resolved_is_an_event_of_the_run(recorder: Recorder) -> None:
    run = open_run(recorder)
    run.event("guardrail.hold.resolved", {"guardrail.call.number": 3, "note": "Bearer sk-test-000"})
    run.close(VERIFIED)
    [event] = recorder.span("invoke_agent refund_order").events
    assert (event.name, dict(event.attributes or {})) == snapshot(
        (
            "guardrail.hold.resolved",
            {"guardrail.call.number": 3, "note": "Bearer [redacted]", "guardrail.run.id": "run-1"},
        )
    )
    assert recorder.events[0]["event"] == "guardrail.hold.resolved"


class TestTheFrameworksOwnSpans:
    """Enriched instead of doubled."""

    def test_a_call_inside_the_frameworks_span_for_it_makes_no_second_one(self, recorder: Recorder) -> None:
        run = open_run(recorder)
        tracer = recorder.tracers.get_tracer("framework")
        token = run.attach()
        with tracer.start_as_current_span(
            "execute_tool lookup_order",
            attributes={"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "lookup_order"},
        ) as span:
            call = run.open_call("lookup_order", "read", 1, "call_a")
            entered = call.attach()
            assert trace.get_current_span() is span
            call.detach(entered)
            call.close("rejected", "hold", executed=True, sign="sentence", seconds=1.0)
            assert span.is_recording()
        run.detach(token)
        run.close(VERIFIED)
        assert recorder.tree() == snapshot(
            [
                {
                    "name": "invoke_agent refund_order",
                    "kind": "INTERNAL",
                    "attributes": {
                        "gen_ai.operation.name": "invoke_agent",
                        "gen_ai.agent.name": "refund_order",
                        "guardrail.run.id": "run-1",
                        "guardrail.task.name": "refund_order",
                        "guardrail.policy.name": "balanced",
                        "guardrail.mode": "enforce",
                        "guardrail.calls.total": 0,
                        "guardrail.calls.writing": 0,
                        "guardrail.calls.refused": 0,
                        "guardrail.verdict": "verified",
                        "guardrail.findings.total": 0,
                        "guardrail.holds.open": 0,
                        "guardrail.flagged": False,
                    },
                    "children": [
                        {
                            "name": "execute_tool lookup_order",
                            "kind": "INTERNAL",
                            "attributes": {
                                "gen_ai.operation.name": "execute_tool",
                                "gen_ai.tool.name": "lookup_order",
                                "gen_ai.tool.type": "function",
                                "guardrail.run.id": "run-1",
                                "guardrail.call.number": 1,
                                "guardrail.call.effect": "read",
                                "gen_ai.tool.call.id": "call_a",
                                "guardrail.call.outcome": "rejected",
                                "guardrail.decision": "hold",
                                "guardrail.call.executed": True,
                                "guardrail.call.sign": "sentence",
                                "error.type": "guardrail.rejected",
                            },
                            "status": "ERROR: the tool said no",
                            "events": {
                                "guardrail.decision": {
                                    "guardrail.decision": "hold",
                                    "guardrail.call.outcome": "rejected",
                                    "guardrail.call.sign": "sentence",
                                    "guardrail.call.effect": "read",
                                    "guardrail.call.number": 1,
                                    "gen_ai.tool.name": "lookup_order",
                                    "guardrail.run.id": "run-1",
                                }
                            },
                        }
                    ],
                }
            ]
        )
        assert recorder.points("gen_ai.execute_tool.duration") == []

    def test_a_second_call_under_the_same_span_gets_one_of_its_own(self, recorder: Recorder) -> None:
        run = open_run(recorder)
        token = run.attach()
        with recorder.tracers.get_tracer("framework").start_as_current_span(
            "tool", attributes={"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "lookup_order"}
        ):
            run.open_call("lookup_order", "read", 1).close("error", "hold", executed=True)
            run.open_call("lookup_order", "read", 2).close("ok", "allow", executed=True)
        run.detach(token)
        assert recorder.attributes("tool")["guardrail.call.number"] == 1
        assert recorder.attributes("execute_tool lookup_order")["guardrail.call.number"] == 2
        assert recorder.parent("execute_tool lookup_order") == "tool"

    def test_a_span_that_says_by_its_name_alone_that_it_is_the_call_is_that_call(self, recorder: Recorder) -> None:
        run = open_run(recorder)
        token = run.attach()
        with recorder.tracers.get_tracer("framework").start_as_current_span("execute_tool lookup_order"):
            run.open_call("lookup_order", "read", 1).close("ok", "allow", executed=True)
            run.open_call("note_order", "write", 2).close("ok", "allow", executed=True)
        run.detach(token)
        assert recorder.attributes("execute_tool lookup_order")["guardrail.call.number"] == 1
        assert recorder.parent("execute_tool note_order") == "execute_tool lookup_order"

    @pytest.mark.parametrize(
        "attributes",
        [
            {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "another"},
            {"gen_ai.operation.name": "chat"},
            {},
        ],
    )
    def test_any_other_span_of_the_framework_is_the_parent(
        self, recorder: Recorder, attributes: dict[str, str]
    ) -> None:
        run = open_run(recorder)
        token = run.attach()
        with recorder.tracers.get_tracer("framework").start_as_current_span("step", attributes=attributes):
            run.open_call("lookup_order", "read", 1).close("ok", "allow", executed=True)
        run.detach(token)
        run.close(VERIFIED)
        assert recorder.parent("execute_tool lookup_order") == "step"
        assert recorder.parent("step") == "invoke_agent refund_order"
        assert "guardrail.call.number" not in recorder.attributes("step")

    def test_a_run_inside_the_frameworks_agent_span_is_that_span(self, recorder: Recorder) -> None:
        tracer = recorder.tracers.get_tracer("framework")
        attributes = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "support"}
        with tracer.start_as_current_span("invoke_agent support", attributes=attributes) as span:
            run = open_run(recorder)
            run.open_call("lookup_order", "read", 1).close("ok", "allow", executed=True)
            run.close(Verdict("silent_failure"))
            assert span.is_recording()
        assert recorder.tree() == snapshot(
            [
                {
                    "name": "invoke_agent support",
                    "kind": "INTERNAL",
                    "attributes": {
                        "gen_ai.agent.name": "support",
                        "gen_ai.operation.name": "invoke_agent",
                        "guardrail.run.id": "run-1",
                        "guardrail.task.name": "refund_order",
                        "guardrail.policy.name": "balanced",
                        "guardrail.mode": "enforce",
                        "guardrail.calls.total": 0,
                        "guardrail.calls.writing": 0,
                        "guardrail.calls.refused": 0,
                        "guardrail.verdict": "silent_failure",
                        "guardrail.findings.total": 0,
                        "guardrail.holds.open": 0,
                        "guardrail.flagged": True,
                        "error.type": "guardrail.silent_failure",
                    },
                    "status": "ERROR: the run ended cleanly and left the wrong state",
                    "children": [
                        {
                            "name": "execute_tool lookup_order",
                            "kind": "INTERNAL",
                            "attributes": {
                                "gen_ai.operation.name": "execute_tool",
                                "gen_ai.tool.name": "lookup_order",
                                "gen_ai.tool.type": "function",
                                "guardrail.run.id": "run-1",
                                "guardrail.call.number": 1,
                                "guardrail.call.effect": "read",
                                "guardrail.call.outcome": "ok",
                                "guardrail.decision": "allow",
                                "guardrail.call.executed": True,
                            },
                        }
                    ],
                }
            ]
        )

    def test_a_second_run_in_the_same_agent_span_gets_one_of_its_own(self, recorder: Recorder) -> None:
        tracer = recorder.tracers.get_tracer("framework")
        with tracer.start_as_current_span("agent", attributes={"gen_ai.operation.name": "invoke_agent"}):
            for number in (1, 2):
                recorder.telemetry.open_run(f"run-{number}", "refund_order", "balanced", "enforce").close(VERIFIED)
        assert recorder.attributes("agent")["guardrail.run.id"] == "run-1"
        assert recorder.attributes("invoke_agent refund_order")["guardrail.run.id"] == "run-2"

    def test_a_span_that_ended_before_the_run_is_its_parent_only(
        self, recorder: Recorder, caplog: pytest.LogCaptureFixture
    ) -> None:
        tracer = recorder.tracers.get_tracer("framework")
        span = tracer.start_span("agent", attributes={"gen_ai.operation.name": "invoke_agent"})
        span.end()
        with trace.use_span(span):
            open_run(recorder).close(VERIFIED)
        assert recorder.parent("invoke_agent refund_order") == "agent"
        assert caplog.records == []

    def test_a_span_that_has_ended_is_not_enriched(self, recorder: Recorder, caplog: pytest.LogCaptureFixture) -> None:
        tracer = recorder.tracers.get_tracer("framework")
        span = tracer.start_span("agent", attributes={"gen_ai.operation.name": "invoke_agent"})
        with trace.use_span(span):
            run = open_run(recorder)
            span.end()
            run.close(VERIFIED)
        assert "guardrail.verdict" not in recorder.attributes("agent")
        assert caplog.records == []


class TestContent:
    """Arguments and results are in spans only where that was asked for."""

    ARGUMENTS = snapshot_text({"path": "/x", "api_key": "sk-test-000", "nested": [{"password": "p"}]})

    def call(self, recorder: Recorder, result: str = '{"token": "[redacted]"}') -> None:
        call = open_run(recorder).open_call("lookup_order", "read", 1, "call_a", self.ARGUMENTS)
        call.close("ok", "allow", executed=True, result=result)

    def test_by_default_there_is_no_content(self, recorder: Recorder) -> None:
        self.call(recorder)
        attributes = recorder.attributes("execute_tool lookup_order")
        assert not {"gen_ai.tool.call.arguments", "gen_ai.tool.call.result"} & attributes.keys()
        assert "/x" not in recorder.everything()

    @pytest.mark.parametrize(
        ("options", "expected"),
        [
            ({"content": True}, True),
            ({"environ": {"OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT": "SPAN_ONLY"}}, True),
            ({"environ": {"OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT": "span_and_event"}}, True),
            ({"environ": {"OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT": "EVENT_ONLY"}}, False),
            ({"environ": {"OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT": "NO_CONTENT"}}, False),
            ({"environ": {"OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT": "true"}}, False),
        ],
    )
    def test_it_is_let_in_by_the_argument_or_the_environment(self, options: dict[str, Any], expected: bool) -> None:
        recorder = Recorder(**options)
        self.call(recorder)
        attributes = recorder.attributes("execute_tool lookup_order")
        assert ("gen_ai.tool.call.arguments" in attributes) is expected
        assert "sk-test-000" not in recorder.everything()

    def test_content_is_json_with_an_object_at_its_root(self) -> None:
        recorder = Recorder(content=True)
        self.call(recorder, '["a", 1]')
        attributes = recorder.attributes("execute_tool lookup_order")
        assert json.loads(attributes["gen_ai.tool.call.result"]) == {"result": ["a", 1]}
        assert json.loads(attributes["gen_ai.tool.call.arguments"]) == {
            "path": "/x",
            "api_key": "[redacted]",
            "nested": [{"password": "[redacted]"}],
        }


def test_what_a_user_adds_to_a_run_is_redacted_and_cannot_replace_what_the_run_says(recorder: Recorder) -> None:
    run = open_run(
        recorder,
        **{
            "tenant": "acme",
            "session.id": "s-1",
            "api_key": "sk-test-000",
            "guardrail.run.id": "forged",
            "nothing": None,
            "tags": ["a", "b"],
            "huge": 2**70,
        },
    )
    run.close(VERIFIED)
    attributes = recorder.attributes("invoke_agent refund_order")
    assert attributes["guardrail.run.id"] == "run-1"
    assert attributes["session.id"] == "s-1"
    assert attributes["api_key"] == "[redacted]"
    assert attributes["tags"] == '["a", "b"]'
    assert attributes["huge"] == str(2**70)
    assert "nothing" not in attributes


def test_names_that_a_model_makes_up_do_not_become_names_of_spans_without_end(recorder: Recorder) -> None:
    run = open_run(recorder)
    for number in range(150):
        run.open_call(f"made_up_{number}", "unknown", number).close("ok", "allow", executed=True)
    run.open_call("refund_order", "write", 150).close("ok", "allow", executed=True)
    names = {span.name for span in recorder.spans}
    assert len(names) == 102
    assert {"execute_tool _OTHER", "execute_tool refund_order"} <= names
    assert {"made_up_0", "made_up_149"} <= {str((span.attributes or {})["gen_ai.tool.name"]) for span in recorder.spans}


def test_a_run_and_a_call_are_closed_once(recorder: Recorder, caplog: pytest.LogCaptureFixture) -> None:
    run = open_run(recorder)
    call = run.open_call("lookup_order", "read", 1)
    verify = run.open_verify()
    for _ in range(2):
        call.close("error", "hold", executed=True)
        verify.close([])
        run.close(Verdict("silent_failure"))
    assert len(recorder.spans) == 3
    assert len(recorder.events) == 2
    assert caplog.records == []


def test_a_run_knows_its_trace(recorder: Recorder) -> None:
    run = open_run(recorder)
    run.close(VERIFIED)
    context = recorder.span("invoke_agent refund_order").context
    assert context is not None
    assert run.trace_id == trace.format_trace_id(context.trace_id)


def test_a_run_without_a_task_has_a_plain_name(recorder: Recorder) -> None:
    recorder.telemetry.open_run("run-1", None, "balanced", "observe").close(
        Verdict("unverified", because="no contract")
    )
    assert recorder.attributes("invoke_agent")["guardrail.verdict"] == "unverified"
    assert [event["gen_ai.evaluation.score.label"] for event in recorder.events] == ["unverified"]
    assert "gen_ai.evaluation.score.value" not in recorder.events[0]
