"""Metrics of low cardinality: never a run's id, an argument, or a name that a model made up."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import Final

from opentelemetry import metrics
from opentelemetry.context import Context
from opentelemetry.metrics import Counter, Histogram, Meter, MeterProvider

from guardrail import attributes as names
from guardrail.calls import Effect, Outcome, VerdictKind

DISTINCT: Final = 100
"""How many names that nobody registered are told apart."""

TOOL_SECONDS: Final = tuple(0.01 * 2**power for power in range(14))
"""The buckets that the conventions give for operations: 0.01, 0.02, 0.04 ... 81.92 seconds."""


class Names:
    """Bounds a set of names: the registered ones, then the first hundred others; the rest are `_OTHER`.

    Tool names can come from a model, so without a bound they would be unbounded series.
    """

    def __init__(self, registered: Iterable[str] = ()) -> None:
        self._known = {name: name for name in registered}
        self._room = DISTINCT

    def __call__(self, name: str) -> str:
        """The name, or what stands for it."""
        return self._known.get(name) or self._admit(name)

    def _admit(self, name: str) -> str:
        if self._room <= 0 or not 0 < len(name) <= 100 or not name.isprintable():
            return names.OTHER
        self._room -= 1
        self._known[name] = name
        return name


class Metrics:
    """The library's instruments, made at first use by the given provider or the global one.

    A global provider that is set later is picked up: the API's stand-ins pass on to it.
    """

    def __init__(self, provider: MeterProvider | None, version: str) -> None:
        self._provider = provider
        self._version = version
        self._errors = Names()

    def call(self, tool: str, failure: str | None, seconds: float, context: Context | None) -> None:
        """A tool ran."""
        attributes = {names.TOOL_NAME: tool}
        if failure is not None:
            attributes[names.ERROR_TYPE] = self._errors(failure)
        self._durations.record(seconds, attributes, context)

    def decision(self, decision: str, tool: str, effect: Effect, outcome: Outcome) -> None:
        """The guard decided something else than to allow."""
        self._decisions.add(
            1,
            {
                names.DECISION: decision,
                names.TOOL_NAME: tool,
                names.CALL_EFFECT: effect,
                names.CALL_OUTCOME: outcome,
            },
        )

    def run(self, verdict: VerdictKind, task: str, stop: str | None) -> None:
        """A run ended; `stop` is why the guard stopped it, one word."""
        attributes = {names.VERDICT: verdict, names.TASK_NAME: task}
        if stop is not None:
            attributes[names.STOP_REASON] = stop
        self._runs.add(1, attributes)

    def verification(self, outcome: str, task: str, seconds: float) -> None:
        """The state was looked at and judged."""
        self._verifications.record(seconds, {names.VERIFICATION_OUTCOME: outcome, names.TASK_NAME: task})

    def telemetry_error(self, error: Exception) -> None:
        """Something in the user's telemetry raised."""
        self._telemetry_errors.add(1, {names.ERROR_TYPE: self._errors(type(error).__name__)})

    @cached_property
    def _meter(self) -> Meter:
        return metrics.get_meter(names.SCOPE, self._version, self._provider)

    @cached_property
    def _durations(self) -> Histogram:
        return self._meter.create_histogram(
            names.TOOL_DURATION,
            "s",
            "How long a tool ran.",
            explicit_bucket_boundaries_advisory=TOOL_SECONDS,
        )

    @cached_property
    def _verifications(self) -> Histogram:
        return self._meter.create_histogram(
            names.VERIFICATION_DURATION,
            "s",
            "How long it took to verify the state after a run, settling included.",
            explicit_bucket_boundaries_advisory=TOOL_SECONDS,
        )

    @cached_property
    def _decisions(self) -> Counter:
        return self._meter.create_counter(names.DECISIONS, "{decision}", "Decisions of the guard other than to allow.")

    @cached_property
    def _runs(self) -> Counter:
        return self._meter.create_counter(names.RUNS, "{run}", "Runs by verdict.")

    @cached_property
    def _telemetry_errors(self) -> Counter:
        return self._meter.create_counter(
            names.TELEMETRY_ERRORS, "{error}", "Errors raised by the configured telemetry and kept from the run."
        )
