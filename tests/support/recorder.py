"""Telemetry that records in memory, and what came out of it as plain values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import InMemoryLogRecordExporter, SimpleLogRecordProcessor
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import Sampler

from guardrail.telemetry.traces import Telemetry


class Recorder:
    """A telemetry and everything that came out of it."""

    def __init__(self, *, processor: SpanProcessor | None = None, sampler: Sampler | None = None, **options: Any):
        self._spans = InMemorySpanExporter()
        self._logs = InMemoryLogRecordExporter()  # type: ignore[no-untyped-call]
        self._reader = InMemoryMetricReader()
        self.tracers = TracerProvider(sampler=sampler, shutdown_on_exit=False)
        self.tracers.add_span_processor(SimpleSpanProcessor(self._spans))
        if processor is not None:
            self.tracers.add_span_processor(processor)
        self.meters = MeterProvider(metric_readers=[self._reader], shutdown_on_exit=False)
        self.loggers = LoggerProvider(shutdown_on_exit=False)
        self.loggers.add_log_record_processor(SimpleLogRecordProcessor(self._logs))
        providers: dict[str, Any] = {
            "tracer_provider": self.tracers,
            "meter_provider": self.meters,
            "logger_provider": self.loggers,
            "environ": {},
        }
        self.telemetry = Telemetry(**{**providers, **options})

    @property
    def spans(self) -> list[ReadableSpan]:
        """The ended spans, by start."""
        return sorted(self._spans.get_finished_spans(), key=lambda span: span.start_time or 0)

    def span(self, name: str) -> ReadableSpan:
        """The one ended span of a name."""
        [span] = [span for span in self.spans if span.name == name]
        return span

    def attributes(self, name: str) -> Mapping[str, Any]:
        """The attributes of the one ended span of a name."""
        return self.span(name).attributes or {}

    def parent(self, name: str) -> str | None:
        """The name of the parent of the one ended span of a name."""
        parent = self.span(name).parent
        if parent is None:
            return None
        names = {span.context.span_id: span.name for span in self.spans if span.context}
        return names.get(parent.span_id, "not ended")

    def tree(self) -> list[Any]:
        """The whole trace: each span as what a reader of it would see, with its children."""
        return [self._node(span) for span in self.spans if span.parent is None]

    def _node(self, span: ReadableSpan) -> dict[str, Any]:
        assert span.context is not None
        children = [other for other in self.spans if other.parent and other.parent.span_id == span.context.span_id]
        shown: dict[str, Any] = {"name": span.name, "kind": span.kind.name, "attributes": dict(span.attributes or {})}
        if not span.status.is_unset:
            shown["status"] = f"{span.status.status_code.name}: {span.status.description}"
        if span.events:
            shown["events"] = {event.name: dict(event.attributes or {}) for event in span.events}
        if children:
            shown["children"] = [self._node(child) for child in children]
        return shown

    @property
    def events(self) -> list[dict[str, Any]]:
        """The log events in order: their names, severities and attributes."""
        return [
            {
                "event": log.log_record.event_name,
                "severity": log.log_record.severity_text,
                **(log.log_record.attributes or {}),
            }
            for log in self._logs.get_finished_logs()
        ]

    def event_spans(self) -> list[int]:
        """The span ids that the log events are correlated with."""
        return [log.log_record.span_id or 0 for log in self._logs.get_finished_logs()]

    def points(self, metric: str) -> list[Any]:
        """The data points of a metric."""
        data = self._reader.get_metrics_data()
        if data is None:
            return []
        return [
            point
            for resource in data.resource_metrics
            for scope in resource.scope_metrics
            for found in scope.metrics
            if found.name == metric
            for point in found.data.data_points
        ]

    def series(self, metric: str) -> list[dict[str, Any]]:
        """The attributes of a metric's data points."""
        return [dict(point.attributes) for point in self.points(metric)]

    def everything(self) -> str:
        """All that left, as one text, to look for what must not."""
        spans = "".join(span.to_json() for span in self.spans)
        return spans + repr(self.events) + repr([point.attributes for point in self.points("guardrail.decisions")])
