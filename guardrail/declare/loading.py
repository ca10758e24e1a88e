"""Loading: files to one configuration, or every mistake of all of them at once."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any, Final

from guardrail.calls import Effect
from guardrail.declare.bundled import names as bundled_names
from guardrail.declare.configuration import Configuration
from guardrail.declare.consistency import faults
from guardrail.declare.documents import read
from guardrail.declare.environment import Filling
from guardrail.declare.faults import Fault, Place, at, dotted
from guardrail.declare.files import SECTIONS, File, items, mapping
from guardrail.declare.known import Known
from guardrail.declare.openapi import operations, with_operations
from guardrail.declare.policies import Policy
from guardrail.errors import ConfigurationError, Mistake

MOST_FILES: Final = 200
"""How many files one configuration can be made of."""


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


class _Loading:
    """The loading of one configuration; files are known in the order in which they are named."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._filling = Filling(environ)
        self._all: list[File] = []
        self._merging: list[File] = []
        self._seen: set[str] = set()
        self._operations: dict[str, tuple[str, Effect]] = {}
        self._sure = True

    def configuration(self, path: Path) -> Configuration:
        """The whole configuration; raises ConfigurationError with everything that is wrong."""
        file = self._read(path)
        self._all.append(file)
        self._gather(file, path, ())
        owners = self._owners()
        self._sure = self._sure and all(file.complete for file in self._merging)
        declared = self._merged()
        self._hold_together(declared, owners)
        mistakes = [mistake for file in self._all for mistake in self._mistakes(file)]
        if mistakes:
            raise ConfigurationError(mistakes)
        return declared

    def _read(self, path: Path) -> File:
        document = read(path)
        faults = [*document.faults, *self._filling.faults(document.value)]
        return File(document, self._filling.fill(document.value), faults, len(faults))

    def _gather(self, file: File, path: Path, within: tuple[str, ...]) -> None:
        """Take a file, after all that it includes."""
        if not file.document.readable:
            self._sure = False
            return
        chain = (*within, _real(path))
        self._seen.add(chain[-1])
        file.validate(Configuration)
        for position, name in enumerate(items(mapping(file.value).get("include"))):
            if isinstance(name, str) and name:
                self._include(file, ("include", position), path.parent / name, chain)
        self._take_policy(file, path.parent)
        for position, name in enumerate(items(mapping(file.value).get("openapi"))):
            if isinstance(name, str) and name:
                self._take_operations(file, ("openapi", position), path.parent / name)
        self._merging.append(file)

    def _include(self, file: File, place: Place, path: Path, chain: tuple[str, ...]) -> None:
        real = _real(path)
        if real in chain:
            circle = " → ".join(Path(part).name for part in (*chain[chain.index(real) :], real))
            file.add([Fault(place, f"the files include each other in a circle: {circle}")])
        elif len(self._all) >= MOST_FILES:
            file.add([Fault(place, f"is one file too many: {MOST_FILES} is the most")])
        elif real not in self._seen:
            included = self._named(path, file, place)
            if included is not None:
                self._gather(included, path, chain)

    def _take_operations(self, by: File, place: Place, path: Path) -> None:
        """Take the operations of an OpenAPI document; each id is given by one of all documents."""
        real = _real(path)
        if real in self._seen:
            return
        self._seen.add(real)
        spec = operations(path)
        document = spec.document
        file = self._known_file(File(document, document.value, [*spec.faults], len(spec.faults)), path, by, place)
        self._sure = self._sure and document.readable and not spec.faults
        for name, (where, effect) in spec.found.items():
            earlier, _ = self._operations.setdefault(name, (document.file, effect))
            if earlier != document.file and file is not None:
                file.add([Fault(where, f"is already given in {earlier}", "name one of the documents")])

    def _named(self, path: Path, by: File, place: Place) -> File | None:
        """A file that another one names; where there is none at all, that is a mistake of the other one."""
        return self._known_file(self._read(path), path, by, place)

    def _known_file(self, named: File, path: Path, by: File, place: Place) -> File | None:
        if named.document.readable or named.faults[0].line is not None:
            self._all.append(named)
            return named
        self._sure = False
        by.add([Fault(place, f"{path}: {named.faults[0].what}", named.faults[0].advice)])
        return None

    def _take_policy(self, file: File, base: Path) -> None:
        """Put what a policy file says in the place of its path."""
        named = file.entries.get("policy")
        if not isinstance(named, str) or named in bundled_names() or not _is_path(named):
            return
        found = self._named(base / named, file, ("policy",))
        policy = found.validate(Policy) if found is not None and found.document.readable else None
        others = {key: value for key, value in file.entries.items() if key != "policy"}
        file.rest = replace(file.rest, value=others if policy is None else {**others, "policy": policy})

    def _owners(self) -> dict[Place, File]:
        """The file that gives each name; a second one is a mistake."""
        owners: dict[Place, File] = {}
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
                if key in SECTIONS:
                    section = merged.setdefault(key, {})
                    section.update((name, entry) for name, entry in value.items() if name not in section)
                elif key == "sentences":
                    merged[key] = [*merged.get(key, []), *value]
                elif key not in ("include", "openapi"):
                    merged.setdefault(key, value)
        declared = Configuration.model_validate(merged, by_alias=True, by_name=False)
        effects: dict[str, Effect] = {name: effect for name, (_, effect) in self._operations.items()}
        return declared.model_copy(update={"tools": with_operations(declared.tools, effects)})

    def _hold_together(self, declared: Configuration, owners: Mapping[Place, File]) -> None:
        found: dict[File, list[Fault]] = {}
        for fault in faults(declared, self._known(declared, owners)):
            file = owners.get(fault.place[:2], owners.get(fault.place[:1], self._all[0]))
            if self._sure or () not in fault.rests_on:
                found.setdefault(file, []).append(file.original(fault))
        for file, those in found.items():
            file.add(file.certain(those))

    def _known(self, declared: Configuration, owners: Iterable[Place]) -> Known:
        """What is declared, with the names of what could not be read."""
        named = {key: [str(place[1]) for place in owners if place[0] == key] for key in SECTIONS}
        known = Known.of(declared)
        return Known(
            stores={**dict.fromkeys(named["stores"]), **known.stores},
            tools=known.tools.union(named["tools"]),
            inputs=known.inputs if self._sure and not self._doubts_tasks() else None,
        )

    def _doubts_tasks(self) -> bool:
        return any(fault.place[:1] == ("tasks",) for file in self._merging for fault in file.faults)

    def _mistakes(self, file: File) -> list[Mistake]:
        """What is wrong with a file, by line."""
        written = file.document.value
        veiled = [self._filling.veiled(fault, at(written, fault.place)) for fault in file.faults[file.raw :]]
        found = dict.fromkeys(file.document.mistake(fault) for fault in (*file.faults[: file.raw], *veiled))
        return sorted(found, key=lambda mistake: mistake.line or 0)


def _real(path: Path) -> str:
    try:
        return os.path.realpath(path)
    except ValueError:  # A path with a NUL in it; reading it will say so.
        return str(path)


def _is_path(named: str) -> bool:
    return "/" in named or os.sep in named or named.endswith((".yaml", ".yml"))
