"""Plays the refunds example with an application's telemetry: spans, events and metrics, exported in batches."""

from __future__ import annotations

import sys
from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import BatchLogRecordProcessor
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

from guardrail import Guard, RunStopped
from guardrail.telemetry.evaluations import Evaluations

REFUNDS = Path(__file__).parents[1] / "refunds"
sys.path.insert(0, str(REFUNDS))

from agent import answer  # noqa: E402 - it lies in the folder of the example
from model import STORIES, scripted  # noqa: E402
from shop import Shop  # noqa: E402

PROJECT = "refunds"


@dataclass(frozen=True, slots=True)
class Played:
    """A run that was played: what every backend must show of it. `tools` are those called, in order."""

    story: str
    run: str
    trace: str
    tools: tuple[str, ...]
    verdict: str
    findings: int


@dataclass(frozen=True, slots=True)
class Target:
    """A backend to send to: the URL of its OTLP endpoint for traces, headers that it wants, and its evaluations."""

    traces: str
    headers: Mapping[str, str]
    evaluations: Evaluations


@contextmanager
def telemetry(targets: Iterable[Target]) -> Generator[dict[str, TracerProvider | LoggerProvider]]:
    """An application's providers, for every target; what waits is sent when they are left."""
    resource = Resource.create({"service.name": "refund-agent", "openinference.project.name": PROJECT})
    tracers = TracerProvider(resource=resource, shutdown_on_exit=False)
    loggers = LoggerProvider(resource, shutdown_on_exit=False)
    for target in targets:
        tracers.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(target.traces, headers=dict(target.headers))))
        loggers.add_log_record_processor(BatchLogRecordProcessor(target.evaluations))
    yield {"tracer_provider": tracers, "logger_provider": loggers}
    tracers.shutdown()
    loggers.shutdown()


def play(folder: Path, targets: Iterable[Target]) -> list[Played]:
    """Play every story of the example, its shop and its ledger in `folder`; what was played."""
    configuration = folder / "guardrail.yaml"
    content = "content: {spans: true}  # here there is nothing to hide\n"
    configuration.write_text((REFUNDS / "guardrail.yaml").read_text("utf-8") + content, "utf-8")
    played: list[Played] = []
    with telemetry(targets) as providers:
        for name, story in STORIES.items():
            shop = Shop(folder / f"{name}.db")
            with Guard.load(configuration, stores={"shop": shop.path}, **providers) as guard:
                run = guard.run("refund_order", inputs=story["inputs"], attributes={"gen_ai.conversation.id": name})
                with suppress(RunStopped), run:
                    answer(story["request"], scripted(story), shop.tools, run)
                history = guard.ledger.load_run(run.id)
                assert history is not None
                assert run.verdict is not None
                played.append(
                    Played(
                        name,
                        run.id,
                        history.run.trace_id or "",
                        tuple(call.call.tool for call in history.calls),
                        run.verdict.kind,
                        len(run.verdict.findings),
                    )
                )
    return played
