"""A step: one call on its way, what was known when it was admitted and what is learned until it ends."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from guardrail.call.facts import Facts
from guardrail.call.tools import LiveTool
from guardrail.calls import Effect, Ending, Stop, ToolCall
from guardrail.decide.operations import Operation, Repeat
from guardrail.decide.rules import Refusal
from guardrail.stores.store import Store
from guardrail.telemetry.traces import CallTrace


@dataclass(frozen=True, slots=True)
class Circumstances:
    """What all calls of a run have in common: its task, its inputs, what is known by now, its stores.

    `enforced` is false where the run is only observed.
    """

    task: str | None
    enforced: bool
    inputs: Mapping[str, object]
    facts: Facts
    stores: Mapping[str, Store]


@dataclass(slots=True)
class Step:
    """One call of a run.

    `number` counts the run's calls from 1. `barrier` is what stands against the call; it is enforced
    unless the run only observes. `arguments` are the redacted arguments as JSON text, taken before the
    tool could change them. `operation` is the write that the call would be; `repeated` what it is in the
    light of an earlier one. `intended`, `executed` and `settled` tell how far it has come, `suspended`
    that its stream waits for its reader.
    """

    call: ToolCall
    number: int
    tool: LiveTool
    effect: Effect
    arguments: str
    started: float
    trace: CallTrace
    run: Circumstances
    operation: Operation | None = None
    repeated: Repeat | None = None
    barrier: Refusal | Stop | None = None
    ending: Ending | None = None
    intended: bool = False
    executed: bool = False
    settled: bool = False
    suspended: bool = False

    @property
    def barred(self) -> bool:
        """Whether the call must not run."""
        return self.barrier is not None and self.run.enforced
