"""A guarded tool that costs nothing, in an open run, with and without an SDK of OpenTelemetry."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from guardrail import Configuration, Guard

Lookup = Callable[..., dict[str, object]]


def lookup_order(order_id: int) -> dict[str, object]:
    """A read that costs nothing."""
    return {"id": order_id, "status": "paid"}


def tools(count: int) -> dict[str, Any]:
    """So many declared tools, `lookup_order` among them."""
    return {"lookup_order": {"effect": "read"}, **{f"tool_{n}": {"effect": "read"} for n in range(count - 1)}}


def sdk(sampler: Any = None, around: Callable[[Any], Any] = lambda batch: batch) -> dict[str, Any]:
    """Providers with a batch processor, or what is around it, whose exporter throws everything away."""
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.metrics.export import InMemoryMetricReader
    from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult

    class Nowhere(SpanExporter):
        def export(self, spans: object) -> SpanExportResult:
            return SpanExportResult.SUCCESS

    _ = ReadableSpan
    tracers = TracerProvider(sampler)
    tracers.add_span_processor(around(BatchSpanProcessor(Nowhere())))
    return {"tracer_provider": tracers, "meter_provider": MeterProvider([InMemoryMetricReader()])}


@contextmanager
def guarded(folder: Path, count: int = 1, **providers: Any) -> Generator[Lookup, None, None]:
    """The no-op read in an open run."""
    ledger = str(Path(tempfile.mkdtemp(dir=folder)) / "ledger.db")
    configuration = Configuration.model_validate({"ledger": ledger, "tools": tools(count)})
    with Guard(configuration, **providers) as guard, guard.run() as run:
        yield run.wrap(lookup_order)
