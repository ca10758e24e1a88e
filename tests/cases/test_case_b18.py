"""B18: telemetry slows, loses or breaks the run."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SimpleSpanProcessor, SpanExporter, SpanExportResult

from guardrail import Guard, RunStopped
from support.cases import answering, history_of, outcomes
from support.recorder import Recorder
from support.shop import Guards, Shop

ARGUMENTS = "gen_ai.tool.call.arguments"
RESULT = "gen_ai.tool.call.result"
CORE = (
    "gen_ai.operation.name",
    "gen_ai.tool.name",
    "gen_ai.tool.call.id",
    "guardrail.run.id",
    "guardrail.call.number",
    "guardrail.call.effect",
    "guardrail.call.outcome",
    "guardrail.decision",
)


class Away(SpanExporter):
    """An exporter whose collector is down: it hangs until it is let go, and then it fails."""

    def __init__(self) -> None:
        self.called = threading.Event()
        self.released = threading.Event()

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        self.called.set()
        self.released.wait(60)
        return SpanExportResult.FAILURE


class Raising(SpanExporter):
    """An exporter that raises."""

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        raise OSError("no collector at localhost:4317")


class Broken(SpanProcessor):
    """A user's processor that raises whatever happens."""

    def on_start(self, span: Any, parent_context: Any = None) -> None:
        raise RuntimeError("broken in on_start")

    def on_end(self, span: ReadableSpan) -> None:
        raise RuntimeError("broken in on_end")


def provider(*processors: SpanProcessor) -> TracerProvider:
    made = TracerProvider(shutdown_on_exit=False)
    for processor in processors:
        made.add_span_processor(processor)
    return made


def guarding_is_unchanged(guards: Guards, shop: Shop, **providers: Any) -> Guard:
    """A good run passes, a bad one is held and stopped, and both are on record."""
    guard = guards(**providers)
    with guard.run("refund_order", inputs={"order_id": 17, "amount": "19.90"}) as good:
        good.call("lookup_order", {"order_id": 17}, shop.lookup_order, id="c1")
        good.call("refund_order", {"order_id": 17, "amount": "19.90"}, shop.refund_order, id="c2")
    bad = guard.run()
    with pytest.raises(RunStopped), bad:
        bad.call("cancel_order", {"order_id": 17}, shop.cancel_order, id="c1")
        bad.call("note_order", {"order_id": 17, "note": "x"}, shop.note_order, id="c2")
    assert good.verdict is not None
    assert good.verdict.kind == "verified"
    assert outcomes(guard, good.id) == {"c1": "ok", "c2": "ok"}
    assert outcomes(guard, bad.id) == {"c1": "rejected", "c2": "refused"}
    return guard


@pytest.fixture
def away() -> Iterator[Away]:
    exporter = Away()
    yield exporter
    exporter.released.set()


@pytest.mark.case("B18", "no collector")
def test_runs_do_not_wait_for_a_collector_that_is_down(guards: Guards, shop: Shop, away: Away) -> None:
    tracers = provider(BatchSpanProcessor(away, schedule_delay_millis=1))
    guard = guarding_is_unchanged(guards, shop, tracer_provider=tracers)
    assert away.called.wait(30)
    with guard.run() as run:  # while an export hangs
        run.wrap(shop.lookup_order)(17)
    assert run.calls == 1
    away.released.set()
    tracers.shutdown()


@pytest.mark.case("B18", "exporter raises")
def test_an_exporter_that_raises_is_kept_from_the_run(
    guards: Guards, shop: Shop, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.CRITICAL):
        guarding_is_unchanged(guards, shop, tracer_provider=provider(SimpleSpanProcessor(Raising())))


@pytest.mark.case("B18", "user's span processor raises in on_end")
def test_a_processor_that_raises_is_kept_from_the_run_and_reported_once(
    guards: Guards, shop: Shop, caplog: pytest.LogCaptureFixture
) -> None:
    guarding_is_unchanged(guards, shop, tracer_provider=provider(Broken()))
    assert sum("guardrail.telemetry_failed" in record.getMessage() for record in caplog.records) == 1


class Left(SpanProcessor):
    """A user's processor, which is the user's to flush and to shut down."""

    def shutdown(self) -> None:
        raise AssertionError("the guard shut the provider down")

    def force_flush(self, timeout_millis: int = 30000) -> bool:
        raise AssertionError("the guard flushed the provider")


def test_the_users_provider_is_neither_flushed_nor_shut_down(guards: Guards, shop: Shop) -> None:
    guarding_is_unchanged(guards, shop, tracer_provider=provider(Left())).close()


# --- what is told


@pytest.fixture
def recorder() -> Recorder:
    return Recorder()


@pytest.fixture
def guard(guards: Guards, recorder: Recorder) -> Guard:
    tools = {"probe": {"effect": "read"}, "write": {"effect": "write"}}
    return guards(tools=tools, tracer_provider=recorder.tracers, content={"spans": True})


@pytest.mark.case("B18", "10 MB result")
def test_a_huge_result_is_told_in_a_bounded_and_marked_form(guard: Guard, recorder: Recorder) -> None:
    text = "x" * 10_000_000
    with guard.run() as run:
        assert run.call("probe", {"text": text}, answering({"text": text})) == {"text": text}
    attributes = recorder.attributes("execute_tool probe")
    for name in (ARGUMENTS, RESULT):
        assert len(attributes[name]) < 6_000
        assert "truncated" in attributes[name]
    assert len(history_of(guard, run.id).calls[0].call.args) < 6_000


@pytest.mark.case("B18", "140 attributes")
def test_what_says_what_a_span_is_stays_when_others_add_140_attributes(guard: Guard, recorder: Recorder) -> None:
    many = {f"tenant.{number}": number for number in range(140)}

    def probe() -> str:
        trace.get_current_span().set_attributes(many)
        return "fine"

    with guard.run("look_only", attributes=many) as run:
        run.call("probe", {}, probe, id="c1")
    call = recorder.attributes("execute_tool probe")
    assert {name for name in CORE if name in call} == set(CORE)
    told = recorder.attributes("invoke_agent look_only")
    assert (told["guardrail.run.id"], told["guardrail.verdict"]) == (run.id, "verified")


def self_referring() -> object:
    d: dict[str, object] = {}
    d["d"] = d
    return d


def deep() -> object:
    value: object = "deepest"
    for _ in range(3000):
        value = {"d": value}
    return value


def unlimited() -> object:
    class Endless(dict[str, object]):
        def items(self) -> Any:
            raise RuntimeError("no items today")

    return Endless(a=1)


@pytest.mark.parametrize("tool", ["probe", "write"])
@pytest.mark.parametrize(
    "value",
    [
        pytest.param(
            self_referring, marks=pytest.mark.case("B18", "self-referring argument"), id="self-referring argument"
        ),
        pytest.param(deep, marks=pytest.mark.case("B18", "very deep argument"), id="very deep argument"),
        pytest.param(unlimited, id="a mapping that cannot be read"),
    ],
)
def test_no_argument_is_too_odd_to_be_told(guard: Guard, recorder: Recorder, tool: str, value: Any) -> None:
    made = value()
    given: list[dict[str, object]] = []
    with guard.run() as run:
        run.call(tool, {"d": made}, answering({"ok": True}, given))
    assert given[0]["d"] is made
    text = recorder.attributes(f"execute_tool {tool}")[ARGUMENTS]
    assert len(text) < 6_000
    assert "d" in json.loads(text)


@pytest.mark.case("B18", "lone surrogate, 2**70, NaN, Decimal, datetime, set")
def test_values_that_no_exporter_takes_are_told_as_text(guard: Guard, recorder: Recorder) -> None:
    odd = {
        "surrogate": "a\ud800b",
        "big": 2**70,
        "nan": float("nan"),
        "price": Decimal("1.5"),
        "at": datetime(2026, 11, 30, tzinfo=UTC),
        "some": {1},
    }
    with guard.run(attributes=odd) as run:
        run.call("probe", odd, answering({"ok": True, **odd}))
    shown = {"big": str(2**70), "nan": "NaN", "price": "1.5", "at": "2026-11-30T00:00:00+00:00", "some": [1]}
    arguments = json.loads(recorder.attributes("execute_tool probe")[ARGUMENTS])
    assert arguments.pop("surrogate").encode()
    assert arguments == shown
    told = recorder.attributes("invoke_agent")
    assert {name: told[name] for name in ("big", "nan", "price", "at", "some")} == {**shown, "some": "[1]"}
    assert str(told["surrogate"]).encode()
    for span in recorder.spans:  # all that left can be encoded
        assert span.to_json().encode()


# --- processes of their own: what is there when Python starts, and what is global in it

AGENT = """
import sys, tempfile, pathlib
{before}
from guardrail import Configuration, Guard, RunStopped
guard = Guard(Configuration(ledger="memory", policy="strict"))
{between}
stopped = False
try:
    with guard.run("task") as run:
        assert run.call("look", {{}}, lambda: {{"id": 1}}, id="c1") == {{"id": 1}}
        run.call("look", {{}}, lambda: {{"error": "gone"}}, id="c2")
except RunStopped:
    stopped = True
history = guard.ledger.load_run(run.id)
print(stopped, [c.outcome.outcome for c in history.calls], run.verdict.kind)
{after}
"""


def agent(folder: Path, before: str = "", between: str = "", after: str = "", **environ: str) -> list[str]:
    """What a process prints in which an agent is guarded."""
    ended = subprocess.run(
        [sys.executable, "-c", AGENT.format(before=before, between=between, after=after)],
        cwd=folder,
        env={**{name: value for name, value in os.environ.items() if not name.startswith("OTEL_")}, **environ},
        capture_output=True,
        encoding="utf-8",
        timeout=60,
    )
    assert (ended.returncode, ended.stderr) == (0, "")
    return ended.stdout.splitlines()


GUARDED = "True ['ok', 'error'] stopped"


@pytest.mark.case("B18", "no SDK installed or disabled")
@pytest.mark.parametrize(
    ("before", "environ"),
    [("sys.modules['opentelemetry.sdk'] = None", {}), ("", {"OTEL_SDK_DISABLED": "true"})],
    ids=["not installed", "disabled"],
)
def test_without_an_sdk_guarding_is_unchanged(tmp_path: Path, before: str, environ: dict[str, str]) -> None:
    assert agent(tmp_path, before, **environ) == [GUARDED]


LATER = """
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
exporter = InMemorySpanExporter()
provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(exporter))
trace.set_tracer_provider(provider)
"""


@pytest.mark.case("B18", "provider set later than the guard")
def test_spans_reach_a_provider_that_is_set_after_the_guard_was_made(tmp_path: Path) -> None:
    after = "print(sorted(span.name for span in exporter.get_finished_spans()))"
    assert agent(tmp_path, between=LATER, after=after) == [
        GUARDED,
        "['execute_tool look', 'execute_tool look', 'invoke_agent task']",
    ]
