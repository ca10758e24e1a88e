"""Log lines: where they go, what they bear, and that they harm nothing."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest
import structlog
from opentelemetry import trace

from guardrail.telemetry.logs import add_trace_context, get_logger
from support.recorder import Recorder


@pytest.fixture
def lines() -> Iterator[list[dict[str, Any]]]:
    """What a structlog that the application has configured gets."""
    written: list[dict[str, Any]] = []

    def keep(logger: object, method: str, event: Any) -> Any:
        written.append({"level": method, **event})
        raise structlog.DropEvent

    structlog.configure(processors=[keep])
    yield written
    structlog.reset_defaults()


def test_a_configured_structlog_gets_the_lines(lines: list[dict[str, Any]]) -> None:
    get_logger(run_id="run-1").bind(task="refund").warning("guardrail.decision", decision="stop")
    assert lines == [
        {
            "level": "warning",
            "event": "guardrail.decision",
            "run_id": "run-1",
            "task": "refund",
            "decision": "stop",
        }
    ]


def test_a_line_bears_the_ids_of_the_current_span(recorder: Recorder, lines: list[dict[str, Any]]) -> None:
    with recorder.tracers.get_tracer("x").start_as_current_span("x") as span:
        get_logger().info("guardrail.decision")
    context = span.get_span_context()
    assert lines[0]["trace_id"] == trace.format_trace_id(context.trace_id)
    assert lines[0]["span_id"] == trace.format_span_id(context.span_id)
    assert int(lines[0]["trace_flags"], 16) & 1


def test_a_line_that_is_written_while_another_thread_imports_structlog_harms_nobody(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "structlog", ModuleType("structlog"))  # as long as its body has not run
    get_logger().warning("guardrail.decision")


def test_a_line_of_a_run_bears_its_trace_where_no_span_is_current(
    recorder: Recorder, lines: list[dict[str, Any]]
) -> None:
    run = recorder.telemetry.open_run("run-1", "t", "balanced", "enforce")
    run.log.error("guardrail.stopped")
    assert lines[0]["run_id"] == "run-1"
    assert lines[0]["trace_id"] == run.trace_id


def test_the_processor_adds_the_ids_for_the_users_own_lines(recorder: Recorder) -> None:
    with recorder.tracers.get_tracer("x").start_as_current_span("x") as span:
        event = add_trace_context(None, "info", {"event": "mine"})
    assert event["trace_id"] == trace.format_trace_id(span.get_span_context().trace_id)
    assert add_trace_context(None, "info", {"event": "mine"}) == {"event": "mine"}


def test_values_are_redacted_and_bounded(lines: list[dict[str, Any]]) -> None:
    get_logger().info("x", password="p", note="Bearer sk-test-000", body="x" * 100_000, file=sys.stdin)
    assert lines[0]["password"] == "[redacted]"
    assert lines[0]["note"] == "Bearer [redacted]"
    assert lines[0]["body"].endswith("more]")
    assert isinstance(lines[0]["file"], str)


@pytest.mark.parametrize("level", ["debug", "info", "warning", "error"])
def test_every_level_is_passed_on(lines: list[dict[str, Any]], level: str) -> None:
    getattr(get_logger(), level)("x")
    assert lines[0]["level"] == level


def test_a_processor_that_raises_does_not_reach_the_run() -> None:
    def broken(logger: object, method: str, event: Any) -> Any:
        raise RuntimeError

    structlog.configure(processors=[broken])
    try:
        get_logger().error("guardrail.decision")
    finally:
        structlog.reset_defaults()


def test_without_structlog_configured_lines_go_to_the_standard_library(caplog: pytest.LogCaptureFixture) -> None:
    get_logger(run_id="run-1").warning("guardrail.decision", decision="stop")
    [record] = caplog.records
    assert (record.name, record.levelno) == ("guardrail", logging.WARNING)
    assert record.getMessage() == "event='guardrail.decision' run_id='run-1' decision='stop'"


def test_what_nobody_hears_is_not_written(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, "guardrail")
    get_logger().info("guardrail.decision")
    assert caplog.records == []


def test_nothing_goes_to_stdout_and_nothing_is_configured() -> None:
    script = """
import logging, sys
from guardrail.telemetry.logs import get_logger
get_logger().info("unheard")
assert "structlog" not in sys.modules
get_logger().warning("heard")
import structlog
assert not structlog.is_configured()
assert logging.getLogger("guardrail").handlers == [] and logging.getLogger().handlers == []
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == ""
    assert done.stderr == "event='heard'\n"


def test_lines_are_json_with_the_users_renderer(capsys: pytest.CaptureFixture[str]) -> None:
    structlog.configure(processors=[add_trace_context, structlog.processors.JSONRenderer()])
    try:
        get_logger(run_id="run-1").warning("guardrail.decision", decision="refuse")
    finally:
        structlog.reset_defaults()
    assert json.loads(capsys.readouterr().out) == {
        "event": "guardrail.decision",
        "run_id": "run-1",
        "decision": "refuse",
    }
