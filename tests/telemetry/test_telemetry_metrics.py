"""Metrics: what is counted, and that no series grows without end."""

from __future__ import annotations

from guardrail.calls import Finding, Stop, Verdict
from guardrail.telemetry.metrics import Names
from guardrail.telemetry.traces import RunTrace
from support.recorder import Recorder


def open_run(recorder: Recorder, task: str = "refund_order") -> RunTrace:
    return recorder.telemetry.open_run("run-1", task, "balanced", "enforce")


def test_the_duration_of_a_tool_is_recorded_in_the_buckets_of_the_conventions(recorder: Recorder) -> None:
    run = open_run(recorder)
    run.open_call("lookup_order", "read", 1).close("ok", "allow", executed=True, seconds=0.03)
    run.open_call("lookup_order", "read", 2).close("error", "hold", executed=True, seconds=100, error=TimeoutError())
    good, bad = recorder.points("gen_ai.execute_tool.duration")
    assert (good.sum, bad.sum) == (0.03, 100)
    assert good.explicit_bounds == (
        0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92,
    )  # fmt: skip
    assert recorder.series("gen_ai.execute_tool.duration") == [
        {"gen_ai.tool.name": "lookup_order"},
        {"gen_ai.tool.name": "lookup_order", "error.type": "TimeoutError"},
    ]


def test_a_measured_duration_leads_to_its_trace(recorder: Recorder) -> None:
    call = open_run(recorder).open_call("lookup_order", "read", 1)
    token = call.attach()
    call.detach(token)
    call.close("ok", "allow", executed=True, seconds=0.03)
    [point] = recorder.points("gen_ai.execute_tool.duration")
    span = recorder.span("execute_tool lookup_order")
    assert span.context is not None
    assert [exemplar.span_id for exemplar in point.exemplars] == [span.context.span_id]


def test_a_call_that_was_not_executed_took_no_time(recorder: Recorder) -> None:
    open_run(recorder).open_call("refund_order", "write", 1).close("refused", "hold", executed=False)
    assert recorder.points("gen_ai.execute_tool.duration") == []


def test_decisions_are_counted_unless_they_allow(recorder: Recorder) -> None:
    run = open_run(recorder)
    run.open_call("lookup_order", "read", 1).close("ok", "allow", executed=True)
    run.open_call("lookup_order", "read", 2).close("empty", "hold", executed=True)
    run.open_call("refund_order", "write", 3).close("refused", "stop", executed=False)
    run.open_call("refund_order", "write", 4).close("refused", "stop", executed=False)
    assert recorder.series("guardrail.decisions") == [
        {
            "guardrail.decision": decision,
            "gen_ai.tool.name": tool,
            "guardrail.call.effect": effect,
            "guardrail.call.outcome": outcome,
        }
        for decision, tool, effect, outcome in (
            ("hold", "lookup_order", "read", "empty"),
            ("stop", "refund_order", "write", "refused"),
            ("refuse", "refund_order", "write", "refused"),
        )
    ]


def test_runs_are_counted_by_verdict_and_task(recorder: Recorder) -> None:
    for kind in ("verified", "silent_failure", "silent_failure", "unverified"):
        open_run(recorder).close(Verdict(kind))
    assert {point.attributes["guardrail.verdict"]: point.value for point in recorder.points("guardrail.runs")} == {
        "verified": 1,
        "silent_failure": 2,
        "unverified": 1,
    }


def test_stopped_runs_are_counted_by_reason(recorder: Recorder) -> None:
    open_run(recorder).close(Verdict("stopped", stop=Stop("write_under_hold", 2, "refund_order", "call 1 was empty")))
    assert recorder.series("guardrail.runs") == [
        {
            "guardrail.verdict": "stopped",
            "guardrail.task.name": "refund_order",
            "guardrail.stop.reason": "write_under_hold",
        }
    ]


def test_verification_is_timed_by_what_it_found(recorder: Recorder) -> None:
    run = open_run(recorder)
    run.open_verify().close([], seconds=0.5)
    run.open_verify().close([Finding("check_error", "shop", "away")], seconds=5)
    run.open_verify().close([Finding("check_error", "shop", ""), Finding("missing_change", "shop.orders", "")])
    run.open_verify().close([Finding("unrequested_change", "shop.orders", "", warning=True)])
    assert [
        (point.attributes["guardrail.verification.outcome"], point.count)
        for point in recorder.points("guardrail.verification.duration")
    ] == [("pass", 2), ("error", 1), ("fail", 1)]


def test_names_that_nobody_declared_are_bounded(recorder: Recorder) -> None:
    for number in range(300):
        run = open_run(recorder, f"task {number}")
        call = run.open_call(f"tool {number}", "read", 1)
        call.close("error", "hold", executed=True, error=type(f"Error{number}", (Exception,), {})())
        run.close(Verdict("verified"))
    durations = recorder.series("gen_ai.execute_tool.duration")
    assert len({series["gen_ai.tool.name"] for series in durations}) == 101
    assert len({series["error.type"] for series in durations}) == 101
    assert len({series["guardrail.task.name"] for series in recorder.series("guardrail.runs")}) == 101
    assert len({series["gen_ai.tool.name"] for series in recorder.series("guardrail.decisions")}) == 101


def test_declared_names_are_never_crowded_out() -> None:
    names = Names(["lookup_order"])
    for number in range(1000):
        names(f"made_up_{number}")
    assert names("lookup_order") == "lookup_order"
    assert names("made_up_99") == "made_up_99"
    assert names("made_up_100") == "_OTHER"


def test_a_name_that_is_no_name_takes_no_room() -> None:
    names = Names()
    for number in range(200):
        assert names("x" * 101 + str(number)) == "_OTHER"
        assert names(f"\x1b{number}") == "_OTHER"
    assert names("") == "_OTHER"
    assert names("lookup_order") == "lookup_order"


def test_no_series_bears_what_belongs_to_one_run(recorder: Recorder) -> None:
    run = open_run(recorder)
    run.open_call("lookup_order", "read", 1, "call_a", "{}").close("error", "hold", executed=True)
    run.open_verify().close([])
    run.close(Verdict("silent_failure"))
    for metric in (
        "gen_ai.execute_tool.duration",
        "guardrail.decisions",
        "guardrail.runs",
        "guardrail.verification.duration",
    ):
        [series] = recorder.series(metric)
        assert not {"guardrail.run.id", "guardrail.call.number", "gen_ai.tool.call.id"} & series.keys()
