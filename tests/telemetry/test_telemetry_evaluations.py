"""Evaluations as Phoenix and MLflow take them, and what becomes of them where the backend is no good."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Literal

import pytest
from opentelemetry.context import Context
from opentelemetry.sdk._logs import LoggerProvider, ReadableLogRecord
from opentelemetry.sdk._logs.export import (
    BatchLogRecordProcessor,
    InMemoryLogRecordExporter,
    LogRecordExportResult,
    SimpleLogRecordProcessor,
)
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF, ALWAYS_ON, Sampler
from opentelemetry.trace import set_span_in_context

from guardrail.calls import Finding, Verdict
from guardrail.telemetry import evaluations
from guardrail.telemetry.evaluations import Evaluations, MlflowEvaluations, PhoenixEvaluations
from guardrail.telemetry.traces import Telemetry
from support.receiver import Conduct, endpoint
from support.shop import Guards, Shop

Made = Callable[..., Evaluations]
on_each = pytest.mark.parametrize("made", [PhoenixEvaluations, MlflowEvaluations])

POSTS: dict[Made, int] = {PhoenixEvaluations: 3, MlflowEvaluations: 2}
"""How many requests tell of a run and one check: to Phoenix, one a span and one for the trace."""

GOOD, BAD = LogRecordExportResult.SUCCESS, LogRecordExportResult.FAILURE


class Backend:
    """A backend that answers with these statuses, one a request, and then with 200."""

    def __init__(self) -> None:
        self.statuses: list[int] = []
        self.asked: list[tuple[str, dict[str, str], Any]] = []
        backend = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                status = backend.statuses.pop(0) if backend.statuses else 200
                backend.asked.append((self.path, {n.lower(): v for n, v in self.headers.items()}, body))
                self.send_response(status)
                self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, format: str, *args: Any) -> None:
                """Nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    @property
    def paths(self) -> list[str]:
        return [path for path, _, _ in self.asked]

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


@pytest.fixture
def backend() -> Iterator[Backend]:
    made = Backend()
    yield made
    made.close()


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Six tries, without waiting long between them."""
    monkeypatch.setattr(evaluations, "PAUSES", (0.0, *[0.01] * 5))


def told(sampler: Sampler = ALWAYS_ON, *verdicts: Verdict) -> list[ReadableLogRecord]:
    """The records of runs with these verdicts, each of which had a check and findings."""
    records = InMemoryLogRecordExporter()  # type: ignore[no-untyped-call]
    loggers = LoggerProvider(shutdown_on_exit=False)
    loggers.add_log_record_processor(SimpleLogRecordProcessor(records))
    tracers = TracerProvider(sampler, shutdown_on_exit=False)
    telemetry = Telemetry(tracer_provider=tracers, logger_provider=loggers, environ={})
    for verdict in verdicts:
        run = telemetry.open_run("run-1", "refund_order", "balanced", "enforce")
        run.open_call("cancel_order", "write", 1).close("rejected", "hold", executed=True)
        verify = run.open_verify()
        verify.check("paid once", "sqlite", "SELECT refunds", "SELECT 1", "pass")
        verify.close(verdict.findings)
        run.close(verdict)
    return list(records.get_finished_logs())


def finding(column: str) -> Finding:
    return Finding("wrong_value", "shop.refunds", "amount is 91.95", {"id": 3}, column, "19.95", "91.95")


FLAGGED = Verdict("silent_failure", (finding("amount"), finding("order_id"), finding("amount")))
FINE = Verdict("verified")


def hexadecimal(record: ReadableLogRecord) -> tuple[str, str]:
    return f"{record.log_record.trace_id:032x}", f"{record.log_record.span_id:016x}"


def test_phoenix_gets_annotations_of_spans_and_of_the_trace(backend: Backend) -> None:
    records = told(ALWAYS_ON, FLAGGED)
    trace, run = hexadecimal(records[-1])
    _, verify = hexadecimal(records[-2])
    assert PhoenixEvaluations(backend.url).export(records) is GOOD

    assert backend.paths == [
        "/v1/span_annotations?sync=true",
        "/v1/span_annotations?sync=true",
        "/v1/trace_annotations?sync=true",
    ]
    (_, _, checked), (_, _, judged), (_, _, traced) = backend.asked
    assert [
        (one["span_id"], one["name"], one["result"]["label"], one["result"]["explanation"])
        for one in (*checked["data"], *judged["data"])
    ] == [
        (verify, "paid once", "pass", None),
        (verify, "guardrail.state", "fail", "wrong value: shop.refunds.amount"),
        (verify, "guardrail.state", "fail", "wrong value: shop.refunds.order_id"),
        (verify, "guardrail.state", "fail", "wrong value: shop.refunds.amount"),
        (run, "guardrail.run", "silent_failure", "the run ended cleanly and left the wrong state"),
    ]
    assert len({one["identifier"] for one in checked["data"]}) == 4  # none takes the place of another
    [whole] = traced["data"]
    assert (whole["trace_id"], whole["name"], whole["identifier"]) == (trace, "guardrail.run", run)
    assert (whole["result"]["label"], whole["result"]["score"]) == ("silent_failure", 0.0)
    assert whole["annotator_kind"] == "CODE"
    assert whole["metadata"]["guardrail.run.id"] == "run-1"


def test_mlflow_gets_assessments_of_the_trace(backend: Backend) -> None:
    records = told(ALWAYS_ON, FLAGGED)
    trace, run = hexadecimal(records[-1])
    assert MlflowEvaluations(f"{backend.url}/").export(records) is GOOD

    assert set(backend.paths) == {f"/api/3.0/mlflow/traces/tr-{trace}/assessments"}
    found = [body["assessment"] for _, _, body in backend.asked]
    assert [(one["assessment_name"], one["feedback"]["value"], one["rationale"]) for one in found] == [
        ("paid once", "pass", ""),
        ("guardrail.state", "fail", "wrong value: shop.refunds.amount"),
        ("guardrail.state", "fail", "wrong value: shop.refunds.order_id"),
        ("guardrail.state", "fail", "wrong value: shop.refunds.amount"),
        ("guardrail.run", "silent_failure", "the run ended cleanly and left the wrong state"),
    ]
    assert (found[-1]["trace_id"], found[-1]["span_id"]) == (f"tr-{trace}", run)
    assert found[-1]["source"] == {"source_type": "CODE", "source_id": "guardrail"}
    assert found[-1]["metadata"]["guardrail.verdict"] == "silent_failure"


@on_each
def test_no_value_of_the_state_is_posted(backend: Backend, made: Made) -> None:
    made(backend.url).export(told(ALWAYS_ON, FLAGGED))
    assert "91.95" not in json.dumps(backend.asked)


@on_each
def test_headers_go_along(backend: Backend, made: Made) -> None:
    made(backend.url, headers={"Authorization": "Bearer x"}).export(told(ALWAYS_ON, FINE))
    assert {headers["authorization"] for _, headers, _ in backend.asked} == {"Bearer x"}


@on_each
def test_runs_that_were_sampled_away_are_left_out_unless_they_are_flagged(backend: Backend, made: Made) -> None:
    exporter = made(backend.url)
    assert exporter.export(told(ALWAYS_OFF, FINE)) is GOOD
    assert (backend.asked, exporter.dropped) == ([], 0)

    assert exporter.export(told(ALWAYS_OFF, FINE, FLAGGED)) is GOOD
    posted = json.dumps(backend.asked)
    assert ("silent_failure" in posted, "verified" in posted) == (True, False)


@on_each
@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("status", [404, 408, 425, 429, 500, 502, 503, 504])
def test_what_may_be_taken_later_is_tried_again(backend: Backend, made: Made, status: int) -> None:
    exporter = made(backend.url)
    backend.statuses = [status, status]
    assert exporter.export(told(ALWAYS_ON, FLAGGED)) is GOOD
    assert exporter.dropped == 0
    assert set(backend.paths) == set(backend.paths[2:])


@pytest.mark.usefixtures("quick")
def test_what_was_taken_is_not_posted_again(backend: Backend) -> None:
    backend.statuses = [200, 404, 200, 404, 200]
    assert MlflowEvaluations(backend.url).export(told(ALWAYS_ON, FLAGGED)) is GOOD
    names = [body["assessment"]["assessment_name"] for _, _, body in backend.asked]
    assert names == [
        *("paid once", "guardrail.state", "guardrail.state", "guardrail.state", "guardrail.run"),
        *("guardrail.state", "guardrail.state"),
    ]


@pytest.mark.usefixtures("quick")
def test_where_all_are_sent_away_the_rest_waits_with_the_first(backend: Backend) -> None:
    backend.statuses = [429]
    assert MlflowEvaluations(backend.url).export(told(ALWAYS_ON, FLAGGED)) is GOOD
    assert len(backend.asked) == 1 + 5


@on_each
@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("status", [302, 400, 401, 403, 413, 422])
def test_what_is_refused_is_not_tried_again_and_counted(backend: Backend, made: Made, status: int) -> None:
    exporter = made(backend.url)
    backend.statuses = [status]
    assert exporter.export(told(ALWAYS_ON, FINE)) is BAD
    assert exporter.dropped == 1
    assert len(backend.asked) == POSTS[made]


@on_each
@pytest.mark.usefixtures("quick")
def test_a_trace_that_never_comes_is_given_up(backend: Backend, made: Made) -> None:
    exporter = made(backend.url)
    backend.statuses = [404] * 1_000
    assert exporter.export(told(ALWAYS_ON, FINE)) is BAD
    assert len(backend.asked) == 6 * POSTS[made]
    backend.statuses = []
    assert exporter.export(told(ALWAYS_ON, FINE)) is GOOD


@on_each
@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("conduct", ["dead", "hanging", "cutting", "refusing", "busy"])
def test_a_backend_that_is_no_good_costs_evaluations_and_nothing_else(
    made: Made, conduct: Conduct | Literal["dead"], caplog: pytest.LogCaptureFixture
) -> None:
    with endpoint(conduct) as url:
        exporter = made(url, timeout=0.1, patience=0.2)
        for lost in (1, 2):
            assert exporter.export(told(ALWAYS_ON, FINE)) is BAD
            assert exporter.dropped >= 2 * lost
    [line] = [record for record in caplog.records if record.name == "guardrail"]
    assert "guardrail.evaluations_dropped" in line.getMessage()
    assert made.__name__ in line.getMessage()
    assert url not in line.getMessage()


@on_each
@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("url", ["", "nowhere", "ftp://127.0.0.1", "http://127.0.0.1:99999"])
def test_a_url_that_is_none_is_no_error_of_the_application(made: Made, url: str) -> None:
    exporter = made(url, patience=0.1)
    assert exporter.export(told(ALWAYS_ON, FINE)) is BAD
    assert exporter.dropped > 0


@on_each
def test_a_shutdown_ends_the_waiting(backend: Backend, made: Made) -> None:
    exporter = made(backend.url, patience=600)
    backend.statuses = [404] * 1_000
    ended: list[LogRecordExportResult] = []
    exporting = threading.Thread(target=lambda: ended.append(exporter.export(told(ALWAYS_ON, FINE))))
    exporting.start()
    while not backend.asked:
        assert exporting.is_alive()
    exporter.shutdown()
    exporting.join(30)
    assert ended == [BAD]
    assert exporter.export(told(ALWAYS_ON, FINE)) is BAD  # and nothing is posted any more


@on_each
def test_of_other_records_nothing_is_posted(backend: Backend, made: Made) -> None:
    records = InMemoryLogRecordExporter()  # type: ignore[no-untyped-call]
    loggers = LoggerProvider(shutdown_on_exit=False)
    loggers.add_log_record_processor(SimpleLogRecordProcessor(records))
    logger = loggers.get_logger("app")
    logger.emit(body="a line")
    logger.emit(event_name="gen_ai.evaluation.result", context=Context())  # of no trace
    span = TracerProvider(shutdown_on_exit=False).get_tracer("app").start_span("x")
    logger.emit(event_name="app.event", context=set_span_in_context(span))
    exporter = made(backend.url)
    assert exporter.export(records.get_finished_logs()) is GOOD
    assert backend.asked == []


@on_each
@pytest.mark.parametrize(
    "attributes",
    [
        {},
        {"gen_ai.evaluation.score.value": "high", "gen_ai.evaluation.explanation": ["a", "b"]},
        {"gen_ai.evaluation.score.value": float("nan"), "gen_ai.evaluation.name": "a\ud800"},
        {"gen_ai.evaluation.score.value": float("inf"), "guardrail.verdict": "\udfff"},
    ],
)
def test_an_evaluation_of_somebody_else_is_posted_as_odd_as_it_is(
    backend: Backend, made: Made, attributes: dict[str, Any]
) -> None:
    records = InMemoryLogRecordExporter()  # type: ignore[no-untyped-call]
    loggers = LoggerProvider(shutdown_on_exit=False)
    loggers.add_log_record_processor(SimpleLogRecordProcessor(records))
    span = TracerProvider(shutdown_on_exit=False).get_tracer("app").start_span("x")
    context = set_span_in_context(span)
    loggers.get_logger("app").emit(event_name="gen_ai.evaluation.result", context=context, attributes=attributes)
    assert made(backend.url).export(records.get_finished_logs()) is GOOD
    assert len(backend.asked) == 1


@on_each
def test_evaluations_arrive_from_a_guarded_run_in_the_background(backend: Backend, made: Made, tmp_path: Path) -> None:
    exporter = made(backend.url)
    loggers = LoggerProvider(shutdown_on_exit=False)
    loggers.add_log_record_processor(BatchLogRecordProcessor(exporter))
    guards = Guards(Shop(tmp_path / "shop.db"), tmp_path)
    guard = guards(tracer_provider=TracerProvider(shutdown_on_exit=False), logger_provider=loggers)
    with guard.run("refund_order", inputs={"order_id": 17, "amount": "19.90"}) as run:
        run.wrap(guards.shop.refund_order)(17, "91.90")
    assert backend.asked == []
    loggers.force_flush()
    loggers.shutdown()
    guards.close()
    assert "silent_failure" in json.dumps(backend.asked)
    assert exporter.dropped == 0


def test_a_hanging_backend_does_not_delay_a_run(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL)
    with endpoint("hanging") as url:
        loggers = LoggerProvider(shutdown_on_exit=False)
        exporter = PhoenixEvaluations(url, timeout=600, patience=600)
        loggers.add_log_record_processor(BatchLogRecordProcessor(exporter, schedule_delay_millis=1))
        guards = Guards(Shop(tmp_path / "shop.db"), tmp_path)
        guard = guards(tracer_provider=TracerProvider(shutdown_on_exit=False), logger_provider=loggers)
        for _ in range(20):
            with guard.run("look_only") as run:
                run.wrap(guards.shop.lookup_order)(17)
            assert run.verdict is not None
        guards.close()
        # Reached although nothing was answered; the endpoint lets go when it is left.
        exporter.shutdown()
    loggers.shutdown()
