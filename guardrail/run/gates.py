"""Objects of a framework's (a model, a chat service) that are asked only while no run is over.

Such an object is given a class of its own, below the one that it has: for the framework it stays of its kind, and whatever
has it, asks it under the guard.
"""

from __future__ import annotations

from types import new_class
from typing import Any, ClassVar, cast
from weakref import WeakSet

from guardrail.run.adapter import Adapter


class Gated:
    """What a gated object's class begins with; the names are such as no field of it has.

    A class below this one overrides what asks, begins there with `ask_guards`, and goes on with that of `guarded_class`.
    """

    guarded_class: ClassVar[Any]
    guarding: ClassVar[WeakSet[Adapter[Any]]]
    """The adapters of all agents that have the object, as long as they are there."""

    def ask_guards(self) -> None:
        """Raise `RunHalted` if the run of one of them is over; see `Adapter.gate`."""
        for adapter in [*self.guarding]:
            adapter.gate()


def gate(asked: object, kind: type[Gated], adapter: Adapter[Any]) -> None:
    """Let an object be asked only while the adapter's run is not over; one that is gated already has one more adapter."""
    if not isinstance(asked, Gated):
        bare = cast("Any", type(asked))
        made: Any = new_class(bare.__name__, (kind, bare))
        made.guarded_class, made.guarding = bare, WeakSet[Adapter[Any]]()
        object.__setattr__(asked, "__class__", made)
    cast("Gated", asked).guarding.add(adapter)
