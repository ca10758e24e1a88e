"""Loading: files to one configuration, or every mistake of all of them at once."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from os import PathLike
from pathlib import Path
from typing import Final, cast

from guardrail.declare.bundled import names as bundled_names
from guardrail.declare.configuration import Configuration
from guardrail.declare.consistency import Known, faults
from guardrail.declare.documents import Document, read
from guardrail.declare.environment import Filling
from guardrail.declare.faults import Fault, Place, dotted
from guardrail.declare.policies import Policy
from guardrail.declare.pruning import Pruned, prune
from guardrail.declare.validation import Model, emptied, validated
from guardrail.errors import ConfigurationError, Mistake

MOST_FILES: Final = 200
"""How many files one configuration can be made of."""

_SECTIONS: Final = ("stores", "tools", "tasks")
"""The keys whose entries come from any of the files, by name."""


def load(path: str | PathLike[str], environ: Mapping[str, str] = os.environ) -> Configuration:
    """Read the configuration file at `path` and all that it includes, whole or not at all.

    `${env:X}` in a text is replaced from `environ`. `policy`, if it names a file, becomes what the file
    says. Raises ConfigurationError with every mistake of every file, each with file, line and field.
    """
    return _Loading(Filling(environ)).configuration(Path(path))


def check(configuration: Configuration) -> tuple[Mistake, ...]:
    """Every mistake of a configuration that was written in Python, beyond what its models refuse by themselves."""
    found = (Mistake("<python>", None, dotted(f.place), f.what, f.advice) for f in faults(configuration))
    return tuple(dict.fromkeys(found))


@dataclass(slots=True)
class _File:
    """One file: what it says with the environment filled in, what is wrong with it, and what is left without that."""

    document: Document
    value: object
    faults: list[Fault]
    rest: Pruned = field(default_factory=lambda: Pruned(None))

    def add(self, found: Iterable[Fault]) -> None:
        """Add faults, but none at a place, or inside one, that was faulty before: it would follow from that."""
        before = {fault.place for fault in self.faults}
        self.faults += [f for f in found if not any(f.place[:end] in before for end in range(1, len(f.place) + 1))]

    def validate(self, model: type[Model]) -> Model | None:
        """Find what is wrong with it by itself, and make the model of what is left; None when nothing is."""
        declared, found = validated(model, self.value, self.document.value)
        self.add(found)
        self.rest = Pruned(self.value)
        wrong = {self._standing(fault.place) for fault in self.faults}
        if wrong:
            declared = self._validate_rest(model, wrong)
        if declared is not None:
            self.add([replace(fault, place=self.rest.original(fault.place)) for fault in emptied(declared)])
        return declared

    def _validate_rest(self, model: type[Model], wrong: set[Place]) -> Model | None:
        while () not in wrong:
            self.rest = prune(self.value, wrong)
            declared, found = validated(model, self.rest.value, self.rest.value)
            if declared is not None:
                return declared
            # What cannot do without a part that was taken away goes too.
            wrong |= {self._around(self.rest.original(fault.place), wrong) for fault in found}
        self.rest = Pruned(None)
        return None

    def _standing(self, place: Place) -> Place:
        """The place, or the nearest around it that stands in the file (a missing key does not)."""
        return next(place[:end] for end in range(len(place), -1, -1) if stands(self.value, place[:end]))

    def _around(self, place: Place, wrong: set[Place]) -> Place:
        place = self._standing(place)
        while place in wrong:
            place = place[:-1]
        return place

    def doubts(self, fault: Fault) -> bool:
        """Whether a fault that says that a name is not there may only come from what could not be read."""
        return fault.absent and any(known.place[:2] == fault.place[:2] for known in self.faults)

    def mistakes(self) -> list[Mistake]:
        """What is wrong, by line."""
        found = dict.fromkeys(self.document.mistake(fault) for fault in self.faults)
        return sorted(found, key=lambda mistake: mistake.line or 0)


class _Loading:
    """The loading of one configuration."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._filling = Filling(environ)
        self._all: list[_File] = []
        self._merging: list[_File] = []
        self._seen: set[str] = set()
        self._sure = True

    def configuration(self, path: Path) -> Configuration:
        """The whole configuration, or ConfigurationError."""
        self._gather(self._open(path), path, ())
        merged = self._merged()
        declared, found = validated(Configuration, merged, merged)
        if declared is not None:
            self._hold_together(declared)
        mistakes = [mistake for file in self._all for mistake in file.mistakes()]
        if mistakes or declared is None:
            assert mistakes, found
            raise ConfigurationError([self._without_secrets(mistake) for mistake in mistakes])
        return declared

    def _open(self, path: Path) -> _File:
        document = read(path)
        faults = [*document.faults, *self._filling.faults(document.value)]
        file = _File(document, self._filling.fill(document.value), faults)
        self._all.append(file)
        return file

    def _gather(self, file: _File, path: Path, within: tuple[str, ...]) -> None:
        """Read what a file includes, then take the file itself: includes are merged before it."""
        if not file.document.readable:
            self._sure = False
            return
        chain = (*within, os.path.realpath(path))
        self._seen.add(chain[-1])
        file.validate(Configuration)
        for position, name in enumerate(self._includes(file)):
            self._include(file, position, path.parent / name, chain)
        self._read_policy(file, path)
        self._merging.append(file)

    def _includes(self, file: _File) -> list[str]:
        ...
