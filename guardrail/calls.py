"""The values that travel through a run: calls, what they came to, decisions, findings, verdicts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

Effect: TypeAlias = Literal["read", "write", "unknown"]
"""What a call does to the state of the world."""

Outcome: TypeAlias = Literal[
    "ok",
    "empty",
    "incomplete",
    "partial",
    "rejected",
    "error",
    "in_doubt",
    "cancelled",
    "precondition_failed",
    "refused",
]
"""What a call came to; the last two were not executed."""

Action: TypeAlias = Literal["allow", "hold", "stop"]
"""What the guard decides about a call."""

FindingKind: TypeAlias = Literal["wrong_value", "missing_change", "unrequested_change", "check_failed", "check_error"]
VerdictKind: TypeAlias = Literal["stopped", "agent_error", "silent_failure", "unverified", "verified"]


@dataclass(frozen=True, slots=True)
class Hints:
    """What whoever offers a tool says about it: its effect (None: nothing), and whether a repeat is harmless.

    `server` is the name of the MCP server that says so; None: the user's own code does (a framework's tag),
    which is trusted. A declaration in the policy wins over every hint.
    """

    effect: Effect | None = None
    idempotent: bool = False
    server: str | None = None


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One tool call as the model asked for it: the tool's name, its arguments, the framework's call id.

    `hints` are what whoever offers the tool says about it.
    """

    name: str
    args: Mapping[str, object]
    id: str | None = None
    hints: Hints | None = None


@dataclass(frozen=True, slots=True)
class Returned:
    """The tool returned a value."""

    value: object


@dataclass(frozen=True, slots=True)
class Raised:
    """The tool raised an error, was cancelled, or left by `KeyboardInterrupt` or `SystemExit`."""

    error: BaseException


Ending: TypeAlias = Returned | Raised
"""How a tool's execution ended."""


@dataclass(frozen=True, slots=True)
class Unmade:
    """Returned in a tool's place: the framework did not call it, as there is none of that name or its arguments do not fit.

    That is a mistake of the model's and no tool's no, so it holds nothing. `value` is what the framework tells the model.
    """

    value: object


@dataclass(frozen=True, slots=True)
class Halted:
    """The caller gets the signal that the run is over; `cause` is the tool's own error, if that led to it."""

    stop: Stop
    cause: BaseException | None = None


@dataclass(frozen=True, slots=True)
class Refused:
    """The caller gets a refusal: the call was not executed, and the run goes on."""

    tool: str
    reason: str
    text: str


Answer: TypeAlias = Returned | Raised | Halted | Refused
"""What the caller of a guarded tool gets; an adapter says it in its framework's own way."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """What a result came to, and the sign it was told by.

    `sign` is a low-cardinality word of the judging code ("exception", "error_field", "sentence", ...)
    that may become a metric's attribute. `message` is the tool's own words for a person (never for
    telemetry), bounded to 500 characters. `listed` is true for an empty answer that is a list (nothing
    matched) and false for one that looked for one thing and found nothing. `failed_items` names
    the items of a batch that were not done.
    """

    outcome: Outcome
    sign: str = ""
    message: str = ""
    listed: bool = False
    failed_items: tuple[str, ...] = ()
    not_found: bool = False

    @property
    def said(self) -> str:
        """The message for a record: with the items that were not done, the first ten by name."""
        if not self.failed_items:
            return self.message
        more = len(self.failed_items) - 10
        items = ", ".join(self.failed_items[:10]) + (f" and {more} more" if more > 0 else "")
        return f"{self.message} (not done: {items})".lstrip()


@dataclass(frozen=True, slots=True)
class Stop:
    """Why and where the guard ended a run.

    `reason` is one of a few words: "error", "rejected", "empty", "partial", "in_doubt",
    "precondition_failed", "write_under_hold", "conflict", "duplicate", "retries_used_up", "guard_error".
    `call` counts the calls of the run from 1; `detail` is for the operator, never for the model.
    """

    reason: str
    call: int
    tool: str
    detail: str = ""

    def __str__(self) -> str:
        """One line that a person on call understands."""
        detail = f": {' '.join(self.detail.split())}" if self.detail else ""
        return f"stopped at call {self.call} ({self.tool}), {self.reason.replace('_', ' ')}{detail}"


@dataclass(frozen=True, slots=True)
class Finding:
    """One way in which the state differs from the contract.

    `place` names where: `store.table`, or the name of a check. `key` is the row's key by column
    (empty for checks), `column` the column that differs (None: the whole row). `expected` and
    `actual` are plain values; `text` is one line that a person on call understands. `warning` marks
    what is shown without counting against the run (an unattributed change in a shared table).
    """

    kind: FindingKind
    place: str
    text: str
    key: Mapping[str, object] = field(default_factory=dict[str, object])
    column: str | None = None
    expected: object = None
    actual: object = None
    warning: bool = False

    def __str__(self) -> str:
        """The finding's one line."""
        return self.text


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a run came to.

    `kind` is the first that applies of `stopped`, `agent_error`, `silent_failure`, `unverified`,
    `verified`. `findings` are attached whatever the kind; `open_holds` counts the failures nobody
    resolved; `alternative` names the branch of `any_of` that was judged; `because` says why a run is
    `unverified` or `agent_error`, why this alternative was judged where no single one applies, and what to look
    for where nothing that was expected is to be seen; `looks` counts how often the state was looked at while
    it settled.
    """

    kind: VerdictKind
    findings: tuple[Finding, ...] = ()
    stop: Stop | None = None
    open_holds: int = 0
    alternative: str | None = None
    because: str = ""
    looks: int = 0

    @property
    def state_is_wrong(self) -> bool:
        """Whether the state was shown to be wrong, whatever the verdict's kind."""
        return any(f.kind != "check_error" and not f.warning for f in self.findings)

    def __str__(self) -> str:
        """One line: the kind and what it rests on."""
        wrong = [finding for finding in self.findings if not finding.warning]
        more = f" (and {len(wrong) - 1} more)" if len(wrong) > 1 else ""
        found = f"{wrong[0]}{more}" if wrong else ""
        if self.stop is not None:  # whose line begins with the kind
            return f"{self.stop}; the state: {found}" if found else str(self.stop)
        rest = [self.because, "" if self.because.startswith(found) else found]
        return ": ".join(filter(None, [self.kind, "; ".join(filter(None, rest))]))
