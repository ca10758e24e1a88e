"""The writes of a run by operation: what is running, done, or in doubt."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from guardrail.call.tools import LiveTool
from guardrail.calls import Outcome, ToolCall
from guardrail.decide.operations import Operation, Repeat, after, repeat
from guardrail.telemetry.canonical import digest


@dataclass(frozen=True, slots=True)
class Named:
    """What makes a write the same as another: its operation's key, and the digest of all its arguments."""

    key: str
    digest: str
    declared: bool


class Writes:
    """What is known of the writes of one run. The run's lock is held around every method but `named`."""

    def __init__(self, run: str) -> None:
        # Under a key of the run's own, equal arguments of two runs have different digests.
        self._secret = run.encode()
        self._known: dict[str, Operation] = {}

    def named(self, call: ToolCall, tool: LiveTool) -> Named:
        """The operation that a call is: by `once_per`, or by all its arguments."""
        whole = digest(call.name, call.args, self._secret)
        if not tool.once_per:
            return Named(whole, whole, declared=False)
        declared = {name: call.args.get(name) for name in tool.once_per}
        return Named(digest(f"{call.name} once per", declared, self._secret), whole, declared=True)

    def repeated(self, named: Named, *, idempotent: bool) -> tuple[Repeat | None, int]:
        """What a write is in the light of an earlier one, and that one's number."""
        earlier = self._known.get(named.key)
        if earlier is None or (idempotent and earlier.state == "in_doubt"):
            return None, 0
        return repeat(named.digest, earlier), earlier.call

    def claim(self, number: int, named: Named) -> Operation:
        """Note that a write is about to run, so that none beside it does the same."""
        operation = Operation(named.key, named.digest, named.declared, "running", number)
        self._known.setdefault(named.key, operation)
        return operation

    def know(self, operation: Operation, outcome: Outcome | None) -> None:
        """Note what became of a write; None: it was not carried out."""
        known = None if outcome is None else after(operation, outcome)
        earlier = self._known.get(operation.key)
        if known is not None:
            self._known[operation.key] = known
        elif earlier is not None and earlier.call == operation.call:
            del self._known[operation.key]

    def restore(self, operations: Mapping[str, Operation]) -> None:
        """Take over what an earlier process knew."""
        self._known.update(operations)
