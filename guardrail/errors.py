"""The errors of the library.

GuardrailError
├── ConfigurationError   a declaration is wrong: file, line, field, suggestion; all mistakes at once
├── InputError           a run was opened with inputs that do not fit its task
├── QueryRefused         a query is not provably read-only, or a request not one that stays where it was written
├── StoreError           a store could not be looked at
├── LedgerError          the ledger could not be written or read
│   └── RunTaken         the run is open in another process, or in this one (`guardrail.ledger.transactions`)
├── RunNotOpen           a guarded tool was called where no run is open, or the run has ended
├── RecordedRunsError    recorded runs cannot be read (`guardrail.recorded.format`)
├── CallRefused          a call was not executed and the run goes on; says why, for the model
├── RunStopped           the guard ended the run; leaves only `guard.run()`
└── SilentFailure        the run ended cleanly and left the wrong state (`on_silent_failure: raise`)
RunHalted (BaseException) the signal inside a run; see there
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from guardrail.calls import Stop, Verdict


class GuardrailError(Exception):
    """The base of every error that the library raises on purpose."""


@dataclass(frozen=True, slots=True)
class Mistake:
    """One mistake of a declaration.

    `file` is the path as given (or "<python>"), `line` counts from 1 (None where there is no text),
    `field` is a dotted path such as `tools.refund_order.args.amount`, `what` says what is wrong and
    `advice` what to do about it ("" when `what` says it all).
    """

    file: str
    line: int | None
    field: str
    what: str
    advice: str = ""

    def __str__(self) -> str:
        """The mistake as one line: file:line: field: what; advice."""
        place = self.file if self.line is None else f"{self.file}:{self.line}"
        field = f" {self.field}:" if self.field else ""
        advice = f" ({self.advice})" if self.advice else ""
        return f"{place}:{field} {self.what}{advice}"


class ConfigurationError(GuardrailError):
    """A configuration could not be loaded; `mistakes` holds every mistake found, in file order."""

    def __init__(self, mistakes: Sequence[Mistake]) -> None:
        self.mistakes = tuple(mistakes)
        count = len(self.mistakes)
        head = "1 mistake" if count == 1 else f"{count} mistakes"
        super().__init__("\n".join([f"the configuration has {head}:", *(f"  {m}" for m in self.mistakes)]))

    @classmethod
    def of(cls, what: str) -> ConfigurationError:
        """One mistake that stands in no file."""
        return cls([Mistake("<python>", None, "", what)])


class InputError(GuardrailError):
    """The inputs that a run was opened with do not fit the task, or the run that is taken up; says which and how."""


class QueryRefused(GuardrailError):
    """A query is not provably read-only, or a request may lead elsewhere; the text says which part and why."""


class ExpressionError(GuardrailError):
    """An expression could not be compiled, or its evaluation failed; the text says where and why."""


class StoreError(GuardrailError):
    """A store could not be looked at: it is away, a table is missing, a limit was reached."""


class LedgerError(GuardrailError):
    """The ledger could not be written or read; says where it lies and what to do."""


class RunNotOpen(GuardrailError):
    """A guarded tool was called outside of an open run, or after its run had ended."""


class CallRefused(GuardrailError):
    """A call was not executed, and the run goes on.

    `reason` is one of "precondition_failed", "duplicate", "running", "in_doubt", "unknown_effect". The text may reach
    a model: it holds the declared words of the policy and no query and no data.
    """

    def __init__(self, tool: str, reason: str, text: str) -> None:
        self.tool = tool
        self.reason = reason
        super().__init__(text)


class RunStopped(GuardrailError):
    """The guard ended the run.

    Raised by leaving `guard.run()`, whatever the framework made of the signal before. `stop` says
    which call ended the run and why, `verdict` what the state came to. `others` are the stops of calls that
    were under way beside it and would have ended the run too.
    """

    def __init__(self, stop: Stop, verdict: Verdict | None = None, others: Sequence[Stop] = ()) -> None:
        self.stop = stop
        self.verdict = verdict
        self.others = tuple(others)
        super().__init__("; and ".join(map(str, (stop, *self.others))))


class SilentFailure(GuardrailError):
    """The run ended cleanly and left the wrong state; `verdict` holds the findings."""

    def __init__(self, verdict: Verdict) -> None:
        self.verdict = verdict
        super().__init__("\n".join([verdict.kind, *(f"  {finding}" for finding in verdict.findings)]))


class RunHalted(BaseException):
    """The guard ended the run: the signal that leaves a guarded tool.

    It derives from BaseException so that an agent loop's `except Exception` cannot turn it into a
    message for the model; that was measured to be safe for plain loops. Its text may reach a model,
    so it says that the run is over and nothing else. Leaving `guard.run()` turns it into `RunStopped`.
    """

    def __init__(self, stop: Stop) -> None:
        self.stop = stop
        super().__init__(FINAL)


FINAL = "This run is over. It was stopped and cannot be continued; no further tool call will be carried out."
