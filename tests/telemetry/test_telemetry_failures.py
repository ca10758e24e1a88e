"""Telemetry that is broken, slow, full or absent: the run goes on as if it were not there."""

from __future__ import annotations

import logging
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from opentelemetry.context import Context
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.trace import ReadableSpan, Span, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SimpleSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF, Decision, Sampler, SamplingResult
from opentelemetry.trace import INVALID_SPAN_CONTEXT, NonRecordingSpan, NoOpTracerProvider, Tracer

from guardrail.calls import Verdict
from guardrail.telemetry import events
from guardrail.telemetry.redaction import snapshot_text
from guardrail.telemetry.traces import Telemetry
from support.recorder import Recorder

CALL = "execute_tool lookup_order"


def whole_run(telemetry: Telemetry, arguments: object = None, *, calls: int = 1) -> None:
    """A run with everything in it, as the run's own code would tell it."""
    run = telemetry.open_run("run-1", "refund_order", "balanced", "enforce", {"tenant": "acme"})
    token = run.attach()
    assert isinstance(run.trace_id, str)
    run.check("shop.orders", "sqlite", "SELECT orders", "SELECT id FROM orders", None)
    for number in range(calls):
        call = run.open_call("lookup_order", "read", number, f"call_{number}", snapshot_text(arguments))
        entered = call.attach()
        call.detach(entered)
        call.close("error", "hold", executed=True, error=ValueError("x"), result=snapshot_text(arguments))
    run.event("guardrail.user_turn")
    verify = run.open_verify()
    verify.check("paid once", "sqlite", "SELECT refunds", "SELECT 1", "fail")
    verify.close([])
    run.close(Verdict("silent_failure"))
    run.detach(token)


class RaisingProcessor(SpanProcessor):
    def __init__(self, *methods: str) -> None:
        self._methods = methods

    def on_start(self, span: Span, parent_context: Context | None = None) -> None:
        if "on_start" in self._methods:
            raise RuntimeError("on_start")

    def on_end(self, span: ReadableSpan) -> None:
        if "on_end" in self._methods:
            raise RuntimeError("on_end")


class RaisingSampler(Sampler):
    def should_sample(self, *args: Any, **options: Any) -> SamplingResult:
        raise RuntimeError("should_sample")

    def get_description(self) -> str:
        return "raises"


class RaisingProvider(NoOpTracerProvider):
    def get_tracer(self, *args: Any, **options: Any) -> Tracer:
        raise RuntimeError("get_tracer")


class RaisingMeters(MeterProvider):
    def get_meter(self, *args: Any, **options: Any) -> Any:
        raise RuntimeError("get_meter")


class Garbage:
    """A provider, a tracer, a meter and an instrument that give what is none, and take everything."""

    def __init__(self, thing: object) -> None:
        self._thing = thing

    def __getattr__(self, name: str) -> Any:
        def give(*_: Any, **__: Any) -> object:
            return self._thing

        return give


class BrokenSpan(NonRecordingSpan):
    """A span that does not know what it is."""

    def __init__(self) -> None:
        super().__init__(INVALID_SPAN_CONTEXT)

    def get_span_context(self) -> Any:
        return None

    def is_recording(self) -> bool:
        return True


def processor(*methods: str) -> Callable[[], Recorder]:
    return lambda: Recorder(processor=RaisingProcessor(*methods))


@pytest.mark.parametrize(
    "broken",
    [
        pytest.param(processor("on_start"), id="processor-on-start"),
        pytest.param(processor("on_end"), id="processor-on-end"),
        pytest.param(processor("on_start", "on_end"), id="processor"),
        pytest.param(lambda: Recorder(sampler=RaisingSampler()), id="sampler"),
        pytest.param(lambda: Recorder(tracer_provider=RaisingProvider()), id="tracer-provider"),
        pytest.param(lambda: Recorder(meter_provider=RaisingMeters()), id="meter-provider"),
        pytest.param(lambda: Recorder(logger_provider=object()), id="logger-provider"),
        pytest.param(lambda: Recorder(tracer_provider=Garbage(None)), id="no-tracer"),
        pytest.param(lambda: Recorder(tracer_provider=Garbage(Garbage(None))), id="no-span"),
        pytest.param(lambda: Recorder(tracer_provider=Garbage(Garbage(7))), id="span-of-another-kind"),
        pytest.param(lambda: Recorder(tracer_provider=Garbage(Garbage(BrokenSpan()))), id="span-without-context"),
        pytest.param(lambda: Recorder(meter_provider=Garbage(None)), id="no-meter"),
        pytest.param(lambda: Recorder(meter_provider=Garbage(Garbage(None))), id="no-instrument"),
        pytest.param(lambda: Recorder(logger_provider=Garbage(None)), id="no-logger"),
    ],
)
def test_what_a_users_telemetry_raises_is_counted_and_reported_once(
    broken: Callable[[], Recorder], caplog: pytest.LogCaptureFixture
) -> None:
    recorder = broken()
    whole_run(recorder.telemetry, calls=3)
    assert recorder.telemetry.errors > 0
    warnings = [record for record in caplog.records if record.name == "guardrail"]
    assert len(warnings) == 1
    assert "guardrail.telemetry_failed" in warnings[0].getMessage()


def test_errors_of_the_telemetry_are_a_metric() -> None:
    recorder = Recorder(processor=RaisingProcessor("on_end"))
    whole_run(recorder.telemetry)
    assert recorder.series("guardrail.telemetry.errors") == [{"error.type": "RuntimeError"}]
    [point] = recorder.points("guardrail.telemetry.errors")
    assert point.value == recorder.telemetry.errors


def test_cancellation_and_exits_are_not_held_back() -> None:
    class Interrupting(SpanProcessor):
        def on_end(self, span: ReadableSpan) -> None:
            raise KeyboardInterrupt

    recorder = Recorder(processor=Interrupting())
    call = recorder.telemetry.open_run("run-1", "t", "balanced", "enforce").open_call("lookup_order", "read", 1)
    with pytest.raises(KeyboardInterrupt):
        call.close("ok", "allow", executed=True)


def test_an_exporter_that_raises_does_not_reach_the_run() -> None:
    class Raising(SpanExporter):
        def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
            raise RuntimeError("export")

    recorder = Recorder(processor=SimpleSpanProcessor(Raising()))
    whole_run(recorder.telemetry)
    assert recorder.span(CALL)
    assert recorder.telemetry.errors == 0


def test_a_collector_that_does_not_answer_does_not_delay_the_run() -> None:
    released, entered = threading.Event(), threading.Event()

    class Hanging(SpanExporter):
        def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
            entered.set()
            released.wait(30)
            return SpanExportResult.FAILURE

    batches = BatchSpanProcessor(Hanging(), max_queue_size=64, max_export_batch_size=8)
    recorder = Recorder(processor=batches)
    try:
        whole_run(recorder.telemetry, calls=20)
        assert entered.wait(30)
        whole_run(recorder.telemetry, calls=200)
        # Reached while the exporter still hangs: nothing waited for it, though its queue is full.
        assert not released.is_set()
    finally:
        released.set()
        recorder.tracers.shutdown()


def test_nothing_of_the_users_is_ever_flushed_or_shut_down() -> None:
    flushed: list[str] = []

    class Watching(SpanProcessor):
        def force_flush(self, timeout_millis: int = 30_000) -> bool:
            flushed.append("force_flush")
            return True

        def shutdown(self) -> None:
            flushed.append("shutdown")

    whole_run(Recorder(processor=Watching()).telemetry)
    assert flushed == []


def test_a_result_of_ten_megabytes_is_cut_and_marked() -> None:
    recorder = Recorder(content=True)
    whole_run(recorder.telemetry, {"rows": "x" * 10_000_000})
    result = recorder.attributes(CALL)["gen_ai.tool.call.result"]
    assert len(result) < 5_000
    assert "[truncated: " in result


def test_a_tool_that_fills_its_span_with_attributes_does_not_push_out_what_it_is(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.ERROR)
    recorder = Recorder(tools=("lookup_order",))
    run = recorder.telemetry.open_run("run-1", "t", "balanced", "enforce")
    call = run.open_call("lookup_order", "write", 7)
    token = call.attach()
    from opentelemetry import trace

    for number in range(140):
        trace.get_current_span().set_attribute(f"users.{number}", number)
    call.detach(token)
    call.close("rejected", "hold", executed=True)
    attributes = recorder.attributes(CALL)
    assert attributes["gen_ai.operation.name"] == "execute_tool"
    assert attributes["gen_ai.tool.name"] == "lookup_order"
    assert attributes["guardrail.call.number"] == 7
    assert attributes["guardrail.call.outcome"] == "rejected"
    assert attributes["error.type"] == "guardrail.rejected"


def test_a_user_who_adds_many_attributes_does_not_push_out_the_runs() -> None:
    recorder = Recorder()
    many = {f"users.{number}": number for number in range(140)}
    run = recorder.telemetry.open_run("run-1", "t", "balanced", "enforce", many)
    run.close(Verdict("verified"))
    attributes = recorder.attributes("invoke_agent t")
    assert attributes["gen_ai.operation.name"] == "invoke_agent"
    assert attributes["guardrail.verdict"] == "verified"
    assert sum(name.startswith("users.") for name in attributes) == 32


def cyclic() -> object:
    value: dict[str, object] = {}
    value["d"] = value
    return value


def deep() -> object:
    value: dict[str, object] = {}
    for _ in range(3000):
        value = {"d": value}
    return value


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param(cyclic, id="cyclic"),
        pytest.param(deep, id="deep"),
        pytest.param(lambda: ["a\ud800b", 2**70, float("nan"), Decimal("1.5"), datetime.now(UTC), {1}], id="odd"),
    ],
)
def test_any_argument_gives_an_attribute_and_no_error(
    arguments: Callable[[], object], caplog: pytest.LogCaptureFixture
) -> None:
    recorder = Recorder(content=True)
    whole_run(recorder.telemetry, arguments())
    recorder.attributes(CALL)["gen_ai.tool.call.arguments"].encode("utf-8")
    assert recorder.telemetry.errors == 0
    assert caplog.records == []


def test_names_and_ids_of_any_kind_can_be_encoded() -> None:
    recorder = Recorder()
    run = recorder.telemetry.open_run("run\ud800", "task\ud800", "p", "enforce", {"a\ud800": "b\ud800"})
    run.open_call("tool\ud800" * 1000, "read", 1, "id\ud800" * 1000).close("ok", "allow", executed=True)
    run.close(Verdict("verified"))
    for span in recorder.spans:
        span.name.encode("utf-8")
        for name, value in (span.attributes or {}).items():
            assert len(str(value).encode("utf-8")) < 1_000
            name.encode("utf-8")


def test_an_api_that_knows_no_events_by_name_gets_none_and_everything_else(monkeypatch: pytest.MonkeyPatch) -> None:
    assert events.KNOWN_TO_THE_API
    monkeypatch.setattr(events, "KNOWN_TO_THE_API", False)
    recorder = Recorder()
    whole_run(recorder.telemetry)
    assert recorder.events == []
    assert recorder.telemetry.errors == 0
    assert recorder.attributes("invoke_agent refund_order")["guardrail.verdict"] == "silent_failure"
    assert [event.name for event in recorder.span(CALL).events] == ["guardrail.decision"]


def test_without_an_sdk_a_run_has_no_trace_and_no_errors() -> None:
    telemetry = Telemetry(tracer_provider=NoOpTracerProvider())
    whole_run(telemetry)
    run = telemetry.open_run("run-1", "t", "balanced", "enforce")
    assert run.trace_id == ""
    assert run.attach() is None
    assert telemetry.errors == 0


def test_a_disabled_sdk_is_like_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_SDK_DISABLED", "true")
    recorder = Recorder()
    whole_run(recorder.telemetry)
    assert recorder.spans == []
    assert recorder.telemetry.errors == 0


@pytest.mark.parametrize("sampler", [ALWAYS_OFF, pytest.param(None, id="record-only")])
def test_a_flagged_run_is_told_although_its_trace_is_not_sampled(sampler: Sampler | None) -> None:
    recorder = Recorder(sampler=sampler or RecordOnly())
    whole_run(recorder.telemetry)
    assert recorder.spans == []
    verdicts = [event for event in recorder.events if event.get("gen_ai.evaluation.name") == "guardrail.run"]
    assert [event["guardrail.verdict"] for event in verdicts] == ["silent_failure"]
    assert recorder.series("guardrail.runs") == [
        {"guardrail.verdict": "silent_failure", "guardrail.task.name": "refund_order"}
    ]
    assert all(recorder.event_spans())


class RecordOnly(Sampler):
    def should_sample(self, *args: Any, **options: Any) -> SamplingResult:
        return SamplingResult(Decision.RECORD_ONLY)

    def get_description(self) -> str:
        return "records, exports nothing"


LATE = """
from opentelemetry import metrics, trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from guardrail.calls import Verdict
from guardrail.telemetry import events
from guardrail.telemetry.traces import Telemetry

telemetry = Telemetry()
def run(name):
    run = telemetry.open_run(name, "t", "balanced", "enforce")
    run.open_call("lookup_order", "read", 1).close("ok", "allow", executed=True)
    run.close(Verdict("verified"))
run("before")
spans, reader = InMemorySpanExporter(), InMemoryMetricReader()
provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(spans))
trace.set_tracer_provider(provider)
metrics.set_meter_provider(MeterProvider(metric_readers=[reader]))
run("after")
print([(span.name, span.attributes["guardrail.run.id"]) for span in spans.get_finished_spans()])
print(sorted({m.name for r in reader.get_metrics_data().resource_metrics for s in r.scope_metrics for m in s.metrics}))
print(telemetry.errors)
"""


def test_a_provider_that_is_set_after_the_guard_was_made_gets_its_spans_and_metrics() -> None:
    done = subprocess.run([sys.executable, "-c", LATE], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.splitlines() == [
        "[('execute_tool lookup_order', 'after'), ('invoke_agent t', 'after')]",
        "['gen_ai.execute_tool.duration', 'guardrail.runs']",
        "0",
    ]


def test_no_global_provider_is_set_and_the_sdk_is_not_imported() -> None:
    script = """
import sys
from opentelemetry import _logs, metrics, trace
from guardrail.calls import Verdict
from guardrail.telemetry import events
from guardrail.telemetry.traces import Telemetry
providers = trace.get_tracer_provider(), metrics.get_meter_provider(), _logs.get_logger_provider()
run = Telemetry().open_run("run-1", "t", "balanced", "enforce")
run.open_call("lookup_order", "read", 1).close("error", "hold", executed=True)
run.close(Verdict("verified"))
after = trace.get_tracer_provider(), metrics.get_meter_provider(), _logs.get_logger_provider()
assert all(a is b for a, b in zip(providers, after))
assert not {"opentelemetry.sdk", "structlog"} & sys.modules.keys()
"""
    subprocess.run([sys.executable, "-c", script], timeout=60, check=True)


def test_a_tracer_provider_can_be_given() -> None:
    other = TracerProvider(shutdown_on_exit=False)
    recorder = Recorder(tracer_provider=other)
    whole_run(recorder.telemetry)
    assert recorder.spans == []
