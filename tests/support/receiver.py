"""An OTLP/HTTP receiver on loopback: what really went over the wire, decoded; and endpoints that are no good."""

from __future__ import annotations

import gzip
import socket
import threading
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Literal, TypeAlias

from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import BatchLogRecordProcessor
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.trace.sampling import Sampler

Conduct: TypeAlias = Literal["live", "hanging", "refusing", "busy", "cutting"]
"""What a receiver does: answers 200; takes the request and never answers; answers 503, or 429; hangs up."""

_REQUESTS: Mapping[str, Callable[[], Any]] = {
    "/v1/traces": ExportTraceServiceRequest,
    "/v1/logs": ExportLogsServiceRequest,
    "/v1/metrics": ExportMetricsServiceRequest,
}


@dataclass(frozen=True, slots=True)
class Received:
    """A span, a log record or a metric as its protobuf, with the attributes of its resource and the scope's name."""

    item: Any
    resource: dict[str, Any]
    scope: str

    @property
    def attributes(self) -> dict[str, Any]:
        """The item's attributes as plain values."""
        return plain(self.item.attributes)


def plain(attributes: Any) -> dict[str, Any]:
    """Attributes as plain values."""
    return {pair.key: getattr(pair.value, str(pair.value.WhichOneof("value"))) for pair in attributes}


class Receiver:
    """What listens at `url`, and all that it got while it was live."""

    def __init__(self, conduct: Conduct = "live") -> None:
        self.conduct: Conduct = conduct
        self.bodies: list[tuple[str, bytes]] = []
        self.requests = 0
        self.released = threading.Event()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    @property
    def spans(self) -> list[Received]:
        """The spans by start."""
        found = self._items("/v1/traces", "resource_spans", "scope_spans", "spans")
        return sorted(found, key=lambda span: span.item.start_time_unix_nano)

    @property
    def records(self) -> list[Received]:
        """The log records as they came."""
        return list(self._items("/v1/logs", "resource_logs", "scope_logs", "log_records"))

    @property
    def metrics(self) -> dict[str, Received]:
        """The last state of each metric by its name."""
        found = self._items("/v1/metrics", "resource_metrics", "scope_metrics", "metrics")
        return {metric.item.name: metric for metric in found}

    def span(self, name: str) -> Received:
        """The one span of a name."""
        [span] = [span for span in self.spans if span.item.name == name]
        return span

    def parent(self, name: str) -> str | None:
        """The name of the parent of the one span of a name; None for a root."""
        parent = self.span(name).item.parent_span_id
        names = {span.item.span_id: span.item.name for span in self.spans}
        return names.get(parent, "not received") if parent else None

    def children(self, name: str) -> list[str]:
        """The names of the children of the one span of a name, by start."""
        parent = self.span(name).item.span_id
        return [span.item.name for span in self.spans if span.item.parent_span_id == parent]

    def close(self) -> None:
        self.released.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def _items(self, path: str, *levels: str) -> Iterator[Received]:
        outer, middle, inner = levels
        for sent, body in list(self.bodies):
            if sent == path:
                request = _REQUESTS[path]()
                request.ParseFromString(body)
                for resource in getattr(request, outer):
                    for scope in getattr(resource, middle):
                        for item in getattr(scope, inner):
                            yield Received(item, plain(resource.resource.attributes), scope.scope.name)

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                receiver.requests += 1
                match receiver.conduct:
                    case "live":
                        packed = self.headers.get("content-encoding") == "gzip"
                        receiver.bodies.append((self.path, gzip.decompress(body) if packed else body))
                        self._answer(200)
                    case "hanging":
                        receiver.released.wait()
                        self.close_connection = True
                    case "refusing":
                        self._answer(503)
                    case "busy":
                        self._answer(429)
                    case "cutting":
                        self.close_connection = True

            def _answer(self, status: int) -> None:
                with suppress(OSError):  # who asked may have gone
                    self.send_response(status)
                    self.send_header("content-length", "0")
                    self.end_headers()

            def log_message(self, format: str, *args: Any) -> None:
                """Nothing."""

        return Handler


@contextmanager
def endpoint(conduct: Conduct | Literal["dead"]) -> Generator[str]:
    """The URL of an OTLP endpoint; of a dead one, nothing listens on its port, and nothing will."""
    if conduct == "dead":
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            yield f"http://127.0.0.1:{taken.getsockname()[1]}"
    else:
        receiver = Receiver(conduct)
        try:
            yield receiver.url
        finally:
            receiver.close()


class Sender:
    """Providers of the real SDK that export to an OTLP endpoint as an application's do: in batches.

    `timeout` is that of a request, `every` how often metrics are sent, in seconds.
    """

    def __init__(
        self,
        url: str,
        *,
        sampler: Sampler | None = None,
        timeout: float = 10.0,
        every: float = 60.0,
        around: Callable[[SpanProcessor], SpanProcessor] = lambda processor: processor,
    ) -> None:
        resource = Resource.create({"service.name": "refund-agent", "deployment.environment.name": "test"})
        spans = BatchSpanProcessor(OTLPSpanExporter(f"{url}/v1/traces", timeout=timeout))
        self.tracers = TracerProvider(sampler, resource, shutdown_on_exit=False)
        self.tracers.add_span_processor(around(spans))
        metrics = OTLPMetricExporter(f"{url}/v1/metrics", timeout=timeout)
        reader = PeriodicExportingMetricReader(metrics, export_interval_millis=every * 1e3)
        self.meters = MeterProvider([reader], resource, shutdown_on_exit=False)
        records = BatchLogRecordProcessor(OTLPLogExporter(f"{url}/v1/logs", timeout=timeout))
        self.loggers = LoggerProvider(resource, shutdown_on_exit=False)
        self.loggers.add_log_record_processor(records)

    @property
    def providers(self) -> dict[str, Any]:
        """What a guard takes."""
        return {"tracer_provider": self.tracers, "meter_provider": self.meters, "logger_provider": self.loggers}

    def flush(self) -> None:
        """Send all that waits."""
        for provider in (self.tracers, self.loggers, self.meters):
            provider.force_flush()

    def close(self) -> None:
        for provider in (self.tracers, self.loggers, self.meters):
            provider.shutdown()
