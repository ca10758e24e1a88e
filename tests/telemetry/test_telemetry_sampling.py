"""Flagged runs survive head sampling: as events and metrics, as a summary, as a whole; and what that may cost nobody."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from opentelemetry import context as contexts
from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.sdk.trace import ReadableSpan, Span, SpanProcessor
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import (
    ALWAYS_OFF,
    ALWAYS_ON,
    Decision,
    ParentBased,
    Sampler,
    SamplingResult,
    TraceIdRatioBased,
)
from opentelemetry.trace import NonRecordingSpan, NoOpTracerProvider, SpanContext, TraceFlags

from guardrail import Guard, RunStopped
from guardrail.calls import Verdict
from guardrail.telemetry.sampling import KeepFlagged, KeepSummary, TailKeeper
from guardrail.telemetry.traces import RunTrace
from support.receiver import Receiver, Sender
from support.recorder import Recorder
from support.shop import Guards, Shop

SUMMARY = "guardrail.silent_failure refund_order"
RUN = "invoke_agent refund_order"
CALL = "execute_tool lookup_order"
NEVER = ParentBased(ALWAYS_OFF)
FLAGGED, FINE = Verdict("silent_failure"), Verdict("verified")


@pytest.fixture
def guards(tmp_path: Path) -> Iterator[Guards]:
    made = Guards(Shop(tmp_path / "shop.db"), tmp_path)
    yield made
    made.close()


def play(guard: Guard, shop: Shop, amount: str) -> None:
    """A run that refunds this amount, where 19.90 is right."""
    with guard.run("refund_order", inputs={"order_id": 17, "amount": "19.90"}) as run:
        run.wrap(shop.lookup_order)(17)
        run.wrap(shop.refund_order)(17, amount)


def open_run(recorder: Recorder) -> RunTrace:
    return recorder.telemetry.open_run("run-1", "refund_order", "balanced", "enforce", {"tenant": "acme"})


def whole_run(recorder: Recorder, verdict: Verdict) -> None:
    """A run with one call."""
    run = open_run(recorder)
    run.open_call("lookup_order", "read", 1).close("ok", "allow", executed=True)
    run.close(verdict, calls=1)


class TestOverTheWire:
    """The ways side by side, for one flagged run and one that is fine, none of them sampled."""

    def sent(
        self,
        guards: Guards,
        sampler: Sampler,
        around: Callable[[SpanProcessor], SpanProcessor] = lambda processor: processor,
    ) -> Receiver:
        with closing(Receiver()) as receiver:
            with closing(Sender(receiver.url, sampler=sampler, around=around)) as sender:
                guard = guards(**sender.providers)
                play(guard, guards.shop, "91.90")
                guards.shop.execute("update orders set status = 'paid'")
                play(guard, guards.shop, "19.90")
                sender.flush()
            return receiver

    def test_events_and_metrics_are_not_sampled(self, guards: Guards) -> None:
        got = self.sent(guards, NEVER)
        assert got.spans == []
        verdicts = [one.attributes for one in got.records if "guardrail.verdict" in one.attributes]
        assert [told["guardrail.verdict"] for told in verdicts] == ["silent_failure", "verified"]
        assert all(len(record.item.trace_id) == 16 for record in got.records)
        assert len(got.metrics["guardrail.runs"].item.sum.data_points) == 2

    def test_a_summary_is_a_trace_of_its_own_that_leads_to_the_run(self, guards: Guards) -> None:
        got = self.sent(guards, KeepSummary(NEVER))
        [summary] = got.spans
        [finding] = [one for one in got.records if one.attributes["gen_ai.evaluation.name"] == "guardrail.state"]
        [link] = summary.item.links
        assert (summary.item.name, summary.item.parent_span_id) == (SUMMARY, b"")
        assert link.trace_id == finding.item.trace_id != summary.item.trace_id
        assert summary.item.status.code == 2

    def test_the_verdict_is_told_of_the_summary_for_nobody_has_the_run(self, guards: Guards) -> None:
        got = self.sent(guards, KeepSummary(NEVER))
        [summary] = got.spans
        flagged, fine = [one.item for one in got.records if "guardrail.verdict" in one.attributes]
        assert (flagged.trace_id, flagged.span_id) == (summary.item.trace_id, summary.item.span_id)
        assert (flagged.flags & 1, fine.flags & 1) == (1, 0)

    def test_a_kept_run_is_whole(self, guards: Guards) -> None:
        got = self.sent(guards, KeepFlagged(NEVER), TailKeeper)
        assert len({span.item.trace_id for span in got.spans}) == 1
        assert got.children(RUN) == [
            "SELECT orders",
            "SELECT refunds",
            CALL,
            "execute_tool refund_order",
            "guardrail.verify refund_order",
        ]
        assert got.span(RUN).attributes["guardrail.verdict"] == "silent_failure"
        assert got.span(CALL).attributes["gen_ai.tool.name"] == "lookup_order"  # told when it began, and not lost

    def test_a_sampled_run_is_told_once_in_every_way(self, guards: Guards) -> None:
        got = self.sent(guards, KeepSummary(KeepFlagged(ALWAYS_ON)), TailKeeper)
        assert [span.item.name for span in got.spans].count(RUN) == 2
        assert [span for span in got.spans if span.item.name == SUMMARY] == []


def test_a_stopped_run_has_a_summary_too(guards: Guards) -> None:
    recorder = Recorder(sampler=KeepSummary(NEVER))
    with pytest.raises(RunStopped), guards(tracer_provider=recorder.tracers).run("look_only") as run:
        run.wrap(guards.shop.cancel_order)(17)
        run.wrap(guards.shop.refund_order)(17, "19.90")
    [summary] = recorder.spans
    assert summary.name == "guardrail.stopped look_only"
    assert (summary.attributes or {})["guardrail.stop.reason"] == "write_under_hold"


def test_a_summary_says_what_the_run_would_have_said_and_is_no_run() -> None:
    lost, seen = Recorder(sampler=KeepSummary(NEVER)), Recorder()
    whole_run(lost, FLAGGED)
    whole_run(seen, FLAGGED)
    said = dict(seen.attributes(RUN))
    assert said.pop("gen_ai.operation.name") == "invoke_agent"
    assert dict(lost.attributes(SUMMARY)) == said
    assert lost.span(SUMMARY).status.description == seen.span(RUN).status.description


def test_a_summary_lasts_as_long_as_the_run() -> None:
    recorder = Recorder(sampler=KeepSummary(ByName(RUN)))
    run = open_run(recorder)
    with recorder.tracers.get_tracer("x").start_as_current_span("work"):
        pass
    run.close(FLAGGED)
    work, summary = recorder.span("work"), recorder.span(SUMMARY)
    times = (summary.start_time, work.start_time, work.end_time, summary.end_time)
    assert list(times) == sorted(time or 0 for time in times)


class ByName(Sampler):
    """Drops the spans of a name."""

    def __init__(self, name: str) -> None:
        self._name = name

    def should_sample(self, parent_context: Any, trace_id: int, name: str, *rest: Any, **more: Any) -> SamplingResult:
        attributes = more.get("attributes") or (rest[1] if len(rest) > 1 else None)
        return SamplingResult(Decision.DROP if name == self._name else Decision.RECORD_AND_SAMPLE, attributes)

    def get_description(self) -> str:
        return f"ByName{{{self._name}}}"


def test_a_request_that_was_not_sampled_elsewhere_is_what_events_belong_to_where_nothing_traces() -> None:
    recorder = Recorder(tracer_provider=NoOpTracerProvider())
    remote = SpanContext(7, 9, is_remote=True, trace_flags=TraceFlags(0))
    token = contexts.attach(trace.set_span_in_context(NonRecordingSpan(remote)))
    whole_run(recorder, FLAGGED)
    contexts.detach(token)
    assert set(recorder.event_spans()) == {9}


@pytest.mark.parametrize("verdict", ["verified", "unverified", "agent_error"])
def test_a_run_that_is_not_flagged_has_no_summary(verdict: Any) -> None:
    recorder = Recorder(sampler=KeepSummary(NEVER))
    whole_run(recorder, Verdict(verdict))
    assert recorder.spans == []


def test_without_the_sampler_a_summary_is_sampled_like_any_trace() -> None:
    recorder = Recorder(sampler=NEVER)
    whole_run(recorder, FLAGGED)
    assert recorder.spans == []


def test_a_user_cannot_make_a_run_look_flagged_to_the_sampler_by_chance() -> None:
    recorder = Recorder(sampler=KeepSummary(NEVER))
    recorder.telemetry.open_run("run-1", "t", "balanced", "enforce", {"flagged": True}).close(FINE)
    assert recorder.spans == []


@pytest.mark.parametrize("made", [KeepSummary, KeepFlagged])
def test_what_the_base_samples_it_samples_likewise(made: Callable[[Sampler], Sampler]) -> None:
    base = TraceIdRatioBased(0.5)
    sampler = made(base)
    for number in range(200):
        identity = number * 0x0123456789ABCDEF % 2**64
        ours, theirs = (one.should_sample(None, identity, "x", attributes={"a": 1}) for one in (sampler, base))
        assert (ours.decision is Decision.RECORD_AND_SAMPLE) is (theirs.decision is Decision.RECORD_AND_SAMPLE)
    assert base.get_description() in sampler.get_description()


class Kept:
    """A tail keeper in front of an exporter in memory."""

    def __init__(self, **bounds: int) -> None:
        self.spans = InMemorySpanExporter()
        self.keeper = TailKeeper(SimpleSpanProcessor(self.spans), **bounds)
        self.recorder = Recorder(sampler=KeepFlagged(NEVER), processor=self.keeper)
        self.tracer = self.recorder.tracers.get_tracer("app")

    @property
    def names(self) -> list[str]:
        return [span.name for span in self.spans.get_finished_spans()]


def test_what_is_kept_bears_the_sampled_flag_and_is_otherwise_the_same() -> None:
    kept, seen = Kept(), Recorder()
    whole_run(kept.recorder, FLAGGED)
    whole_run(seen, FLAGGED)
    for ours, theirs in zip(kept.spans.get_finished_spans(), seen.spans[::-1], strict=True):
        assert ours.context is not None
        assert ours.context.trace_flags.sampled
        assert ours.name == theirs.name
        assert dict(ours.attributes or {}) == dict(theirs.attributes or {})
        assert ours.status.status_code == theirs.status.status_code
        assert ours.resource == kept.recorder.tracers.resource
        assert ours.instrumentation_scope == theirs.instrumentation_scope
        assert (ours.kind, len(ours.links), len(ours.events)) == (theirs.kind, len(theirs.links), len(theirs.events))
    assert kept.recorder.spans == []  # a processor that is not behind the keeper sees them unsampled


def test_attributes_that_a_kept_span_has_lost_are_still_counted() -> None:
    kept = Kept()
    run = open_run(kept.recorder)
    call = run.open_call("lookup_order", "read", 1)
    token = call.attach()
    trace.get_current_span().set_attributes({f"users.{number}": number for number in range(140)})
    call.detach(token)
    call.close("ok", "allow", executed=True)
    run.close(FLAGGED)
    assert kept.spans.get_finished_spans()[0].dropped_attributes > 12


def test_what_lies_around_a_flagged_run_is_kept_with_it() -> None:
    kept = Kept()
    with kept.tracer.start_as_current_span("POST /chat"):
        with kept.tracer.start_as_current_span("plan"):
            pass
        whole_run(kept.recorder, FLAGGED)
        with kept.tracer.start_as_current_span("answer"):
            pass
    assert kept.names == ["plan", CALL, RUN, "answer", "POST /chat"]


def test_a_trace_without_a_flagged_run_is_let_go_with_its_local_root() -> None:
    kept = Kept(spans=2)
    remote = SpanContext(7, 7, is_remote=True, trace_flags=TraceFlags(0))
    for parent in (None, trace.set_span_in_context(NonRecordingSpan(remote))):
        for _ in range(10):
            with kept.tracer.start_as_current_span("POST /chat", context=parent or Context()):
                kept.tracer.start_span("step").end()
    assert (kept.names, kept.keeper.dropped) == ([], 0)


def test_a_run_of_a_request_that_was_not_sampled_elsewhere_is_kept() -> None:
    kept = Kept()
    remote = SpanContext(7, 7, is_remote=True, trace_flags=TraceFlags(0))
    with kept.tracer.start_as_current_span("POST /chat", context=trace.set_span_in_context(NonRecordingSpan(remote))):
        whole_run(kept.recorder, FLAGGED)
    assert kept.names == [CALL, RUN, "POST /chat"]


def test_of_one_trace_the_oldest_spans_give_way() -> None:
    kept = Kept(of_trace=3)
    with kept.tracer.start_as_current_span("POST /chat"):
        for number in range(5):
            kept.tracer.start_span(f"step {number}").end()
        whole_run(kept.recorder, FLAGGED)
    assert kept.names == ["step 3", "step 4", CALL, RUN, "POST /chat"]
    assert kept.keeper.dropped == 3


def test_of_many_traces_the_one_that_was_idle_longest_gives_way() -> None:
    kept = Kept(spans=4)
    runs = [open_run(kept.recorder) for _ in range(3)]
    for number, run in enumerate((runs[0], runs[1], runs[0], runs[2], runs[2])):
        run.open_call(f"tool_{number}", "read", 1).close("ok", "allow", executed=True)
    for run in runs:
        run.close(FLAGGED)
    assert kept.keeper.dropped == 1
    assert [name for name in kept.names if name.startswith("execute_tool")] == [
        f"execute_tool tool_{number}" for number in (0, 2, 3, 4)
    ]


def test_runs_in_many_threads_are_each_kept_whole() -> None:
    kept = Kept()
    verdicts = [FLAGGED if number % 3 == 0 else FINE for number in range(60)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(whole_run, [kept.recorder] * 60, verdicts))
    assert kept.recorder.telemetry.errors == 0
    assert (kept.names.count(CALL), kept.names.count(RUN)) == (20, 20)


def test_a_sampled_span_passes_at_once() -> None:
    spans = InMemorySpanExporter()
    recorder = Recorder(sampler=KeepFlagged(ALWAYS_ON), processor=TailKeeper(SimpleSpanProcessor(spans)))
    run = open_run(recorder)
    run.open_call("lookup_order", "read", 1).close("ok", "allow", executed=True)
    assert [span.name for span in spans.get_finished_spans()] == [CALL]
    run.close(FINE)


def test_the_keeper_passes_on_what_a_processor_is_told() -> None:
    told: list[str] = []

    class Watching(SpanProcessor):
        def on_start(self, span: Span, parent_context: Context | None = None) -> None:
            told.append(f"start {span.name}")

        def on_end(self, span: ReadableSpan) -> None:
            told.append(f"end {span.name}")

        def force_flush(self, timeout_millis: int = 30_000) -> bool:
            told.append(f"flush {timeout_millis}")
            return False

        def shutdown(self) -> None:
            told.append("shutdown")

    keeper = TailKeeper(Watching())
    recorder = Recorder(processor=keeper)
    recorder.tracers.get_tracer("x").start_span("x").end()
    assert keeper.force_flush(7) is False
    keeper.shutdown()
    assert told == ["start x", "end x", "flush 7", "shutdown"]


class Raising(Sampler, SpanProcessor):
    """A sampler and a processor that raise."""

    def should_sample(self, *args: Any, **options: Any) -> SamplingResult:
        raise RuntimeError("should_sample")

    def get_description(self) -> str:
        return "raises"

    def on_start(self, span: Span, parent_context: Context | None = None) -> None:
        raise RuntimeError("on_start")

    def on_end(self, span: ReadableSpan) -> None:
        raise RuntimeError("on_end")


@pytest.mark.parametrize(
    "broken",
    [
        pytest.param(lambda: Recorder(sampler=KeepSummary(Raising())), id="summary"),
        pytest.param(lambda: Recorder(sampler=KeepFlagged(Raising())), id="flagged"),
        pytest.param(
            lambda: Recorder(sampler=KeepFlagged(NEVER), processor=TailKeeper(Raising())), id="keeper-unsampled"
        ),
        pytest.param(lambda: Recorder(processor=TailKeeper(Raising())), id="keeper-sampled"),
    ],
)
def test_what_is_broken_behind_them_does_not_reach_the_run(guards: Guards, broken: Callable[[], Recorder]) -> None:
    recorder = broken()
    guard = guards(tracer_provider=recorder.tracers, meter_provider=recorder.meters)
    run = guard.run("refund_order", inputs={"order_id": 17, "amount": "19.90"})
    with run:
        assert run.wrap(guards.shop.refund_order)(17, "91.90") == {"refunded": 17}
    assert run.verdict is not None
    assert run.verdict.kind == "silent_failure"
    assert recorder.series("guardrail.telemetry.errors") == [{"error.type": "RuntimeError"}]


FORKED = """
import os, sys
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import ConsoleSpanExporter, SimpleSpanProcessor
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF
from guardrail.calls import Verdict
from guardrail.telemetry.sampling import KeepFlagged, TailKeeper
from guardrail.telemetry.traces import Telemetry

def shown(span):
    return f"{os.getpid() == parent} {span.name}\\n"

parent = os.getpid()
tracers = TracerProvider(KeepFlagged(ALWAYS_OFF))
tracers.add_span_processor(keeper := TailKeeper(SimpleSpanProcessor(ConsoleSpanExporter(formatter=shown))))
telemetry = Telemetry(tracer_provider=tracers)
run = telemetry.open_run("run-1", "t", "balanced", "enforce")
run.open_call("lookup_order", "read", 1).close("ok", "allow", executed=True)
keeper._lock.acquire()  # as another thread may, at the very moment of the fork
child = os.fork()
if child:
    keeper._lock.release()
    os.waitpid(child, 0)
run.close(Verdict("stopped"))
sys.stdout.flush()
os._exit(0) if not child else None
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_after_a_fork_what_waited_is_the_parents() -> None:
    done = subprocess.run([sys.executable, "-c", FORKED], capture_output=True, text=True, timeout=60, check=True)
    assert sorted(done.stdout.splitlines()) == [
        "False invoke_agent t",
        "True execute_tool lookup_order",
        "True invoke_agent t",
    ]
