"""What is declared of a tool's result, with its pointers read once: signals and batches."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

from guardrail.calls import Judgement, Outcome
from guardrail.declare.tools import Batch, Signal
from guardrail.judge.fields import fields_of, is_list, reach
from guardrail.judge.meanings import LONGEST_ITEM_NAME, Meaning, conclude, is_failure
from guardrail.judge.wording import words
from guardrail.pointers import MISSING, tokens

Steps: TypeAlias = tuple[str, ...]
"""The steps of a JSON pointer."""


@dataclass(frozen=True, slots=True)
class DeclaredSignal:
    """A declared field that tells the outcome."""

    at: Steps
    values: tuple[object, ...]
    means: Outcome

    @staticmethod
    def of(signal: Signal) -> DeclaredSignal:
        """The signal with its pointer read."""
        return DeclaredSignal(tokens(signal.at), signal.is_in, signal.means)

    def holds(self, value: object) -> bool:
        """Whether a value is one of the declared ones; true is not 1."""
        return any(isinstance(value, bool) is isinstance(known, bool) and value == known for known in self.values)


@dataclass(frozen=True, slots=True)
class DeclaredBatch:
    """Where a batch's result lists its items, and what makes one failed."""

    items: Steps
    error: Steps
    key: Steps | None

    @staticmethod
    def of(batch: Batch) -> DeclaredBatch:
        """The batch with its pointers read; a key without a slash is the name of a field."""
        key = None if batch.key is None else tokens(batch.key) if batch.key.startswith("/") else (batch.key,)
        return DeclaredBatch(tokens(batch.items), tokens(batch.error), key)

    def judge(self, value: object) -> Judgement | None:
        """The judgement of a batch with failed items: `partial`, or `error` if all failed; None if none did."""
        entries = list(self._items(reach(value, self.items)))
        failed = [(name, error) for name, item in entries if is_failure(error := self._error(item))]
        if not failed:
            return None
        meaning: Meaning = "error" if len(failed) == len(entries) else "partial"
        return conclude(meaning, "write", "batch", words([e for _, e in failed]), tuple(name for name, _ in failed))

    def _items(self, items: object) -> Iterator[tuple[str, object]]:
        """The items with their names: the declared key, else the place in the list or mapping."""
        named = dict(enumerate(items)) if is_list(items) else fields_of(items) or {}
        for place, item in named.items():
            key = place if self.key is None else reach(item, self.key)
            yield str(key if isinstance(key, str | int) else place)[:LONGEST_ITEM_NAME], item

    def _error(self, item: object) -> object:
        error = reach(item, self.error)
        return None if error is MISSING else error
