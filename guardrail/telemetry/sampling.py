"""Sampling that keeps flagged runs: two samplers and a span processor for the OpenTelemetry SDK.

A head sampler decides before a run has a verdict. Either the run is told again once it is flagged (`KeepSummary`), or
the spans that were not sampled are recorded (`KeepFlagged`) and wait until it is known (`TailKeeper`).
"""

from __future__ import annotations

import os
import threading
import weakref
from collections import OrderedDict, deque
from collections.abc import Mapping, Sequence
from typing import Final

from opentelemetry.context import Context
from opentelemetry.sdk.trace import ReadableSpan, Span, SpanProcessor
from opentelemetry.sdk.trace.sampling import Decision, Sampler, SamplingResult
from opentelemetry.trace import Link, SpanContext, SpanKind, TraceFlags, TraceState
from opentelemetry.util.types import AttributeValue

from guardrail import attributes as names

_SAMPLE: Final = Decision.RECORD_AND_SAMPLE

MOST_KEPT: Final = 1_000
"""How many traces are remembered as kept, for spans that end after their run."""


class KeepSummary(Sampler):
    """Samples what `base` samples, and the summary of every flagged run that `base` has dropped.

    The summary is one span that the library makes when such a run ends; nothing else costs more than with `base`.
    """

    def __init__(self, base: Sampler) -> None:
        self._base = base

    def should_sample(
        self,
        parent_context: Context | None,
        trace_id: int,
        name: str,
        kind: SpanKind | None = None,
        attributes: Mapping[str, AttributeValue] | None = None,
        links: Sequence[Link] | None = None,
        trace_state: TraceState | None = None,
    ) -> SamplingResult:
        """What `base` says, but for spans that are begun as flagged."""
        result = self._base.should_sample(parent_context, trace_id, name, kind, attributes, links, trace_state)
        if attributes is None or attributes.get(names.FLAGGED) is not True or result.decision is _SAMPLE:
            return result
        # With the attributes that the span is begun with: a result that drops it has none.
        return SamplingResult(_SAMPLE, attributes, result.trace_state)

    def get_description(self) -> str:
        """The sampler and its base."""
        return f"KeepSummary{{{self._base.get_description()}}}"


class KeepFlagged(Sampler):
    """Samples what `base` samples and records the rest, so that a `TailKeeper` can export the runs that are flagged."""

    def __init__(self, base: Sampler) -> None:
        self._base = base

    def should_sample(
        self,
        parent_context: Context | None,
        trace_id: int,
        name: str,
        kind: SpanKind | None = None,
        attributes: Mapping[str, AttributeValue] | None = None,
        links: Sequence[Link] | None = None,
        trace_state: TraceState | None = None,
    ) -> SamplingResult:
        """What `base` says; what it would drop is recorded."""
        result = self._base.should_sample(parent_context, trace_id, name, kind, attributes, links, trace_state)
        if result.decision is not Decision.DROP:
            return result
        return SamplingResult(Decision.RECORD_ONLY, attributes, result.trace_state)  # the attributes: as above

    def get_description(self) -> str:
        """The sampler and its base."""
        return f"KeepFlagged{{{self._base.get_description()}}}"


class TailKeeper(SpanProcessor):
    """Hands sampled spans on to `processor`, and the whole trace of an unsampled run once the run is flagged.

    Spans that were not sampled wait, in memory, until their run is flagged or the local root of their trace ends:
    at most `spans` of them, of which the trace that was idle longest gives way, and `of_trace` of one trace, of which
    the oldest give way. `dropped` counts those that gave way. What is handed on bears the sampled flag.
    """

    def __init__(self, processor: SpanProcessor, *, spans: int = 10_000, of_trace: int = 1_000) -> None:
        self.dropped = 0
        self._processor = processor
        self._most = spans
        self._most_of_trace = of_trace
        self._begin()
        if hasattr(os, "register_at_fork"):  # not on Windows
            begin = weakref.WeakMethod(self._begin)
            os.register_at_fork(after_in_child=lambda: (own := begin()) and own())

    def on_start(self, span: Span, parent_context: Context | None = None) -> None:
        """Tell the processor."""
        self._processor.on_start(span, parent_context)

    def on_end(self, span: ReadableSpan) -> None:
        """Hand the span on, keep it waiting, or hand on all that waited for it."""
        context = span.get_span_context()
        if context is None or context.trace_flags.sampled:
            self._processor.on_end(span)
            return
        with self._lock:
            due = self._due(span, context.trace_id)
        for kept in due:
            self._processor.on_end(_Kept(kept))

    def shutdown(self) -> None:
        """Shut the processor down; what waits is let go."""
        self._processor.shutdown()

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """Flush the processor; what waits goes on waiting."""
        return self._processor.force_flush(timeout_millis)

    def _begin(self) -> None:
        """Hold nothing. After a fork what waits belongs to the parent process, and its lock may be held there."""
        self._lock = threading.Lock()
        self._waiting: OrderedDict[int, deque[ReadableSpan]] = OrderedDict()
        self._count = 0
        self._kept: OrderedDict[int, None] = OrderedDict()

    def _due(self, span: ReadableSpan, trace: int) -> Sequence[ReadableSpan]:
        """What is to be handed on now that a span has ended."""
        flagged = (span.attributes or {}).get(names.FLAGGED) is True
        if trace in self._kept:
            return (span,)
        if flagged and any(link.context.trace_id in self._kept for link in span.links):
            return ()  # the summary of a run that is kept whole
        if flagged:
            self._keep(trace)
            return (*self._taken(trace), span)
        if span.parent is None or span.parent.is_remote:
            self._taken(trace)
        else:
            self._wait(span, trace)
        return ()

    def _wait(self, span: ReadableSpan, trace: int) -> None:
        waiting = self._waiting.setdefault(trace, deque())
        self._waiting.move_to_end(trace)
        waiting.append(span)
        self._count += 1
        if len(waiting) > self._most_of_trace:
            waiting.popleft()
            self._count -= 1
            self.dropped += 1
        while self._count > self._most:
            self.dropped += len(self._taken(next(iter(self._waiting))))

    def _taken(self, trace: int) -> Sequence[ReadableSpan]:
        taken = self._waiting.pop(trace, ())
        self._count -= len(taken)
        return taken

    def _keep(self, trace: int) -> None:
        self._kept[trace] = None
        if len(self._kept) > MOST_KEPT:
            self._kept.popitem(last=False)


class _Kept(ReadableSpan):
    """A copy of a span that was not sampled, with the sampled flag: processors and backends look at it."""

    def __init__(self, span: ReadableSpan) -> None:
        super().__init__(
            span.name,
            _sampled(span.get_span_context()),
            span.parent,
            span.resource,
            span.attributes,
            span.events,
            span.links,
            span.kind,
            status=span.status,
            start_time=span.start_time,
            end_time=span.end_time,
            instrumentation_scope=span.instrumentation_scope,
        )
        self._original = span

    @property
    def dropped_attributes(self) -> int:
        """As the span has counted them."""
        return self._original.dropped_attributes

    @property
    def dropped_events(self) -> int:
        """As the span has counted them."""
        return self._original.dropped_events

    @property
    def dropped_links(self) -> int:
        """As the span has counted them."""
        return self._original.dropped_links


def _sampled(context: SpanContext | None) -> SpanContext | None:
    if context is None:
        return None
    flags = TraceFlags(context.trace_flags | TraceFlags.SAMPLED)
    return SpanContext(context.trace_id, context.span_id, context.is_remote, flags, context.trace_state)
