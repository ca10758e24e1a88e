"""What the ledger keeps: the records of a run, and what is read back of it.

All texts are redacted and bounded by the caller. Fields that hold JSON say so. Times are seconds since
the epoch; calls and holds of a run are numbered from 1.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from guardrail.calls import Action, Effect, FindingKind, Outcome, Stop, VerdictKind


@dataclass(frozen=True, slots=True)
class RunRecord:
    """A run as it opens. `inputs` is JSON; `pid` and `host` name the process that runs it."""

    id: str
    task: str | None
    inputs: str
    policy: str
    mode: str
    started: float
    pid: int
    host: str
    trace_id: str | None = None


class CallRecord(NamedTuple):
    """A call as it was asked for. `args` is JSON; `operation` the operation key of a write.

    This and `OutcomeRecord` are named tuples: two are made for every call, and a frozen dataclass costs
    six times as much.
    """

    run: str
    number: int
    tool: str
    call_id: str | None
    effect: Effect
    args: str
    digest: str
    operation: str | None
    started: float


class OutcomeRecord(NamedTuple):
    """What a call came to. `rule` names what would have stopped it, or why it was let through.

    `call` is given when the call has no intent in the ledger (a read, a call that was not executed) or may have
    none: then call and outcome are kept as one.
    """

    run: str
    number: int
    outcome: Outcome
    sign: str
    message: str
    action: Action
    executed: bool
    ended: float
    rule: str = ""
    result: str | None = None
    call: CallRecord | None = None


@dataclass(frozen=True, slots=True)
class HoldRecord:
    """A hold that was opened by a call; recorded again under its number, it replaces the earlier one.

    `args` (JSON) are the arguments of the failed call, `rest` (JSON) whatever else rebuilds the hold.
    """

    run: str
    number: int
    call: int
    tool: str
    outcome: Outcome
    detail: str
    args: str
    rest: str = "{}"


@dataclass(frozen=True, slots=True)
class HoldResolved:
    """A hold was resolved, and by what."""

    run: str
    number: int
    by: str
    at: float


@dataclass(frozen=True, slots=True)
class BoundInput:
    """An input of the run is known; `value` is JSON. The last one of a name counts."""

    run: str
    name: str
    value: str


@dataclass(frozen=True, slots=True)
class UserTurn:
    """The real user has spoken."""

    run: str
    at: float


@dataclass(frozen=True, slots=True)
class StopRecord:
    """The guard ended the run. The first stop of a run counts."""

    run: str
    reason: str
    call: int
    tool: str
    detail: str
    at: float


@dataclass(frozen=True, slots=True)
class PictureRecord:
    """A table's state in its stored form. The last one of a table counts."""

    run: str
    place: str
    content: bytes


@dataclass(frozen=True, slots=True)
class FindingRecord:
    """One way in which the state differs from the contract; `key`, `expected` and `actual` are JSON."""

    kind: FindingKind
    place: str
    text: str
    key: str = "{}"
    column: str | None = None
    expected: str | None = None
    actual: str | None = None
    warning: bool = False


@dataclass(frozen=True, slots=True)
class VerdictRecord:
    """What a run came to, and when it ended."""

    run: str
    kind: VerdictKind
    because: str
    open_holds: int
    alternative: str | None
    looks: int
    ended: float
    findings: tuple[FindingRecord, ...] = ()


Entry: TypeAlias = OutcomeRecord | HoldRecord | HoldResolved | BoundInput | UserTurn | StopRecord | PictureRecord
"""What is buffered and written in groups."""


@dataclass(frozen=True, slots=True)
class RecordedCall:
    """A call read back; without an outcome, nobody knows what became of it."""

    call: CallRecord
    outcome: OutcomeRecord | None


@dataclass(frozen=True, slots=True)
class RecordedHold:
    """A hold read back, and what resolved it."""

    hold: HoldRecord
    resolved: HoldResolved | None


@dataclass(frozen=True, slots=True)
class RunHistory:
    """Everything that is known of a run, enough to take it up again.

    `ended` is None while the run is open; `alive` tells whether an open run's process still lives (None: it
    runs on another host and the ledger's database cannot know, or the run is closed). `verdict` is the last one given, also when the run was taken up again after it. `lost`
    counts records that could not be kept; a number above 0 says that the history has gaps. `would_stop` is the
    stop that a run was spared because it was only observed.
    """

    run: RunRecord
    ended: float | None
    alive: bool | None
    calls: tuple[RecordedCall, ...]
    holds: tuple[RecordedHold, ...]
    inputs: Mapping[str, str]
    turns: tuple[float, ...]
    stop: StopRecord | None
    verdict: VerdictRecord | None
    lost: int
    would_stop: Stop | None = None

    @property
    def unfinished(self) -> tuple[CallRecord, ...]:
        """The intents without an outcome: begun, and then the process ended or is still at it."""
        return tuple(c.call for c in self.calls if c.outcome is None)

    @property
    def in_doubt(self) -> tuple[CallRecord, ...]:
        """The writes that may have happened: the unfinished, and those known to be in doubt and not resolved."""
        resolved = {h.hold.call for h in self.holds if h.resolved is not None}
        return tuple(c.call for c in self.calls if _doubtful(c) and c.call.number not in resolved)

    @property
    def open_holds(self) -> tuple[HoldRecord, ...]:
        """The holds that nothing resolved."""
        return tuple(h.hold for h in self.holds if h.resolved is None)


@dataclass(frozen=True, slots=True)
class RunSummary:
    """A run in one line of a list.

    `alive` as in `RunHistory`; an open run that is not alive was cut off. `calls`, `in_doubt` (writes that
    may have happened), `open_holds` and `findings` are counts, `stop` the reason of the stop, `would_stop`
    the stop that it was spared because it was only observed.
    """

    run: RunRecord
    ended: float | None
    alive: bool | None
    calls: int
    in_doubt: int
    open_holds: int
    stop: str | None
    verdict: VerdictKind | None
    findings: int
    lost: int
    would_stop: Stop | None

    @property
    def open(self) -> bool:
        """Whether the run has not been closed."""
        return self.ended is None


def _doubtful(recorded: RecordedCall) -> bool:
    return recorded.outcome is None or recorded.outcome.outcome == "in_doubt"
