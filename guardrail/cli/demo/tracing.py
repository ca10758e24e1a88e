"""A trace in a file: one span a line, through the OpenTelemetry SDK and without a collector."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import ReadableSpan, TracerProvider


@contextmanager
def traced(file: Path) -> Generator[TracerProvider]:
    """A provider whose spans are written to `file` as they end, whatever the environment says of sampling."""
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import ConsoleSpanExporter, SimpleSpanProcessor
    from opentelemetry.sdk.trace.sampling import ALWAYS_ON

    with file.open("w", encoding="utf-8") as stream:
        resource = Resource({"service.name": "guardrail-demo"})
        provider = TracerProvider(sampler=ALWAYS_ON, resource=resource, shutdown_on_exit=False)
        provider.add_span_processor(SimpleSpanProcessor(ConsoleSpanExporter(out=stream, formatter=_line)))
        yield provider
        provider.shutdown()


def _line(span: ReadableSpan) -> str:
    return f"{span.to_json(indent=None)}\n"
