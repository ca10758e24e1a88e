"""The flow of one call: a generator that yields what it needs done.

It is written once and driven twice (`drivers`). Whatever the tool does comes in as an `Ending`, and
what the caller shall get goes out as an `Answer`: so any exception inside the flow is the guard's own
failure, and it fails closed with the reason `guard_error`.
"""

from __future__ import annotations

from collections.abc import Generator
from functools import partial
from typing import Protocol, TypeAlias, cast

from guardrail.call.needs import NO_SCOPE, Execute, Need, Unheeded, Work
from guardrail.call.preconditions import unmet
from guardrail.call.steps import Step
from guardrail.calls import Answer, Ending, Judgement, Raised, Returned, ToolCall, Unmade
from guardrail.errors import RunNotOpen
from guardrail.judge.result import judge

Flow: TypeAlias = Generator[Need, object, Answer]


class Conduct(Protocol):
    """What the flow of a call asks of its run."""

    def admit(self, call: ToolCall) -> Step:
        """Number the call and say what stands against it (`step.barrier`); raises `RunNotOpen`."""
        ...

    def hinder(self, step: Step, because: str) -> None:
        """A precondition does not hold: the call will not run, and the policy says what else that does."""
        ...

    def overlook(self, step: Step, error: Exception) -> None:
        """A precondition could not be checked, while the run is only observed."""
        ...

    def intend(self, step: Step) -> None:
        """Record durably that a write is about to run; raises `LedgerError`."""
        ...

    def reconsider(self, step: Step) -> None:
        """Look again at what stands against the call, now that it is about to run."""
        ...

    def refuse(self, step: Step) -> Answer:
        """Record that the call was not executed, and say what its caller gets."""
        ...

    def learn(self, step: Step, ending: Ending, judgement: Judgement) -> bool:
        """Learn from a good result; true when it bound the last input that the before-picture waits for."""
        ...

    def picture(self) -> Generator[Need, object, None]:
        """Take the before-picture."""
        ...

    def dismiss(self, step: Step, unmade: Unmade) -> Answer:
        """Record that the framework did not make the call, and say what it told the model."""
        ...

    def settle(self, step: Step, ending: Ending, judgement: Judgement) -> Answer:
        """Record what the call came to, decide, and say what its caller gets."""
        ...

    def fail(self, call: ToolCall, step: Step | None, error: Exception) -> Answer | None:
        """Stop the run because the guard itself failed; None where the run is only observed and goes on."""
        ...

    def leave(self, step: Step) -> None:
        """The call is over, however it ended."""
        ...


def guarded(run: Conduct, call: ToolCall) -> Flow:
    """One call of a run, from admission to decision."""
    step: Step | None = None
    try:
        step = run.admit(call)
        return (yield from _steps(run, step))
    except RunNotOpen as error:
        return Raised(error)
    except Exception as error:  # noqa: BLE001 - the tool's errors come in as values; this is the guard's own failure
        answer = run.fail(call, step, error)
        return (yield from _unguarded(step)) if answer is None else answer
    finally:
        if step is not None:
            run.leave(step)


def _steps(run: Conduct, step: Step) -> Flow:
    if step.barrier is None and step.tool.demanding:
        yield from _preconditions(run, step)
    if step.effect != "read" and not step.barred:
        yield Work(partial(run.intend, step))
        run.reconsider(step)
    if step.barred:
        return run.refuse(step)
    step.executed = True
    step.ending = ending = cast("Ending", (yield Execute(step.trace, step)))
    if isinstance(ending, Returned) and isinstance(ending.value, Unmade):
        return run.dismiss(step, ending.value)
    judgement = judge(ending, step.effect, step.tool.results, step.call.name)
    if run.learn(step, ending, judgement):
        yield from run.picture()
    return run.settle(step, ending, judgement)


def _preconditions(run: Conduct, step: Step) -> Generator[Need, object, None]:
    try:
        because = yield from unmet(step)
    except Exception as error:
        if step.run.enforced:
            raise
        run.overlook(step, error)
    else:
        if because is not None:
            run.hinder(step, because)


def _unguarded(step: Step | None) -> Flow:
    """What an observed run does when the guard fails: the call itself, once."""
    if step is not None and step.ending is not None:
        return step.ending
    if step is None:
        return cast("Ending", (yield Execute(NO_SCOPE, Unheeded())))
    step.executed = True
    return cast("Ending", (yield Execute(NO_SCOPE, step)))
