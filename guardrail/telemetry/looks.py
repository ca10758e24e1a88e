"""Looks at the state as spans: pictures, checks, and the verification that they belong to."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from opentelemetry import context as contexts
from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.trace import INVALID_SPAN, Span, SpanKind

from guardrail import attributes as names
from guardrail.calls import Finding
from guardrail.pictures import Exchange
from guardrail.telemetry import events
from guardrail.telemetry.redaction import redact_text
from guardrail.telemetry.spans import Outlets, Value, begun, detach, finish, short

CheckOutcome: TypeAlias = Literal["pass", "fail", "error"]

_SYSTEMS = {"postgres": "postgresql"}
_TOLD = 50
"""How many findings of a run are told one by one."""


@dataclass(frozen=True, slots=True)
class _Look:
    """One question that was put to a store, or to a Python check, and what came of it."""

    name: str
    system: str
    summary: str
    text: str
    outcome: CheckOutcome | None
    table: str
    store: str
    rows: int | None
    started: int
    ended: int
    error: str
    exchange: Exchange | None

    @property
    def span_name(self) -> str:
        """What its span is called: by the path that was asked for, or the query, or as a check."""
        if self.exchange is not None:
            return short(redact_text(f"GET {self.exchange.template}"))
        return short(self.summary) if self.system else f"{names.CHECK} {short(self.name)}"

    @property
    def is_remote(self) -> bool:
        """Whether a store was asked."""
        return self.exchange is not None or bool(self.system)

    @property
    def failure(self) -> str | None:
        """The `error.type` of a question that could not be answered; None where it was."""
        if self.outcome != "error":
            return None
        told = self.exchange.error if self.exchange is not None else ""
        return self.error or told or "guardrail.check_error"


class Looker:
    """Whatever looks at the state: a run (the before-picture) and a verification."""

    __slots__ = ("_context", "_out", "_run_id")

    def __init__(self, out: Outlets, run_id: str, context: Context) -> None:
        self._out = out
        self._run_id = run_id
        self._context = context

    def attach(self) -> object:
        """Make the span of the run, or of its verification, current: for what the agent does, and for looks.

        The token undoes that. Put it around code without a yield. Where a run is held open across one, leave it out:
        calls find their run without it.
        """
        with self._out.net:
            if trace.get_current_span(self._context).get_span_context().is_valid:
                return contexts.attach(self._context)
        return None

    def detach(self, token: object) -> None:
        """Make current what was before; safe in another task or thread than the one that attached."""
        with self._out.net:
            detach(token, self._context)

    def check(
        self,
        name: str,
        system: str,
        summary: str,
        text: str,
        outcome: CheckOutcome | None,
        *,
        table: str = "",
        store: str = "",
        rows: int | None = None,
        started: int | None = None,
        ended: int | None = None,
        error: str = "",
        exchange: Exchange | None = None,
    ) -> None:
        """Tell of one question that was put to a store: a client span, and an evaluation event if it was judged.

        `name` is the check's or the watched table's; `system` the store's dialect ("" for a check in Python);
        `summary` says verb and tables ("SELECT refunds") and names the span; `text` is the query as it was run, with
        its parameters' names and never their values. `outcome` None: nothing was judged (a picture). `started` and
        `ended` are nanoseconds since the epoch, now by default. `error` is the class of the error that prevented
        the answer. `exchange` is how an HTTP store came by it.
        """
        ended = ended or time.time_ns()
        self._seen(
            _Look(name, system, summary, text, outcome, table, store, rows, started or ended, ended, error, exchange)
        )

    def _seen(self, look: _Look) -> None:
        self._tell_look(look)

    def _tell_look(self, look: _Look) -> None:
        end: dict[str, Value] = {names.CHECK_OUTCOME: look.outcome} if look.outcome else {}
        if look.rows is not None and look.system:
            end[names.DB_ROWS] = look.rows
        if look.exchange is not None:
            end |= _came_to(look.exchange)
        with self._out.net:
            span = self._out.tracer.start_span(
                look.span_name,
                self._context,
                SpanKind.CLIENT if look.is_remote else SpanKind.INTERNAL,
                self._asked(look),
                start_time=look.started,
            )
            finish(span, {}, end, look.failure, "the check could not be made")
            span.end(look.ended)
        if look.outcome is not None:
            self._evaluated(short(look.name), look.outcome, {}, _severity(look.outcome))

    def _asked(self, look: _Look) -> dict[str, Value]:
        asked: dict[str, Value] = {names.EVALUATION_NAME: short(look.name), names.RUN_ID: self._run_id}
        if look.store:
            asked[names.STORE] = short(look.store)
        if look.system:
            asked[names.DB_SYSTEM] = _SYSTEMS.get(look.system, look.system)
            asked[names.DB_OPERATION] = look.summary.partition(" ")[0]
            asked[names.DB_SUMMARY] = short(look.summary)
        if look.text:
            asked[names.DB_TEXT] = redact_text(look.text)
        if look.table and look.system:
            asked[names.DB_COLLECTION] = short(look.table)
        if look.exchange is not None:
            asked |= _requested(look.exchange)
        return asked

    def _evaluated(
        self,
        name: str,
        label: str,
        attributes: dict[str, Value],
        severity: events.Severity = events.INFO,
        context: Context | None = None,
    ) -> None:
        """Emit one evaluation result, of the span of `context` or of this one; never with a value of the state."""
        told: dict[str, Value] = {
            names.EVALUATION_NAME: name,
            names.EVALUATION_LABEL: label,
            names.RUN_ID: self._run_id,
            **attributes,
        }
        if label in ("pass", "fail"):
            told[names.EVALUATION_SCORE] = 1.0 if label == "pass" else 0.0
        with self._out.net:
            self._out.events.emit(names.EVALUATION_RESULT, context or self._context, told, severity)


class VerifyTrace(Looker):
    """The verification of a run: a span under the run's, with one span for each question to a store.

    While the state settles the same questions are put again and again: the last look at each is told.
    """

    __slots__ = ("_last", "_open", "_span", "_start", "_task")

    def __init__(self, out: Outlets, run_id: str, task: str, context: Context) -> None:
        super().__init__(out, run_id, context)
        self._open = True
        self._last: dict[tuple[str, str], _Look] = {}
        self._task = out.tasks(task)
        self._span: Span = INVALID_SPAN
        self._start: dict[str, Value] = {
            names.EVALUATION_NAME: names.STATE_EVALUATION,
            names.RUN_ID: run_id,
            names.TASK_NAME: short(task),
        }
        with out.net:
            self._span = begun(out.tracer, f"{names.VERIFY} {self._task}", context, self._start)
            self._context = trace.set_span_in_context(self._span, context)

    def _seen(self, look: _Look) -> None:
        self._last[look.name, look.span_name] = look

    def close(self, findings: Sequence[Finding], looks: int = 1, seconds: float = 0.0) -> None:
        """The state is judged: end the span, and tell each finding by kind and place, without values."""
        if not self._open:
            return
        self._open = False
        for look in self._last.values():
            self._tell_look(look)
        counted = [finding for finding in findings if not finding.warning]
        outcome = _outcome(counted)
        end: dict[str, Value] = {
            names.VERIFICATION_OUTCOME: outcome,
            names.FINDINGS: len(counted),
            names.LOOKS: looks,
        }
        with self._out.net:
            finish(self._span, self._start, end, _failure(counted), _PHRASES[outcome])
        with self._out.net:
            self._span.end()
        for finding in findings[:_TOLD]:
            self._tell_finding(finding)
        with self._out.net:
            self._out.metrics.verification(outcome, self._task, seconds)

    def _tell_finding(self, finding: Finding) -> None:
        if finding.kind in ("check_failed", "check_error"):
            return  # told where the check was made
        where = f"{finding.place}.{finding.column}" if finding.column else finding.place
        attributes: dict[str, Value] = {
            names.EVALUATION_EXPLANATION: short(f"{finding.kind.replace('_', ' ')}: {where}"),
            names.FINDING_KIND: finding.kind,
            names.FINDING_PLACE: short(finding.place),
        }
        if finding.column:
            attributes[names.FINDING_COLUMN] = short(finding.column)
        label = "warning" if finding.warning else "fail"
        self._evaluated(names.STATE_EVALUATION, label, attributes, _severity(label))


def _requested(exchange: Exchange) -> dict[str, Value]:
    """What was asked of an HTTP server."""
    return {
        names.HTTP_METHOD: "GET",
        names.SERVER_ADDRESS: short(exchange.host),
        names.SERVER_PORT: exchange.port,
        names.URL_FULL: redact_text(exchange.url),
        names.URL_TEMPLATE: redact_text(exchange.template),
    }


def _came_to(exchange: Exchange) -> dict[str, Value]:
    """What an HTTP server answered."""
    told: dict[str, Value] = {} if exchange.status is None else {names.HTTP_STATUS: exchange.status}
    if exchange.resends:
        told[names.HTTP_RESENDS] = exchange.resends
    return told


_PHRASES = {"pass": "", "fail": "the state differs from the contract", "error": "a check could not be made"}


def _outcome(counted: Sequence[Finding]) -> CheckOutcome:
    """A shown difference counts before a check that could not be made."""
    if any(finding.kind != "check_error" for finding in counted):
        return "fail"
    return "error" if counted else "pass"


def _failure(counted: Sequence[Finding]) -> str | None:
    kinds = [finding.kind for finding in counted]
    shown = [kind for kind in kinds if kind != "check_error"] or kinds
    return f"guardrail.{shown[0]}" if shown else None


def _severity(label: str) -> events.Severity:
    return {"pass": events.INFO, "fail": events.ERROR}.get(label, events.WARN)
