"""Loading: files to one configuration, or every mistake of all of them at once."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from os import PathLike
from pathlib import Path
from typing import Any, Final, cast

from guardrail.declare.bundled import names as bundled_names
from guardrail.declare.configuration import Configuration
from guardrail.declare.consistency import Known, faults
from guardrail.declare.documents import Document, read
from guardrail.declare.environment import Filling
from guardrail.declare.faults import Fault, Place, dotted
from guardrail.declare.policies import Policy
from guardrail.declare.pruning import Pruned, prune, stands
from guardrail.declare.validation import Model, emptied, validated
from guardrail.errors import ConfigurationError, Mistake

MOST_FILES: Final = 200
"""How many files one configuration can be made of."""

_SECTIONS: Final = ("stores", "tools", "tasks")
"""The keys whose entries may come from any of the files, each name from one."""
_SHARED: Final = ("version", "include", "sentences")
"""The keys that may stand in every file."""
_NAMELESS: Final = frozenset((key,) for key in ("settle", "checks", "allow", "description", "on_silent_failure"))
"""The parts of a task that nothing else in it rests on."""


def load(path: str | PathLike[str], environ: Mapping[str, str] = os.environ) -> Configuration:
    """Read the configuration file at `path` and all that it includes, whole or not at all.

    `${env:X}` in a text is replaced from `environ`. A `policy` that names a file becomes what the file
    says. Raises ConfigurationError with every mistake of every file, each with file, line and field.
    """
    return _Loading(environ).configuration(Path(path))


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

    @property
    def entries(self) -> Mapping[str, Any]:
        """What is left of it, by key."""
        return _mapping(self.rest.value)

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
            # What cannot do without a part that was taken away goes with it.
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

    def names(self) -> Iterator[Place]:
        """The places that only one of all files may give."""
        for key, value in _mapping(self.value).items():
            if key in _SECTIONS:
                yield from ((key, name) for name in _mapping(value))
            elif key not in _SHARED:
                yield (key,)

    def doubts(self, fault: Fault) -> bool:
        """Whether a fault may only come from a part of its entry that could not be read."""
        return fault.rests_on == "entry" and any(
            known.place[:2] == fault.place[:2] and known.place[2:3] not in _NAMELESS for known in self.faults
        )

    def mistakes(self) -> list[Mistake]:
        """What is wrong with it, by line."""
        found = dict.fromkeys(self.document.mistake(fault) for fault in self.faults)
        return sorted(found, key=lambda mistake: mistake.line or 0)


class _Loading:
    """The loading of one configuration; files are known in the order in which they are named."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._filling = Filling(environ)
        self._all: list[_File] = []
        self._merging: list[_File] = []
        self._seen: set[str] = set()
        self._sure = True

    def configuration(self, path: Path) -> Configuration:
        """The whole configuration; raises ConfigurationError with everything that is wrong."""
        file = self._read(path)
        self._all.append(file)
        self._gather(file, path, ())
        owners = self._owners()
        declared = self._merged()
        self._hold_together(declared, owners)
        mistakes = [self._without_secrets(mistake) for file in self._all for mistake in file.mistakes()]
        if mistakes:
            raise ConfigurationError(mistakes)
        return declared

    def _read(self, path: Path) -> _File:
        document = read(path)
        faults = [*document.faults, *self._filling.faults(document.value)]
        return _File(document, self._filling.fill(document.value), faults)

    def _gather(self, file: _File, path: Path, within: tuple[str, ...]) -> None:
        """Take a file, after all that it includes."""
        chain = (*within, os.path.realpath(path))
        self._seen.add(chain[-1])
        if not file.document.readable:
            self._sure = False
            return
        file.validate(Configuration)
        for position, name in enumerate(_list(_mapping(file.value).get("include"))):
            if isinstance(name, str):
                self._include(file, ("include", position), path.parent / name, chain)
        self._take_policy(file, path.parent)
        self._merging.append(file)

    def _include(self, file: _File, place: Place, path: Path, chain: tuple[str, ...]) -> None:
        real = os.path.realpath(path)
        if real in chain:
            circle = " → ".join(Path(part).name for part in (*chain[chain.index(real) :], real))
            file.add([Fault(place, f"the files include each other in a circle: {circle}")])
        elif len(self._all) >= MOST_FILES:
            file.add([Fault(place, f"is one file too many: {MOST_FILES} is the most")])
        elif real not in self._seen:
            included = self._named(path, file, place)
            if included is not None:
                self._gather(included, path, chain)

    def _named(self, path: Path, by: _File, place: Place) -> _File | None:
        """A file that another one names; where there is none at all, that is a mistake of the other one."""
        named = self._read(path)
        if named.document.readable or named.faults[0].line is not None:
            self._all.append(named)
            return named
        self._sure = False
        by.add([Fault(place, f"{path}: {named.faults[0].what}", named.faults[0].advice)])
        return None

    def _take_policy(self, file: _File, base: Path) -> None:
        """Put what a policy file says in the place of its path."""
        named = file.entries.get("policy")
        if not isinstance(named, str) or named in bundled_names() or not _is_path(named):
            return
        found = self._named(base / named, file, ("policy",))
        policy = found.validate(Policy) if found is not None and found.document.readable else None
        others = {key: value for key, value in file.entries.items() if key != "policy"}
        file.rest = replace(file.rest, value=others if policy is None else {**others, "policy": policy})

    def _owners(self) -> dict[Place, _File]:
        """The file that gives each name; a second one is a mistake."""
        owners: dict[Place, _File] = {}
        for file in self._merging:
            for place in file.names():
                owner = owners.setdefault(place, file)
                if owner is not file:
                    where = f"{owner.document.file}, line {owner.document.line(place)}"
                    file.add([Fault(place, f"is already given in {where}", "give it in one of the files")])
        return owners

    def _merged(self) -> Configuration:
        """One configuration of what is faultless in all files; of a name that two give, the first."""
        merged: dict[str, Any] = {}
        for file in self._merging:
            for key, value in file.entries.items():
                if key in _SECTIONS:
                    section = merged.setdefault(key, {})
                    section.update((name, entry) for name, entry in value.items() if name not in section)
                elif key == "sentences":
                    merged[key] = [*merged.get(key, []), *value]
                else:
                    merged.setdefault(key, value)
        return Configuration.model_validate(merged, by_alias=True, by_name=False)

    def _hold_together(self, declared: Configuration, owners: Mapping[Place, _File]) -> None:
        found: dict[int, list[Fault]] = {}
        for fault in faults(declared, self._known(declared, owners)):
            file = owners.get(fault.place[:2], owners.get(fault.place[:1], self._all[0]))
            if not file.doubts(fault) and (self._sure or not fault.rests_on):
                place = file.rest.original(fault.place)
                found.setdefault(self._all.index(file), []).append(replace(fault, place=place))
        for position, those in found.items():
            self._all[position].add(those)

    def _known(self, declared: Configuration, owners: Iterable[Place]) -> Known:
        """What is declared, with the names of what could not be read."""
        named = {key: [str(place[1]) for place in owners if place[0] == key] for key in _SECTIONS}
        known = Known.of(declared)
        return Known(
            stores={**dict.fromkeys(named["stores"]), **known.stores},
            tools=known.tools.union(named["tools"]),
            inputs=known.inputs if self._sure and not self._doubts_tasks() else None,
        )

    def _doubts_tasks(self) -> bool:
        return any(fault.place[:1] == ("tasks",) for file in self._merging for fault in file.faults)

    def _without_secrets(self, mistake: Mistake) -> Mistake:
        return replace(mistake, what=self._filling.hide(mistake.what), advice=self._filling.hide(mistake.advice))


def _is_path(named: str) -> bool:
    return "/" in named or os.sep in named or named.endswith((".yaml", ".yml"))


def _mapping(value: object) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}


def _list(value: object) -> list[Any]:
    return list(cast("Iterable[Any]", value)) if isinstance(value, list) else []
