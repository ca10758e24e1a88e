"""The journal of a run: what happens is written into the ledger and told to telemetry."""

from __future__ import annotations

import time
from collections.abc import Mapping

from guardrail import attributes
from guardrail.call.steps import Step
from guardrail.calls import Action, Judgement, Returned, Stop, Verdict
from guardrail.decide.holds import Hold
from guardrail.errors import LedgerError
from guardrail.ledger.ledger import Ledger
from guardrail.ledger.records import BoundInput, CallRecord, HoldResolved, OutcomeRecord, StopRecord, UserTurn
from guardrail.run.history import hold_record, verdict_record
from guardrail.telemetry.redaction import snapshot_text
from guardrail.telemetry.traces import RunTrace


class Journal:
    """Writes down one run. All it is given is redacted already, or is redacted here as the tool declares.

    `named`: the run's id was given by the caller, who may take it up again under it.
    """

    def __init__(self, run: str, ledger: Ledger, trace: RunTrace, *, named: bool) -> None:
        self._named = named
        self.trace = trace
        self._run = run
        self._ledger = ledger
        self._writing = 0
        self._refused = 0

    def intends(self, step: Step) -> None:
        """A write is about to run: durable. Raises `LedgerError`."""
        self._ledger.intend(self._call(step))
        step.intended = True

    def ended(self, step: Step, judgement: Judgement, action: Action, error: BaseException | None) -> None:
        """A call has ended, or was not executed."""
        ended = time.time()
        self._writing += step.executed and step.effect != "read"
        self._refused += not step.executed
        step.trace.close(
            judgement.outcome,
            action,
            executed=step.executed,
            sign=judgement.sign,
            error=error,
            seconds=ended - step.started,
            result=self._result(step),
        )
        self._ledger.record(
            OutcomeRecord(
                self._run,
                step.number,
                judgement.outcome,
                judgement.sign,
                judgement.said,
                action,
                step.executed,
                ended,
                _rule(step),
                None,
                None if step.intended else self._call(step),
            )
        )

    def held(self, step: Step, hold: Hold) -> None:
        """A call has opened a hold."""
        self._ledger.record(hold_record(self._run, hold, step.tool.redact))

    def resolved(self, before: tuple[Hold, ...], now: tuple[Hold, ...], by: str) -> None:
        """Holds were resolved, by a call or by the user."""
        for hold in before:
            if hold not in now:
                self.trace.event(attributes.HOLD_RESOLVED, {attributes.CALL_NUMBER: hold.call})
                self._ledger.record(HoldResolved(self._run, hold.call, by, time.time()))

    def stopped(self, stop: Stop) -> None:
        """The guard has ended the run."""
        self._ledger.record(StopRecord(self._run, stop.reason, stop.call, stop.tool, stop.detail, time.time()))

    def bound(self, step: Step, inputs: Mapping[str, object]) -> None:
        """A result has bound inputs."""
        for name, value in inputs.items():
            self._ledger.record(BoundInput(self._run, name, snapshot_text({name: value}, step.tool.redact)))

    def user_turn(self) -> None:
        """The real user has spoken."""
        self.trace.event(attributes.USER_TURN)
        self._ledger.record(UserTurn(self._run, time.time()))

    def abandoned(self) -> None:
        """The agent has given up."""
        self.trace.event(attributes.ABANDONED)

    def judged(self, verdict: Verdict, calls: int, error: BaseException | None) -> None:
        """The run has its verdict: durable; where the ledger cannot be written, that is logged."""
        self.trace.close(verdict, calls=calls, writing=self._writing, refused=self._refused, agent_error=error)
        try:
            self._ledger.close_run(verdict_record(self._run, verdict, time.time()), keep_pictures=self._named)
        except LedgerError as failure:
            self.trace.log.error("guardrail.ledger_error", why=str(failure))

    def _call(self, step: Step) -> CallRecord:
        operation = step.operation
        return CallRecord(
            self._run,
            step.number,
            step.call.name,
            step.call.id,
            step.effect,
            step.arguments,
            operation.digest if operation else "",
            operation.key if operation else None,
            step.started,
        )

    def _result(self, step: Step) -> str | None:
        """The redacted result for the span, where content may be told."""
        if not self.trace.content or not isinstance(step.ending, Returned):
            return None
        return snapshot_text(step.ending.value, step.tool.redact)


def _rule(step: Step) -> str:
    """What would have stopped or refused the call, or what it repeats."""
    if step.barrier is not None and step.executed:
        return f"would_{'stop' if isinstance(step.barrier, Stop) else 'refuse'}: {step.barrier.reason}"
    return f"repeat: {step.repeated}" if step.repeated else ""
