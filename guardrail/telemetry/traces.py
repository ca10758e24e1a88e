"""Traces of runs and their calls, through the OpenTelemetry API only.

A run is one span `invoke_agent {task}`, a guarded call one span `execute_tool {tool}` below it, refused
calls included. Where the framework has opened such a span itself, that one is enriched. A flagged run whose span
was not sampled is told once more, as a trace of one span with a link to the run. Parents are given explicitly, so
that a call in a thread without context still belongs to its run; a span is current only between `attach` and
`detach`, which the caller puts around code without a yield.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Mapping
from functools import cached_property
from importlib.metadata import PackageNotFoundError, version
from typing import Final, Literal, TypeAlias

from opentelemetry import context as contexts
from opentelemetry import trace
from opentelemetry._logs import LoggerProvider
from opentelemetry.context import Context
from opentelemetry.metrics import MeterProvider
from opentelemetry.trace import INVALID_SPAN, Link, NoOpTracer, Span, SpanKind, Tracer, TracerProvider

from guardrail import attributes as names
from guardrail.calls import Action, Effect, Outcome, Verdict
from guardrail.telemetry import events
from guardrail.telemetry.events import Events
from guardrail.telemetry.logs import Log, get_logger
from guardrail.telemetry.looks import Looker, VerifyTrace
from guardrail.telemetry.metrics import Metrics, Names
from guardrail.telemetry.net import Net
from guardrail.telemetry.spans import Outlets, Value, begun, detach, error_type, finish, given, joins, short

Decision: TypeAlias = Literal["allow", "hold", "stop", "refuse"]
"""What the guard did about a call: `refuse` is a call that was not let through on a held or stopped run."""

_RUN: Final = contexts.create_key("guardrail-run")
"""Marks contexts that stem from a run's, so that a span that is current in one is known to be the run's offspring."""


class Telemetry:
    """Where a guard's spans, metrics and events go.

    Providers that are not given are the global ones, looked up late, so one that is set after the guard was made is
    picked up; none is ever set or flushed. Whatever they raise is kept from the run, counted in `errors`, and
    reported once. `content` lets redacted arguments and results into spans; so does the environment variable
    OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT with SPAN_ONLY or SPAN_AND_EVENT. `tools` and `tasks` are the
    names that are declared: of others, only the first hundred become names of spans and series.
    """

    def __init__(
        self,
        *,
        tracer_provider: TracerProvider | None = None,
        meter_provider: MeterProvider | None = None,
        logger_provider: LoggerProvider | None = None,
        content: bool = False,
        tools: Iterable[str] = (),
        tasks: Iterable[str] = (),
        environ: Mapping[str, str] = os.environ,
    ) -> None:
        self._providers = (tracer_provider, meter_provider, logger_provider)
        self._content = content or environ.get(names.CAPTURE_CONTENT, "").upper() in ("SPAN_ONLY", "SPAN_AND_EVENT")
        self._tools = Names(tools)
        self._tasks = Names(tasks)

    @property
    def errors(self) -> int:
        """How many errors of the telemetry were kept from runs so far."""
        return self._outlets.net.caught

    def open_run(
        self,
        run_id: str,
        task: str | None,
        policy: str,
        mode: str,
        attributes: Mapping[str, object] | None = None,
    ) -> RunTrace:
        """Begin a run's span; `attributes` are the user's own (`gen_ai.conversation.id`, a tenant), at most 32."""
        return RunTrace(self._outlets, run_id, task or "", policy, mode, attributes or {})

    @cached_property
    def _outlets(self) -> Outlets:
        tracer, meter, logger = self._providers
        release = _release()
        metrics = Metrics(meter, release)
        net = Net(metrics.telemetry_error, _warn)
        made: Tracer = NoOpTracer()
        with net:
            made = trace.get_tracer(names.SCOPE, release, tracer)
        return Outlets(net, made, metrics, Events(logger, release), self._tools, self._tasks, self._content)


class RunTrace(Looker):
    """The span of a run, and all that is told below it."""

    __slots__ = ("_given", "_joined", "_open", "_opened", "_span", "_start", "_stopped", "_task", "log", "run_id")

    run_id: str
    log: Log
    """The library's log, with the run's id bound."""

    def __init__(
        self, out: Outlets, run_id: str, task: str, policy: str, mode: str, attributes: Mapping[str, object]
    ) -> None:
        super().__init__(out, short(run_id), Context())
        self.run_id = run_id
        self.log = get_logger(run_id=run_id)
        self._task = task
        self._open = True
        self._opened = time.time_ns()
        self._joined = False
        self._stopped = False
        self._span: Span = INVALID_SPAN
        self._given: dict[str, Value] = {}
        self._start: dict[str, Value] = {
            names.OPERATION: names.INVOKE_AGENT,
            names.AGENT_NAME: short(task),
            names.RUN_ID: self._run_id,
            names.TASK_NAME: short(task),
            names.POLICY_NAME: short(policy),
            names.MODE: short(mode),
        }
        with out.net:
            self._begin(attributes)

    def _begin(self, attributes: Mapping[str, object]) -> None:
        here = contexts.get_current()
        current = trace.get_current_span(here)
        self._given = given(attributes)
        self._joined = joins(current, names.INVOKE_AGENT, names.RUN_ID)
        if self._joined:
            self._span = current
            # The framework's name for its agent stays.
            del self._start[names.AGENT_NAME]
            current.set_attributes({**self._given, **self._start})
        else:
            name = f"{names.INVOKE_AGENT} {self._out.tasks(self._task)}" if self._task else names.INVOKE_AGENT
            self._span = begun(self._out.tracer, name, here, {**self._given, **self._start})
        self._context = contexts.set_value(_RUN, self._run_id, trace.set_span_in_context(self._span, here))
        self.log = get_logger(run_id=self.run_id, **_ids(self._span))

    @property
    def trace_id(self) -> str:
        """The trace's id in hexadecimal, "" where nothing traces."""
        with self._out.net:
            return _ids(self._span).get("trace_id", "")
        return ""

    @property
    def content(self) -> bool:
        """Whether redacted arguments and results may be told."""
        return self._out.content

    def open_call(
        self, tool: str, effect: Effect, number: int, call_id: str | None = None, arguments: str | None = None
    ) -> CallTrace:
        """Begin a call's span; `arguments` are the redacted ones as JSON text, taken before the call."""
        return CallTrace(self, self._out, tool, effect, number, call_id, arguments)

    def base(self, here: Context) -> Context:
        """The context whose span is a call's parent: the current one if it stems from the run's, else the run's."""
        return here if here.get(_RUN) == self._run_id else self._context

    def adopt(self, host: Context) -> Context:
        """The host's context as one of the run's, for a call that the host has traced: its span goes below the host's."""
        with self._out.net:
            if trace.get_current_span(host).get_span_context().is_valid:
                return contexts.set_value(_RUN, self._run_id, host)
        return self._context

    def is_its_span(self, span: Span) -> bool:
        """Whether this is the run's own span."""
        return span is self._span

    def decided(self, outcome: Outcome, action: Action) -> Decision:
        """A call's decision in one word: the first stop ends the run, what comes after it is refused."""
        if outcome == "refused" and (self._stopped or action != "stop"):
            return "refuse"
        self._stopped = self._stopped or action == "stop"
        return action

    def event(self, name: str, attributes: Mapping[str, object] | None = None) -> None:
        """Tell of something that happened to the run: a hold resolved, a turn of the user, an abandonment."""
        told = {**given(attributes or {}), names.RUN_ID: self._run_id}
        with self._out.net:
            self._span.add_event(name, told)
        with self._out.net:
            self._out.events.emit(name, self._context, told)

    def open_verify(self) -> VerifyTrace:
        """Begin the verification's span."""
        return VerifyTrace(self._out, self._run_id, self._task, self._context)

    def close(
        self,
        verdict: Verdict,
        *,
        calls: int = 0,
        writing: int = 0,
        refused: int = 0,
        agent_error: BaseException | None = None,
    ) -> None:
        """End the run's span with its verdict, and tell the verdict as an event and a metric, sampled or not."""
        if not self._open:
            return
        self._open = False
        flagged = verdict.kind in ("silent_failure", "stopped")
        failure = _run_failure(verdict, agent_error)
        end: dict[str, Value] = {
            names.CALLS: calls,
            names.CALLS_WRITING: writing,
            names.CALLS_REFUSED: refused,
            **_of_verdict(verdict),
            names.FLAGGED: flagged,
        }
        phrase = _ENDED.get(verdict.kind, "")
        with self._out.net:
            if self._span.is_recording():
                finish(self._span, self._start, dict(end), failure, phrase)
        with self._out.net:
            if not self._joined:
                self._span.end()
        summary: Context | None = None
        with self._out.net:
            if flagged and _was_lost(self._span):
                summary = self._summarised(f"{names.SCOPE}.{verdict.kind}", end, failure, phrase)
        self._tell(verdict, flagged, phrase, summary)

    def _tell(self, verdict: Verdict, flagged: bool, phrase: str, summary: Context | None) -> None:
        """Tell the verdict as an event, of the run's span or of its summary's, and as a metric."""
        label = _LABELS[verdict.kind]
        told: dict[str, Value] = {
            names.TASK_NAME: short(self._task),
            **_of_verdict(verdict),
            names.FLAGGED: flagged,
        }
        if phrase:
            told[names.EVALUATION_EXPLANATION] = phrase
        severity = events.ERROR if flagged else events.INFO if label == "pass" else events.WARN
        self._evaluated(names.RUN_EVALUATION, label, told, severity, summary)
        with self._out.net:
            reason = short(verdict.stop.reason) if verdict.stop is not None else None
            self._out.metrics.run(verdict.kind, self._out.tasks(self._task) if self._task else "", reason)

    def _summarised(self, name: str, end: Mapping[str, Value], failure: str | None, phrase: str) -> Context | None:
        """Tell a flagged run that was not sampled as a trace of its own: one span, as long as the run, linked to it.

        It is begun as flagged, so that a sampler can know it. Returns its context if it was sampled, for then the
        verdict is better told of it than of a span that nobody has.
        """
        start = {**self._given, **self._start, **end}
        del start[names.OPERATION]  # it is no run, and must not be counted as one
        start[names.AGENT_NAME] = short(self._task)
        span = self._out.tracer.start_span(
            f"{name} {self._out.tasks(self._task)}" if self._task else name,
            Context(),
            SpanKind.INTERNAL,
            start,
            [Link(self._span.get_span_context())],
            self._opened,
        )
        finish(span, {}, {}, failure, phrase)
        span.end()
        return trace.set_span_in_context(span, Context()) if span.get_span_context().trace_flags.sampled else None


class CallTrace:
    """The span of one guarded call."""

    __slots__ = ("_base", "_effect", "_entered", "_joined", "_open", "_out", "_run", "_span", "_start", "_tool")

    def __init__(
        self,
        run: RunTrace,
        out: Outlets,
        tool: str,
        effect: Effect,
        number: int,
        call_id: str | None,
        arguments: str | None,
    ) -> None:
        self._run = run
        self._out = out
        self._effect: Effect = effect
        self._tool = out.tools(tool)
        self._span: Span = INVALID_SPAN
        self._base: Context | None = None
        self._entered: Context | None = None
        self._joined = False
        self._open = True
        self._start: dict[str, Value] = {
            names.OPERATION: names.EXECUTE_TOOL,
            names.TOOL_NAME: tool if tool == self._tool else short(tool),
            names.TOOL_TYPE: "function",
            names.RUN_ID: short(run.run_id),
            names.CALL_NUMBER: number,
            names.CALL_EFFECT: effect,
        }
        if call_id:
            self._start[names.TOOL_CALL_ID] = short(call_id)
        if arguments and out.content:
            self._start[names.TOOL_CALL_ARGUMENTS] = arguments
        with out.net:
            self._begin(tool)

    def _begin(self, tool: str) -> None:
        here = contexts.get_current()
        current = trace.get_current_span(here)
        self._base = self._run.base(here)
        self._joined = not self._run.is_its_span(current) and joins(
            current, names.EXECUTE_TOOL, names.CALL_NUMBER, tool
        )
        if self._joined:
            self._span = current
            current.set_attributes(self._start)
        else:
            name = f"{names.EXECUTE_TOOL} {self._tool}"
            self._span = begun(self._out.tracer, name, self._base, self._start)

    def attach(self) -> object:
        """Make the call's span current, around code of the tool without a yield; the token undoes that."""
        with self._out.net:
            if not self._joined and self._span.get_span_context().is_valid:
                if self._entered is None:
                    self._entered = trace.set_span_in_context(self._span, self._base)
                return contexts.attach(self._entered)
        return None

    def detach(self, token: object) -> None:
        """Make current what was before."""
        if token is not None:
            with self._out.net:
                detach(token, self._entered)

    def close(
        self,
        outcome: Outcome,
        action: Action,
        *,
        executed: bool,
        sign: str = "",
        error: BaseException | None = None,
        seconds: float = 0.0,
        result: str | None = None,
    ) -> None:
        """End the call's span with what the call came to; of `error`, only the class is told.

        `seconds` is how long the tool ran, `result` its redacted result as JSON text.
        """
        if not self._open:
            return
        self._open = False
        decision = self._run.decided(outcome, action)
        failure = _call_failure(outcome, action, error)
        with self._out.net:
            if self._span.is_recording():
                self._fill(outcome, decision, executed, sign, failure, result)
        with self._out.net:
            if executed and not self._joined:
                self._out.metrics.call(self._tool, failure, seconds, self._entered or self._base)
        if decision != "allow":
            self._tell(outcome, decision, sign)
        with self._out.net:
            if not self._joined:
                self._span.end()

    def _fill(
        self,
        outcome: Outcome,
        decision: Decision,
        executed: bool,
        sign: str,
        failure: str | None,
        result: str | None,
    ) -> None:
        end: dict[str, Value] = {
            names.CALL_OUTCOME: outcome,
            names.DECISION: decision,
            names.CALL_EXECUTED: executed,
        }
        if sign:
            end[names.CALL_SIGN] = short(sign)
        if result and self._out.content:
            # The conventions want an object.
            end[names.TOOL_CALL_RESULT] = result if result.startswith("{") else f'{{"result": {result}}}'
        finish(self._span, self._start, end, failure, _CAME_TO.get(outcome, ""))

    def _tell(self, outcome: Outcome, decision: Decision, sign: str) -> None:
        """Tell a decision other than to allow: on the span, as a log event, and as a metric."""
        told: dict[str, Value] = {
            names.DECISION: decision,
            names.CALL_OUTCOME: outcome,
            names.CALL_SIGN: short(sign),
            names.CALL_EFFECT: self._effect,
            names.CALL_NUMBER: self._start[names.CALL_NUMBER],
            names.TOOL_NAME: self._start[names.TOOL_NAME],
            names.RUN_ID: self._start[names.RUN_ID],
        }
        with self._out.net:
            self._span.add_event(names.DECIDED, told)
        with self._out.net:
            context = trace.set_span_in_context(self._span, self._base)
            self._out.events.emit(names.DECIDED, context, told, events.WARN)
        with self._out.net:
            self._out.metrics.decision(decision, self._tool, self._effect, outcome)


# Fixed phrases: a status never carries data.
_CAME_TO: Mapping[Outcome, str] = {
    "empty": "nothing was found",
    "incomplete": "the answer is incomplete",
    "partial": "some items failed",
    "rejected": "the tool said no",
    "error": "the call failed",
    "in_doubt": "the write may have happened",
    "cancelled": "the call was cancelled",
    "precondition_failed": "a precondition does not hold",
    "refused": "the guard refused the call",
}
_ENDED = {
    "stopped": "the guard stopped the run",
    "agent_error": "the agent raised an error",
    "silent_failure": "the run ended cleanly and left the wrong state",
}
_LABELS = {
    "verified": "pass",
    "unverified": "unverified",
    "stopped": "fail",
    "agent_error": "fail",
    "silent_failure": "fail",
}


def _call_failure(outcome: Outcome, action: Action, error: BaseException | None) -> str | None:
    """The `error.type` of a call, whether its failure was raised or returned."""
    if outcome == "ok" or (outcome in ("empty", "incomplete") and action == "allow"):
        return None
    if error is not None:
        return error_type(error)
    return names.TOOL_ERROR if outcome == "error" else f"guardrail.{outcome}"


def _run_failure(verdict: Verdict, agent_error: BaseException | None) -> str | None:
    if verdict.kind == "agent_error" and agent_error is not None:
        return error_type(agent_error)
    return f"guardrail.{verdict.kind}" if verdict.kind in _ENDED else None


def _of_verdict(verdict: Verdict) -> dict[str, Value]:
    """What a verdict says, without values of the state."""
    said: dict[str, Value] = {
        names.VERDICT: verdict.kind,
        names.FINDINGS: sum(not finding.warning for finding in verdict.findings),
        names.OPEN_HOLDS: verdict.open_holds,
    }
    if verdict.alternative is not None:
        said[names.ALTERNATIVE] = short(verdict.alternative)
    if verdict.stop is not None:
        said[names.STOP_REASON] = short(verdict.stop.reason)
        said[names.STOP_CALL] = verdict.stop.call
    return said


def _was_lost(span: Span) -> bool:
    """Whether a span exists and was not sampled."""
    context = span.get_span_context()
    return context.is_valid and not context.trace_flags.sampled


def _ids(span: Span) -> dict[str, str]:
    context = span.get_span_context()
    if not context.is_valid:
        return {}
    return {"trace_id": trace.format_trace_id(context.trace_id), "span_id": trace.format_span_id(context.span_id)}


def _release() -> str:
    try:
        return version("guardrail-runtime")
    except PackageNotFoundError:
        return ""


def _warn(error: Exception) -> None:
    get_logger().warning(
        "guardrail.telemetry_failed",
        error=type(error).__name__,
        advice="a span processor, sampler, reader or exporter raised; runs go on, later failures are only counted",
    )
