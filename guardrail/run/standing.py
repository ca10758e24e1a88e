"""Where a run stands: its calls, holds and operations, and the stop that ends it.

This is the run's side of the flow of a call. All that changes is changed under one lock; nothing that may
block is done under it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import replace

from guardrail import attributes
from guardrail.call.facts import Facts
from guardrail.call.steps import Step
from guardrail.call.tools import LiveTool
from guardrail.calls import Action, Effect, Ending, Judgement, Raised, Returned, Stop, ToolCall, Verdict
from guardrail.decide.holds import Hold
from guardrail.decide.operations import Operation, Repeat, after, repeat
from guardrail.decide.rules import Consequence, Refusal, after_user_turn, consequence, of_repeat, under_holds
from guardrail.errors import CallRefused, LedgerError, RunHalted, RunNotOpen
from guardrail.judge.result import open_value
from guardrail.ledger.ledger import Ledger
from guardrail.ledger.records import BoundInput, CallRecord, HoldResolved, OutcomeRecord, StopRecord, UserTurn
from guardrail.run.history import hold_record, verdict_record
from guardrail.run.inputs import Inputs
from guardrail.stores.store import Store
from guardrail.telemetry.canonical import digest
from guardrail.telemetry.logs import get_logger
from guardrail.telemetry.redaction import hidden_values, redact_text, snapshot_text
from guardrail.telemetry.traces import RunTrace

MOST_OTHERS = 20
"""So many further stops are kept, of calls that failed beside the one that ended the run."""


class Standing:
    """The state of one run, shared by all its calls, in whatever thread or task they run."""

    def __init__(
        self,
        run: str,
        task: str | None,
        *,
        tools: Callable[[str], LiveTool],
        enforced: bool,
        inputs: Inputs,
        facts: Facts,
        stores: Mapping[str, Store],
        ledger: Ledger,
        trace: RunTrace,
        picture: Callable[[], None],
        parent: Standing | None = None,
    ) -> None:
        self.run = run
        self.task = task
        self.inputs = inputs
        self.stop: Stop | None = None
        self.others: tuple[Stop, ...] = ()
        self.would: Stop | None = None
        self.holds: tuple[Hold, ...] = ()
        self.calls = 0
        self._tools = tools
        self._enforced = enforced
        self._facts = facts
        self._stores = stores
        self._ledger = ledger
        self.trace = trace
        self._take_picture = picture
        self._parent = parent
        self._writing = 0
        self._refused = 0
        self._key = run.encode()
        self._operations: dict[str, Operation] = {}
        self._successes: dict[str, Mapping[str, object]] = {}
        self._open: set[int] = set()
        self._awaited = False
        self._closed: str | None = None
        self._lock = threading.Lock()
        self._idle = threading.Condition(self._lock)

    # The flow of a call, in the order in which it asks.

    def admit(self, call: ToolCall) -> Step:
        """Number the call and say what stands against it; raises `RunNotOpen` when the run has ended."""
        tool = self._tools(call.name)
        effect = tool.effect(call.args)
        arguments = snapshot_text(call.args, tool.redact)
        key, mark = self._operation(call, tool) if effect != "read" else ("", "")
        with self._lock:
            if self._closed is not None:
                raise RunNotOpen(f"{call.name} was called, but the run {self.run} {self._closed}")
            self.calls += 1
            number = self.calls
            barrier = self._barrier(number, call, tool, effect, key, mark)
            operation, repeated = None, None
            if effect != "read" and barrier is None:
                operation, repeated = self._claim(number, tool, key, mark)
            self._open.add(number)
        trace = self.trace.open_call(call.name, effect, number, call.id, arguments)
        return Step(
            call,
            number,
            tool,
            effect,
            self._enforced,
            arguments,
            time.time(),
            trace,
            self.inputs.values,
            self._facts,
            self._stores,
            self.task,
            operation,
            repeated,
            barrier,
        )

    def hinder(self, step: Step, because: str) -> None:
        """A precondition does not hold: the policy says whether that is nothing, a hold or a stop."""
        judgement = Judgement("precondition_failed", "precondition", self._shown(step, because))
        with self._lock:
            before, result = self._apply(step, judgement)
        self._tell(step, before, result)
        if result.action == "hold":
            step.barrier = Refusal("precondition_failed", f"{step.call.name} was not carried out: {because}.")
        elif result.action == "stop":
            step.barrier = result.stop

    def intend(self, step: Step) -> None:
        """Record durably that a write is about to run; raises `LedgerError`, and then the write does not run."""
        try:
            self._ledger.intend(self._record(step))
        except LedgerError as error:
            if self._enforced:
                raise
            self.trace.log.error("guardrail.ledger_error", why=str(error))
            return
        step.intended = True

    def reconsider(self, step: Step) -> None:
        """Look again at what stands against the call: a call beside it may have stopped or held the run."""
        with self._lock:
            if step.barrier is None:
                step.barrier = self.stopped() or under_holds(step.number, step.call, step.effect, self.holds)
                self._note(step.barrier)

    def refuse(self, step: Step) -> Ending:
        """Record that the call was not executed; its caller gets the signal or a refusal."""
        barrier = step.barrier
        assert barrier is not None
        failed = isinstance(barrier, Refusal) and barrier.reason == "precondition_failed"
        said = str(barrier) if isinstance(barrier, Stop) else barrier.text
        outcome = Judgement("precondition_failed" if failed else "refused", barrier.reason, said)
        if step.operation is not None:
            with self._lock:
                self._know(step.operation, None)
        self._end(step, outcome, "stop" if isinstance(barrier, Stop) else "hold", None)
        if isinstance(barrier, Stop):
            return Raised(RunHalted(barrier))
        return Raised(CallRefused(step.call.name, barrier.reason, barrier.text))

    def bind(self, step: Step, ending: Ending, judgement: Judgement) -> bool:
        """Learn from a good result; true when it bound the last input that the before-picture waits for."""
        name = step.call.name
        if judgement.outcome != "ok" or (name not in self._facts.wanted and name not in self.inputs.awaited):
            return False
        value = open_value(ending, step.tool.results)
        with self._lock:
            self._facts.learn(name, step.call.args, value)
            bound = self.inputs.bind(name, value)
        for bound_name in bound:
            value_text = snapshot_text({bound_name: self.inputs.values[bound_name]}, step.tool.redact)
            self._ledger.record(BoundInput(self.run, bound_name, value_text))
        return bool(bound) and not self.inputs.missing

    def picture(self) -> None:
        """Take the before-picture, now that all inputs are bound."""
        self._take_picture()

    def settle(self, step: Step, ending: Ending, judgement: Judgement) -> Ending:
        """Record what the call came to and decide; its caller gets the result, its error, or the signal."""
        if judgement.message:  # what it says leaves with the stop and with its error
            judgement = replace(judgement, message=self._shown(step, judgement.message))
        with self._lock:
            before, result = self._apply(step, judgement)
            if step.operation is not None:
                self._know(step.operation, after(step.operation, judgement.outcome))
            if judgement.outcome == "ok":
                self._successes[step.call.name] = step.call.args
        self._tell(step, before, result)
        error = ending.error if isinstance(ending, Raised) else None
        self._end(step, judgement, result.action, error)
        if result.stop is None or not step.enforced or _wins(error):
            return ending
        halted = RunHalted(result.stop)
        halted.__cause__ = error
        return Raised(halted)

    def fail(self, call: ToolCall, step: Step | None, error: Exception) -> Ending | None:
        """Stop the run because the guard itself failed; None where the run is only observed."""
        number = step.number if step is not None else self.calls
        stop = Stop("guard_error", number, call.name, redact_text(f"{type(error).__name__}: {error}"))
        get_logger().error("guardrail.guard_error", run=self.run, tool=call.name, error=type(error).__name__)
        with self._lock:
            self._note(stop)
        if step is not None and not step.settled:
            self._end(step, Judgement("refused", "guard_error", str(stop)), "stop", error)
        if not self._enforced:
            return None
        halted = RunHalted(self.stopped() or stop)
        halted.__cause__ = error
        return Raised(halted)

    def leave(self, step: Step) -> None:
        """The call is over. One that was cut off in the middle is cancelled; a write may have happened."""
        if not step.settled:
            self._cut_off(step)
        with self._lock:
            self._open.discard(step.number)
            if self._awaited and not self._open:
                self._idle.notify_all()

    # What the run itself asks.

    def stopped(self) -> Stop | None:
        """The stop of this run, or of a run that it is part of."""
        if self.stop is None and self._parent is not None:
            return self._parent.stopped()
        return self.stop

    def user_turn(self) -> None:
        """The real user has spoken: holds are resolved, but for writes in doubt."""
        with self._lock:
            before, self.holds = self.holds, after_user_turn(self.holds)
        self.trace.event(attributes.USER_TURN)
        self._ledger.record(UserTurn(self.run, time.time()))
        self._resolved(before, self.holds, "user")

    def close(self, why: str) -> None:
        """Let no further call begin; `why` completes the sentence "the run X ..."."""
        with self._lock:
            self._closed = self._closed or why

    def abandon(self, reason: str) -> None:
        """Let no further call begin: the agent has given up."""
        self.trace.event(attributes.ABANDONED)
        self.close(f"was abandoned: {reason}")

    def wait(self, seconds: float) -> int:
        """Wait for the calls in flight; how many are still open when time is up."""
        with self._lock:
            self._awaited = True
            self._idle.wait_for(lambda: not self._open, seconds)
            return len(self._open)

    def end(self, verdict: Verdict, error: BaseException | None) -> None:
        """Tell and record the verdict."""
        self.trace.close(verdict, calls=self.calls, writing=self._writing, refused=self._refused, agent_error=error)
        try:
            self._ledger.close_run(verdict_record(self.run, verdict, time.time()))
        except LedgerError as failure:
            self.trace.log.error("guardrail.ledger_error", why=str(failure))

    def take_up(
        self, *, calls: int, stop: Stop | None, holds: tuple[Hold, ...], operations: Mapping[str, Operation]
    ) -> None:
        """Go on where an earlier process left the run."""
        self.calls, self.stop, self.holds = calls, stop, holds
        self._operations.update(operations)

    # Under the lock.

    def _barrier(
        self, number: int, call: ToolCall, tool: LiveTool, effect: Effect, key: str, mark: str
    ) -> Refusal | Stop | None:
        stopped = self.stopped()
        if stopped is not None:
            return stopped
        if effect == "read":
            return None
        missing = self.inputs.missing
        if missing:
            return Refusal(
                "precondition_failed",
                f"{call.name} was not carried out: {missing[0].name} is not known before {missing[0].tool} has found it.",
            )
        earlier = self._operations.get(key)
        barrier = under_holds(number, call, effect, self.holds)
        if barrier is None and not (tool.idempotent and earlier is not None and earlier.state == "in_doubt"):
            barrier = of_repeat(number, call, repeat(key, mark, earlier), earlier.call if earlier else 0)
        self._note(barrier)
        return barrier

    def _claim(self, number: int, tool: LiveTool, key: str, mark: str) -> tuple[Operation, Repeat | None]:
        earlier = self._operations.get(key)
        operation = Operation(key, mark, bool(tool.once_per), "running", number)
        repeated = repeat(key, mark, earlier)
        if earlier is None:
            self._operations[key] = operation
        return operation, repeated

    def _know(self, operation: Operation, known: Operation | None) -> None:
        earlier = self._operations.get(operation.key)
        if known is not None:
            self._operations[operation.key] = known
        elif earlier is not None and earlier.call == operation.call:
            del self._operations[operation.key]

    def _apply(self, step: Step, judgement: Judgement) -> tuple[tuple[Hold, ...], Consequence]:
        """Let a judgement take its effect on the run's holds and stop; the holds before it, and its effect."""
        result = consequence(
            step.number,
            step.call,
            step.effect,
            judgement,
            actions=step.tool.actions,
            retries=step.tool.retries,
            holds=self.holds,
            series=self._successes.get(step.call.name),
        )
        before, self.holds = self.holds, result.holds
        self._note(result.stop)
        return before, result

    def _note(self, barrier: Refusal | Stop | None) -> None:
        """A stop is sticky from here on; where the run is only observed, the first one is named."""
        if not isinstance(barrier, Stop) or barrier is self.stop:
            return
        if not self._enforced:
            self.would = self.would or barrier
        elif self.stop is None:
            self.stop = barrier
            detail = redact_text(barrier.detail)
            self._ledger.record(StopRecord(self.run, barrier.reason, barrier.call, barrier.tool, detail, time.time()))
        elif len(self.others) < MOST_OTHERS:
            self.others = (*self.others, barrier)

    # Records.

    def _cut_off(self, step: Step) -> None:
        """A call whose flow was dropped in the middle: a write that had begun may have happened."""
        judgement = _IN_DOUBT if step.executed and step.effect != "read" else _CANCELLED
        action: Action = "allow"
        if step.executed:
            with self._lock:
                before, result = self._apply(step, judgement)
                if step.operation is not None:
                    self._know(step.operation, after(step.operation, judgement.outcome))
            self._tell(step, before, result)
            action = result.action
        elif step.operation is not None:
            with self._lock:
                self._know(step.operation, None)
        self._end(step, judgement, action, None)

    def _tell(self, step: Step, before: tuple[Hold, ...], result: Consequence) -> None:
        """Record the holds that a call opened and resolved."""
        if before is result.holds:
            return
        self._resolved(before, result.holds, f"call {step.number}")
        if result.opened is not None:
            self._ledger.record(hold_record(self.run, result.opened, step.tool.redact))

    def _operation(self, call: ToolCall, tool: LiveTool) -> tuple[str, str]:
        """The key of the operation that a write is, and the digest of all its arguments."""
        whole = digest(call.name, call.args, self._key)
        if not tool.once_per:
            return whole, whole
        named = {name: call.args.get(name) for name in tool.once_per}
        return digest(f"{call.name} once per", named, self._key), whole

    def _record(self, step: Step) -> CallRecord:
        operation = step.operation
        return CallRecord(
            self.run,
            step.number,
            step.call.name,
            step.call.id,
            step.effect,
            step.arguments,
            operation.digest if operation else "",
            operation.key if operation else None,
            step.started,
        )

    def _end(self, step: Step, judgement: Judgement, action: Action, error: BaseException | None) -> None:
        """Write down how a call ended."""
        ended = time.time()
        step.settled = True
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
        said = judgement.said
        message = self._shown(step, said) if said else ""
        self._ledger.record(
            OutcomeRecord(
                self.run,
                step.number,
                judgement.outcome,
                judgement.sign,
                message,
                action,
                step.executed,
                ended,
                self._rule(step),
                None,
                None if step.intended else self._record(step),
            )
        )

    @staticmethod
    def _shown(step: Step, message: str) -> str:
        """A tool's words without what must not be stored: secrets, and the values of declared fields."""
        redact = step.tool.redact
        return redact_text(message, redact, values=hidden_values(step.call.args, redact))

    def _result(self, step: Step) -> str | None:
        """The redacted result for the span, where content may be told."""
        if not self.trace.content or not isinstance(step.ending, Returned):
            return None
        return snapshot_text(step.ending.value, step.tool.redact)

    @staticmethod
    def _rule(step: Step) -> str:
        """What would have stopped or refused the call, or what it repeats."""
        if step.barrier is not None and step.executed:
            return f"would_{'stop' if isinstance(step.barrier, Stop) else 'refuse'}: {step.barrier.reason}"
        return f"repeat: {step.repeated}" if step.repeated else ""

    def _resolved(self, before: tuple[Hold, ...], now: tuple[Hold, ...], by: str) -> None:
        for hold in before:
            if hold not in now:
                self.trace.event(attributes.HOLD_RESOLVED, {attributes.CALL_NUMBER: hold.call})
                self._ledger.record(HoldResolved(self.run, hold.call, by, time.time()))


def _wins(error: BaseException | None) -> bool:
    """Whether an error must reach the caller as it is, because it is no failure: an interrupt, a cancellation."""
    return error is not None and not isinstance(error, Exception)


_IN_DOUBT = Judgement("in_doubt", "cut_off", "the call was cut off while it ran")
_CANCELLED = Judgement("cancelled", "cut_off", "the call was cut off")
