"""Evaluations where users of Phoenix and MLflow look for them: log exporters that turn events into annotations.

Neither backend reads the events `gen_ai.evaluation.result`. Behind a `BatchLogRecordProcessor` these exporters post
them over the backend's HTTP API, in the background and best effort: never in the path of a run.
"""

from __future__ import annotations

import threading
import time
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from math import isfinite
from ssl import SSLContext
from typing import Final

import httpx
from opentelemetry.sdk._logs import ReadableLogRecord
from opentelemetry.sdk._logs.export import LogRecordExporter, LogRecordExportResult
from opentelemetry.trace import TraceFlags, format_span_id, format_trace_id

from guardrail import attributes as names
from guardrail.telemetry.logs import get_logger
from guardrail.telemetry.secrecy import sound

PAUSES: Final = (0.0, 0.5, 1.0, 2.0, 4.0, 6.0)
"""Seconds before each try: time enough for a batch of spans to arrive, without which an evaluation has no place."""

_BUSY: Final = frozenset({429, 502, 503, 504})
_LATER: Final = frozenset({404, 408, 425, 500})
"""Statuses after which another try makes sense; 404: the span is not there yet."""


@dataclass(frozen=True, slots=True)
class Evaluation:
    """What was evaluated, and how it came out: ids in hexadecimal, `score` None where there is none.

    `label` is the verdict of a run, else `pass`, `fail`, `warning`, `error`; `told` is when it was told, in nanoseconds
    since the epoch; `details` are the library's own attributes of the event.
    """

    trace_id: str
    span_id: str
    name: str
    label: str
    score: float | None
    explanation: str
    told: int
    details: Mapping[str, str]

    @property
    def time(self) -> str:
        """When it was told, as ISO 8601."""
        return datetime.fromtimestamp(self.told / 1e9, UTC).isoformat()


@dataclass(frozen=True, slots=True)
class Post:
    """A request to the backend: where to, with what, and with how many evaluations."""

    path: str
    body: object
    count: int


class Evaluations(LogRecordExporter):
    """Posts evaluations to a backend; what it cannot deliver in a few tries is dropped, and counted in `dropped`.

    `url` is where the backend is, `headers` go with every request (an `Authorization`), `timeout` is that of one
    request and `patience` that of a batch, in seconds. Evaluations of runs that were not sampled are left out, unless
    they are flagged: a `TailKeeper` may have kept those.
    """

    def __init__(
        self, url: str, *, headers: Mapping[str, str] | None = None, timeout: float = 5.0, patience: float = 15.0
    ) -> None:
        self.dropped = 0
        self._url = url
        self._headers = dict(headers or {})
        self._timeout = timeout
        self._patience = patience
        self._closed = threading.Event()

    def export(self, batch: Sequence[ReadableLogRecord]) -> LogRecordExportResult:
        """Deliver the evaluations among the records; never raises."""
        wanted = list(_wanted(batch))
        try:
            lost, why = self._delivered(list(self._posts(wanted)))
        except Exception as error:  # noqa: BLE001 - whatever goes wrong, evaluations are lost and nothing else
            lost, why = len(wanted), type(error).__name__
        if not lost:
            return LogRecordExportResult.SUCCESS
        if not self.dropped:
            get_logger().warning(
                "guardrail.evaluations_dropped",
                exporter=type(self).__name__,
                why=why,
                advice="the backend did not take evaluations; later ones are tried, and only counted when dropped",
            )
        self.dropped += lost
        return LogRecordExportResult.FAILURE

    def shutdown(self) -> None:
        """Try no more."""
        self._closed.set()

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """True: nothing waits here between two batches."""
        return True

    @abstractmethod
    def _posts(self, evaluations: Sequence[Evaluation]) -> Iterable[Post]:
        """The requests that tell the backend."""

    def _delivered(self, posts: Sequence[Post]) -> tuple[int, str]:
        """Post all, those that fail again after a while; how many evaluations were lost, and why the last one was."""
        end = time.monotonic() + self._patience
        lost, why = 0, ""
        # A client for each batch: one that is kept would share its connections with the children of a fork.
        with httpx.Client(base_url=self._url, headers=self._headers, verify=_tls()) as client:
            for pause in PAUSES:
                if not posts or self._closed.wait(pause) or time.monotonic() >= end:
                    break
                failed = list(self._failed(client, posts, end))
                lost += sum(post.count for post, _, again in failed if not again)
                why = failed[-1][1] if failed else why
                posts = [post for post, _, again in failed if again]
        return lost + sum(post.count for post in posts), why

    def _failed(self, client: httpx.Client, posts: Sequence[Post], end: float) -> Iterator[tuple[Post, str, bool]]:
        """Post each; yield those that were not taken, why, and whether to try again."""
        unheard = ""
        for post in posts:
            if unheard:
                # Where nobody answers, or all are sent away, the rest would only wait as long.
                yield post, unheard, True
                continue
            wait = max(min(self._timeout, end - time.monotonic()), 0.1)
            try:
                status = client.post(post.path, json=post.body, timeout=wait).status_code
            except httpx.TransportError as error:
                unheard = type(error).__name__
                yield post, unheard, True
                continue
            except Exception as error:  # noqa: BLE001 - a URL that is none, say: no other try would help
                yield post, type(error).__name__, False
                continue
            if status in _BUSY:
                unheard = f"status {status}"
            if status >= 300:
                yield post, f"status {status}", status in _BUSY or status in _LATER


class PhoenixEvaluations(Evaluations):
    """Posts evaluations to Phoenix as annotations of their spans, the verdict of a run also as one of its trace.

    Phoenix shows a score instead of the label where there is one: only that of a trace has it, whose mean is the share
    of good runs.
    """

    def _posts(self, evaluations: Sequence[Evaluation]) -> Iterator[Post]:
        of_spans: dict[str, list[object]] = {}
        for one in evaluations:
            # Findings of one name on one span are told apart by when they were told: they are annotations of their own.
            told = {"span_id": one.span_id, **_annotation(one, str(one.told), None)}
            of_spans.setdefault(one.span_id, []).append(told)
        for data in of_spans.values():
            yield Post("v1/span_annotations?sync=true", {"data": data}, len(data))
        for one in evaluations:
            if one.name == names.RUN_EVALUATION:
                told = {"trace_id": one.trace_id, **_annotation(one, one.span_id, one.score)}
                yield Post("v1/trace_annotations?sync=true", {"data": [told]}, 1)


class MlflowEvaluations(Evaluations):
    """Posts evaluations to MLflow as assessments (feedback) of their traces."""

    def _posts(self, evaluations: Sequence[Evaluation]) -> Iterator[Post]:
        for one in evaluations:
            assessment = {
                "assessment_name": one.name,
                "trace_id": f"tr-{one.trace_id}",
                "span_id": one.span_id,
                "source": {"source_type": "CODE", "source_id": names.SCOPE},
                "create_time": one.time,
                "last_update_time": one.time,
                "feedback": {"value": one.label},
                "rationale": one.explanation,
                "metadata": one.details,
            }
            yield Post(f"api/3.0/mlflow/traces/tr-{one.trace_id}/assessments", {"assessment": assessment}, 1)


@cache
def _tls() -> SSLContext:
    """What takes tens of milliseconds to make."""
    return httpx.create_ssl_context()


def _annotation(one: Evaluation, identifier: str, score: float | None) -> dict[str, object]:
    result = {"label": one.label, "score": score, "explanation": one.explanation or None}
    return {
        "name": one.name,
        "annotator_kind": "CODE",
        "result": result,
        "identifier": identifier,
        "metadata": one.details,
    }


def _wanted(batch: Sequence[ReadableLogRecord]) -> Iterator[Evaluation]:
    """The evaluations of traces that the backend can have."""
    flagged = {one.log_record.trace_id for one in batch if (one.log_record.attributes or {}).get(names.FLAGGED) is True}
    for one in batch:
        record = one.log_record
        if record.event_name != names.EVALUATION_RESULT or not record.trace_id or not record.span_id:
            continue
        if (record.trace_flags or 0) & TraceFlags.SAMPLED or record.trace_id in flagged:
            yield _evaluation(record.trace_id, record.span_id, record.timestamp or 0, record.attributes or {})


def _evaluation(trace: int, span: int, nanoseconds: int, told: Mapping[str, object]) -> Evaluation:
    score = told.get(names.EVALUATION_SCORE)
    texts = {name: sound(str(value)) for name, value in told.items()}
    return Evaluation(
        format_trace_id(trace),
        format_span_id(span),
        texts.get(names.EVALUATION_NAME, ""),
        texts.get(names.VERDICT, texts.get(names.EVALUATION_LABEL, "")),
        score if isinstance(score, float) and isfinite(score) else None,
        texts.get(names.EVALUATION_EXPLANATION, ""),
        nanoseconds,
        {name: text for name, text in texts.items() if name.startswith(f"{names.SCOPE}.")},
    )
