"""The files of a configuration: what each says, what is wrong with it, what is left of it without that."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, cast

from guardrail.declare.configuration import Configuration
from guardrail.declare.contracts import Task
from guardrail.declare.documents import Document
from guardrail.declare.faults import Fault, Place
from guardrail.declare.pruning import Pruned, prune, stands
from guardrail.declare.validation import Model, emptied, keys, validated

SECTIONS: Final = ("stores", "tools", "tasks", "servers")
"""The keys whose entries may come from any of the files, each name from one."""
_SHARED: Final = ("version", "include", "openapi", "sentences")
"""The keys that may stand in every file."""

_WITHOUT_NAMES: Final = frozenset(keys(Configuration)).difference(SECTIONS, ("include", "openapi"))
"""The keys that declare no names."""


@dataclass(slots=True, eq=False)
class File:
    """One file: what it says with the environment filled in, what is wrong with it, and what is left without that.

    The first `raw` faults were found in the text before anything was filled in.
    """

    document: Document
    value: object
    faults: list[Fault]
    raw: int
    rest: Pruned = field(default_factory=lambda: Pruned(None))

    @property
    def entries(self) -> Mapping[str, Any]:
        """What is left of it, by key."""
        return mapping(self.rest.value)

    def add(self, found: Iterable[Fault]) -> None:
        """Add faults, but none at a place, or inside one, that was faulty before: it would follow from that."""
        before = {fault.place for fault in self.faults}
        self.faults += [f for f in found if not any(f.place[:end] in before for end in range(1, len(f.place) + 1))]

    def validate(self, model: type[Model]) -> Model | None:
        """Find what is wrong with it by itself, and make the model of what is left; None when nothing is."""
        declared, found = validated(model, self.value, self.document.value)
        self.add(self.certain(found))
        self.rest = Pruned(self.value)
        wrong = {self._standing(fault.place) for fault in self.faults}
        if wrong:
            declared = self._validate_rest(model, wrong)
        if declared is not None:
            self.add([self.original(fault) for fault in emptied(declared)])
        return declared

    def _validate_rest(self, model: type[Model], wrong: set[Place]) -> Model | None:
        while () not in wrong:
            self.rest = prune(self.value, wrong)
            declared, found = validated(model, self.rest.value, self.rest.value)
            if declared is not None:
                return declared
            # What cannot do without a part that was taken away goes with it.
            wrong |= {self._around(self.rest.original(fault.place), wrong) for fault in found}
        self.rest = Pruned(None)
        return None

    def original(self, fault: Fault) -> Fault:
        """A fault of what is left, at its places in the file."""
        around = tuple(self.rest.original(place) for place in fault.rests_on)
        return replace(fault, place=self.rest.original(fault.place), rests_on=around)

    def _standing(self, place: Place) -> Place:
        """The place, or the nearest around it that stands in the file (a missing key does not)."""
        return next(place[:end] for end in range(len(place), -1, -1) if stands(self.value, place[:end]))

    def _around(self, place: Place, wrong: set[Place]) -> Place:
        place = self._standing(place)
        while place in wrong:
            place = place[:-1]
        return place

    def names(self) -> Iterator[Place]:
        """The places that only one of all files may give."""
        for key, value in mapping(self.value).items():
            if key in SECTIONS:
                yield from ((key, name) for name in mapping(value))
            elif key not in _SHARED:
                yield (key,)

    @property
    def complete(self) -> bool:
        """Whether all of its entries are known: no section is unreadable, and no key may be a section misspelt."""
        named = {fault.place[0] for fault in self.faults if len(fault.place) == 1}
        return self.document.readable and self.rest.value is not None and named.issubset(_WITHOUT_NAMES)

    def certain(self, found: Iterable[Fault]) -> list[Fault]:
        """The faults that cannot just come from something else that is wrong: around them, or a key of their task."""
        wrong = {fault.place[:end] for fault in self.faults for end in range(1, len(fault.place) + 1)}
        misspelt = {fault.place[:2] for fault in self.faults if _misspelt(fault.place)}
        return [f for f in found if not f.rests_on or (wrong.isdisjoint(f.rests_on) and f.place[:2] not in misspelt)]


def _misspelt(place: Place) -> bool:
    """Whether a place is a key of a task that there is none of."""
    return len(place) == 3 and place[0] == "tasks" and place[2] not in keys(Task)


def mapping(value: object) -> Mapping[str, Any]:
    """A value that should be a mapping; an empty one if it is none."""
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}


def items(value: object) -> list[Any]:
    """A value that should be a list; an empty one if it is none."""
    return list(cast("Iterable[Any]", value)) if isinstance(value, list) else []
