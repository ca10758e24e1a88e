"""Variants of reported cases as tests, and guarded calls of tools that answer as they are told."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from guardrail import Configuration, Guard, RunHalted, RunStopped, Stop
from guardrail.ledger.records import CallRecord, OutcomeRecord, RunHistory


def variant(case: str, name: str, *values: object) -> Any:
    """A parameter of a test that is the variant `name` of the reported case `case`, such as "B07"."""
    return pytest.param(*values, marks=pytest.mark.case(case, name), id=name)


@dataclass(frozen=True, slots=True)
class Seen:
    """What one call came to, as the ledger keeps it.

    `given` is what its caller got: the result, or the exception. `stop` is the run's, if it was stopped.
    """

    call: CallRecord
    outcome: OutcomeRecord
    given: object
    stop: Stop | None

    @property
    def went_on(self) -> bool:
        """Whether the call's result was handed on and the run was not stopped."""
        return self.outcome.action == "allow" and self.stop is None and not isinstance(self.given, BaseException)

    @property
    def stopped(self) -> bool:
        """Whether this call ended the run: by the signal at the call, and by the stop of the run."""
        return self.outcome.action == "stop" and self.stop is not None and isinstance(self.given, RunHalted)


def told(
    result: object = None, *, raises: BaseException | None = None, policy: str = "strict", **declared: Any
) -> Seen:
    """One guarded call of a tool that answers `result`, or raises; `declared` is what is declared of the tool."""
    return tell([result if raises is None else raises], policy=policy, **declared)[0]


def tell(
    results: Sequence[object], args: Sequence[dict[str, object]] = (), *, policy: str = "strict", **declared: Any
) -> list[Seen]:
    """Guarded calls of one tool in one run, one for each result; an exception among them is raised by the tool."""
    answers = iter(results)

    def tool(**args: object) -> object:
        answer = next(answers)
        if isinstance(answer, BaseException):
            raise answer
        return answer

    configuration = {"policy": policy, "ledger": "memory", "tools": {"tool": {"effect": "read", **declared}}}
    given: list[object] = []
    with Guard(Configuration.model_validate(configuration)) as guard:
        run = guard.run()
        with contextlib.suppress(RunStopped), run:
            for number in range(len(results)):
                asked = args[number] if args else {"of": number}
                try:
                    given.append(run.call("tool", asked, tool, id=f"c{number + 1}"))
                except BaseException as error:  # noqa: BLE001 - whatever a caller gets is looked at by the tests
                    given.append(error)
        history = history_of(guard, run.id)
    return [
        Seen(recorded.call, outcome_of(history, number), got, run.stop)
        for number, (recorded, got) in enumerate(zip(history.calls, given, strict=True), 1)
    ]


def answering(result: object, given: list[dict[str, object]] | None = None) -> Callable[..., object]:
    """A tool that answers `result` to whatever it is given, which it notes in `given`."""

    def tool(**args: object) -> object:
        if given is not None:
            given.append(args)
        return result

    return tool


def history_of(guard: Guard, run: str) -> RunHistory:
    """What the ledger holds of a run, which must be there."""
    history = guard.ledger.load_run(run)
    assert history is not None
    return history


def outcome_of(history: RunHistory, number: int) -> OutcomeRecord:
    """The outcome of a call of the run, which must have one."""
    [recorded] = [recorded for recorded in history.calls if recorded.call.number == number]
    assert recorded.outcome is not None
    return recorded.outcome


def outcomes(guard: Guard, run: str) -> dict[str, str]:
    """What the calls of a run came to, by their call ids."""
    return {
        recorded.call.call_id or str(recorded.call.number): recorded.outcome.outcome if recorded.outcome else "open"
        for recorded in history_of(guard, run).calls
    }
