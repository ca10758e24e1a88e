"""Where a run stands: its calls, holds and writes, and the stop that ends it.

This is the run's side of the flow of a call. All that changes is changed under one lock; nothing that may
block is done under it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Generator, Mapping
from dataclasses import replace

from guardrail.call.facts import Facts
from guardrail.call.needs import Need
from guardrail.call.steps import Circumstances, Step
from guardrail.call.tools import LiveTool
from guardrail.calls import (
    Action,
    Answer,
    Effect,
    Ending,
    Finding,
    Halted,
    Hints,
    Judgement,
    Outcome,
    Raised,
    Refused,
    Returned,
    Stop,
    ToolCall,
    Unmade,
)
from guardrail.decide.holds import Hold
from guardrail.decide.operations import Operation
from guardrail.decide.rules import Consequence, Refusal, after_user_turn, consequence, of_repeat, under_holds
from guardrail.errors import LedgerError, RunNotOpen
from guardrail.judge.result import open_value
from guardrail.run.journal import Journal
from guardrail.run.writes import Named, Writes
from guardrail.stores.store import Store
from guardrail.telemetry.redaction import hidden_values, redact_text, snapshot_text
from guardrail.verification.inputs import Inputs

MOST_OTHERS = 10
"""How many stops of calls beside the one that ended the run are kept."""

Picturing = Generator[Need, object, None]


class Standing:
    """The state of one run, shared by all its calls, in whatever thread or task they run."""

    def __init__(
        self,
        run: str,
        task: str | None,
        *,
        tools: Callable[[str, Hints | None], LiveTool],
        enforced: bool,
        inputs: Inputs,
        facts: Facts,
        stores: Mapping[str, Store],
        journal: Journal,
        picture: Callable[[], Picturing],
        parent: Standing | None = None,
    ) -> None:
        self.run = run
        self.task = task
        self.inputs = inputs
        self.journal = journal
        self.stop: Stop | None = None
        self.others: tuple[Stop, ...] = ()
        self.would: Stop | None = None
        self.holds: tuple[Hold, ...] = ()
        self.calls = 0
        self.written = 0
        self._tools = tools
        self._enforced = enforced
        self._facts = facts
        self._circumstances = Circumstances(task, enforced, inputs.values, facts, stores)
        self._take_picture = picture
        self._parent = parent
        self._writes = Writes(run)
        self._successes: dict[str, Mapping[str, object]] = {}
        self._in_flight: dict[int, Step | None] = {}
        self._awaited = False
        self._unpictured = bool(inputs.missing)
        self._closed: str | None = "is not open: use it in a `with` block"
        self._untold: Stop | None = None
        # A stream's finaliser may end its call in the middle of any of this, in the same thread.
        self._lock = threading.RLock()
        self._idle = threading.Condition(self._lock)

    @property
    def is_open(self) -> bool:
        """Whether calls can be made in the run, were it not for a stop."""
        return self._closed is None

    # The flow of a call, in the order in which it asks.

    def admit(self, call: ToolCall) -> Step:
        """Number the call and say what stands against it; raises `RunNotOpen` when the run is not open."""
        tool = self._tools(call.name, call.hints)
        effect = tool.effect(call.args)
        arguments = snapshot_text(call.args, tool.redact)
        named = self._writes.named(call, tool) if effect != "read" else None
        with self._lock:
            if self._closed is not None:
                raise RunNotOpen(f"{call.name} was called, but the run {self.run} {self._closed}")
            self.calls = number = self.calls + 1
            barrier = self._barrier(number, call, tool, effect, named)
            operation, repeated = None, None
            if named is not None and barrier is None:
                repeated, _ = self._writes.repeated(named, idempotent=tool.idempotent)
                operation = self._writes.claim(number, named)
            self._in_flight[number] = None
        trace = self.journal.trace.open_call(call.name, effect, number, call.id, arguments)
        step = Step(
            call, number, tool, effect, arguments, time.time(), trace, self._circumstances, operation, repeated, barrier
        )
        self._in_flight[number] = step
        self._tell_stop()
        return step

    def hinder(self, step: Step, because: str) -> None:
        """A precondition does not hold: the call will not run; the policy says whether that holds or stops the run."""
        judgement = Judgement("precondition_failed", "precondition", _shown(step, because))
        result = self._take_effect(step, judgement)
        refusal = Refusal("precondition_failed", f"{step.call.name} was not carried out: {because}.")
        step.barrier = refusal if result is None or result.stop is None else result.stop

    def overlook(self, step: Step, error: Exception) -> None:
        """A precondition could not be checked while the run is only observed: name the stop, and go on."""
        step.barrier = self._note_failure(step.call, step, error)

    def intend(self, step: Step) -> None:
        """Record durably that a write is about to run; raises `LedgerError`, and then the write does not run."""
        try:
            self.journal.intends(step)
        except LedgerError as error:
            if self._enforced:
                raise
            self.journal.trace.log.error("guardrail.ledger_error", why=str(error))

    def reconsider(self, step: Step) -> None:
        """Look again at what stands against the call: a call beside it may have stopped or held the run."""
        with self._lock:
            if step.barrier is None:
                step.barrier = self.stopped() or under_holds(
                    step.number, step.call, step.effect, self._all_holds(), step.tool.retries
                )
                self._note(step.barrier)
        self._tell_stop()

    def refuse(self, step: Step) -> Answer:
        """Record that the call was not executed; its caller gets the signal or a refusal."""
        barrier = step.barrier
        assert barrier is not None
        failed = isinstance(barrier, Refusal) and barrier.reason == "precondition_failed"
        judgement = Judgement("precondition_failed" if failed else "refused", barrier.reason, str(barrier))
        self._end(step, judgement, "stop" if isinstance(barrier, Stop) else "hold", None)
        return Halted(barrier) if isinstance(barrier, Stop) else Refused(step.call.name, barrier.reason, barrier.text)

    def learn(self, step: Step, ending: Ending, judgement: Judgement) -> bool:
        """Learn from a good result; true when it bound the last input that the before-picture waits for."""
        name = step.call.name
        if judgement.outcome != "ok":
            return False
        if name not in self._facts.wanted and name not in self.inputs.awaited:
            return self._unpictured and not self.inputs.missing  # a picture before was cut off
        value = open_value(ending, step.tool.results)
        with self._lock:
            self._facts.learn(name, step.call.args, value)
            bound = self.inputs.bind(name, value)
        self.journal.bound(step, bound)
        return self._unpictured and not self.inputs.missing

    def picture(self) -> Picturing:
        """Take the before-picture, now that all inputs are bound; writes may run after it."""
        yield from self._take_picture()
        self._unpictured = False

    def dismiss(self, step: Step, unmade: Unmade) -> Answer:
        """Record that the framework did not make the call, and say what it told the model."""
        step.executed = False
        self._end(step, Judgement("error", "not_made", "the framework did not make the call"), "allow", None)
        return Returned(unmade.value)

    def settle(self, step: Step, ending: Ending, judgement: Judgement) -> Answer:
        """Record what the call came to and decide; its caller gets the result, its error, or the signal."""
        if judgement.message:  # what it says leaves with the stop and with its error
            judgement = replace(judgement, message=_shown(step, judgement.message))
        error = ending.error if isinstance(ending, Raised) else None
        result = self._take_effect(step, judgement, error)
        if result is None or result.stop is None or not self._enforced or _is_signal(error):
            return ending
        return Halted(result.stop, error)

    def fail(self, call: ToolCall, step: Step | None, error: Exception) -> Answer | None:
        """Stop the run because the guard itself failed; None where the run is only observed and goes on."""
        stop = self._note_failure(call, step, error)
        if step is not None and (self._enforced or step.executed):
            doubtful = step.executed and step.effect != "read"
            self._end(step, Judgement("in_doubt" if doubtful else "refused", "guard_error", str(stop)), "stop", error)
        return Halted(self.stopped() or stop, error) if self._enforced else None

    def leave(self, step: Step) -> None:
        """The call is over. One that was cut off in the middle is cancelled; a write may have happened."""
        if not step.settled:
            self._cut_off(step)
        with self._lock:
            self._in_flight.pop(step.number, None)
            if self._awaited and self._is_idle():
                self._idle.notify_all()

    # What the run itself asks.

    def open(self) -> None:
        """Let calls begin."""
        self._closed = None

    def stopped(self) -> Stop | None:
        """The stop of this run, or of a run that it is part of."""
        if self.stop is None and self._parent is not None:
            return self._parent.stopped()
        return self.stop

    def user_turn(self) -> None:
        """The real user has spoken: holds are resolved, but for writes in doubt."""
        with self._lock:
            before = self.holds
            now = after_user_turn(before)
            while before is not self.holds:  # a finaliser came in between
                before = self.holds
                now = after_user_turn(before)
            self.holds = now
        self.journal.user_turn()
        self.journal.resolved(before, now, "user")

    def close(self, why: str) -> None:
        """Let no further call begin; `why` completes the sentence "the run X ..."."""
        with self._lock:
            self._closed = self._closed or why

    def wait(self, seconds: float) -> None:
        """Wait for the calls in flight, so long."""
        with self._lock:
            self._awaited = True
            self._idle.wait_for(self._is_idle, seconds)

    def give_up(self) -> tuple[Finding, ...]:
        """Give up on the calls that are still in flight; a finding for each write among them.

        Nobody knows what becomes of them, so the state cannot be said to be right.
        """
        with self._lock:
            flying = [step for step in self._in_flight.values() if step is not None]
        for step in flying:
            self._cut_off(step)
        if flying:
            self.journal.trace.log.warning("guardrail.calls_in_flight", calls=len(flying))
        return tuple(
            Finding(
                "check_error",
                step.call.name,
                f"call {step.number} ({step.call.name}) was still running when the run ended: it may write yet",
            )
            for step in flying
            if step.effect != "read" and step.executed
        )

    def take_up(
        self, *, calls: int, stop: Stop | None, holds: tuple[Hold, ...], operations: Mapping[str, Operation]
    ) -> None:
        """Go on where an earlier process left the run."""
        self.calls, self.stop, self.holds = calls, stop, holds
        self._writes.restore(operations)
        self._unpictured = bool(self.inputs.missing)

    # Under the lock.

    def _is_idle(self) -> bool:
        """Whether no call is being carried out; a stream that waits for its reader is not waited for."""
        return all(step is not None and step.suspended for step in self._in_flight.values())

    def _barrier(
        self, number: int, call: ToolCall, tool: LiveTool, effect: Effect, named: Named | None
    ) -> Refusal | Stop | None:
        barrier = self.stopped()
        if barrier is not None or named is None:
            return barrier
        found: Refusal | Stop | None = self._unready(call)
        if found is None:
            # A repeat of a write in doubt is refused, even where its hold would stop the run.
            repeated, earlier = self._writes.repeated(named, idempotent=tool.idempotent)
            found = of_repeat(number, call, repeated, earlier)
        if found is None:
            found = under_holds(number, call, effect, self._all_holds(), tool.retries)
        self._note(found)
        return found

    def _unready(self, call: ToolCall) -> Refusal | None:
        """No write runs before the late inputs are bound and the state before was seen."""
        if not self._unpictured:
            return None
        missing = self.inputs.missing
        why = (
            f"{missing[0].name} is not known before {missing[0].tool} has found it" if missing else "it came too early"
        )
        return Refusal("precondition_failed", f"{call.name} was not carried out: {why}.")

    def _all_holds(self) -> tuple[Hold, ...]:
        """The holds of this run, and of a run that it is part of."""
        return self.holds if self._parent is None else (*self._parent._all_holds(), *self.holds)

    def _note(self, barrier: Refusal | Stop | None) -> None:
        """A stop is sticky from here on; where the run is only observed, the first one is named."""
        if not isinstance(barrier, Stop) or barrier is self.stop:
            return
        if not self._enforced:
            self.would = self.would or barrier
        elif self.stop is None:
            self.stop = self._untold = barrier
        elif len(self.others) < MOST_OTHERS:
            self.others = (*self.others, barrier)

    def _consequence(self, step: Step, judgement: Judgement) -> tuple[tuple[Hold, ...], Consequence]:
        """What a judgement does to the run, and the holds that it was told by."""
        before = self.holds
        if step.barrier is not None and judgement.outcome != "precondition_failed":
            # Only observed: had it been enforced, the call would not have been made and would have resolved nothing.
            return before, Consequence("allow", before)
        return before, consequence(
            step.number,
            step.call,
            step.effect,
            judgement,
            actions=step.tool.actions,
            holds=before,
            series=self._successes.get(step.call.name),
            idempotent=step.tool.idempotent,
        )

    def _settled(self, step: Step, outcome: Outcome) -> bool:
        """Claim the end of a call: false if it was given up before."""
        if step.settled:
            return False
        step.settled = True
        if step.operation is not None:
            self._writes.know(step.operation, outcome if step.executed else None)
        return True

    # Outside of it.

    def _take_effect(self, step: Step, judgement: Judgement, error: BaseException | None = None) -> Consequence | None:
        """Let a judgement take its effect on the run; None for a call that was given up before it came back."""
        hindered = judgement.outcome == "precondition_failed"
        with self._lock:
            if not hindered and not self._settled(step, judgement.outcome):
                return None
            before, result = self._consequence(step, judgement)
            while before is not self.holds:  # a finaliser came in between
                before, result = self._consequence(step, judgement)
            self.holds = result.holds
            self._note(result.stop)
            if judgement.outcome == "ok":
                self._successes[step.call.name] = step.call.args
                self.written += step.effect == "write"
        if before is not result.holds:
            self.journal.resolved(before, result.holds, f"call {step.number}")
            if result.opened is not None:
                self.journal.held(step, result.opened)
        if not hindered:
            self.journal.ended(step, judgement, result.action, error)
        self._tell_stop()
        return result

    def _end(self, step: Step, judgement: Judgement, action: Action, error: BaseException | None) -> None:
        """Write down a call that has no effect on the holds: one that was not executed, or not judged."""
        with self._lock:
            if not self._settled(step, judgement.outcome):
                return
        self.journal.ended(step, judgement, action, error)

    def _cut_off(self, step: Step) -> None:
        """A call that nobody waits for any more: a write that had begun may have happened."""
        if not step.executed:
            self._end(step, Judgement("cancelled", "cut_off", "the call was cut off"), "allow", None)
        elif step.effect == "read":
            self._take_effect(step, Judgement("cancelled", "cut_off", "the call was cut off while it ran"))
        else:
            self._take_effect(step, Judgement("in_doubt", "cut_off", "the call was cut off while it ran"))

    def _note_failure(self, call: ToolCall, step: Step | None, error: Exception) -> Stop:
        """The guard itself failed: a stop with a reason of its own, and visible as such."""
        said = f"{type(error).__name__}: {error}"
        detail = redact_text(said) if step is None else _shown(step, said)
        stop = Stop("guard_error", self.calls if step is None else step.number, call.name, detail)
        self.journal.trace.log.error("guardrail.guard_error", tool=call.name, error=type(error).__name__)
        with self._lock:
            self._note(stop)
        self._tell_stop()
        return stop

    def _tell_stop(self) -> None:
        """Write down a stop, once; not under the lock, as the ledger may have to write."""
        if self._untold is not None:
            stop, self._untold = self._untold, None
            self.journal.stopped(stop)


def _shown(step: Step, message: str) -> str:
    """A tool's words without what must not be stored: secrets, and the values of declared fields."""
    redact = step.tool.redact
    return redact_text(message, redact, values=hidden_values(step.call.args, redact))


def _is_signal(error: BaseException | None) -> bool:
    """Whether a tool left by an interrupt or a cancellation, which must reach the caller as it is."""
    return error is not None and not isinstance(error, Exception)
