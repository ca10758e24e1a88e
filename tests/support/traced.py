"""The command line where OpenTelemetry is set up, as `opentelemetry-instrument` does: `python traced.py URL mcp ...`."""

from __future__ import annotations

import sys

from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor

from guardrail.cli.main import main

if __name__ == "__main__":
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(OTLPSpanExporter(endpoint=f"{sys.argv.pop(1)}/v1/traces")))
    trace.set_tracer_provider(provider)
    main()
