"""`${env:X}` in the texts of a file: what the environment says in its place."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final, cast

from guardrail.declare.faults import Fault, Place

_MARK: Final = re.compile(r"\$\{env:([^}]*)(\}?)")
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_SHORTEST_SECRET: Final = 4


@dataclass(frozen=True, slots=True)
class Filling:
    """Fills the environment into plain values, and remembers what it filled in, so that no message tells it."""

    environ: Mapping[str, str]
    filled: dict[str, str] = field(default_factory=dict[str, str])

    def fill(self, value: object) -> object:
        """The value with every `${env:X}` of its texts replaced; keys, and names that are not set, stay as they are."""
        if isinstance(value, str):
            return _MARK.sub(self._replacement, value) if "${env:" in value else value
        if isinstance(value, dict):
            return {key: self.fill(item) for key, item in cast("dict[str, object]", value).items()}
        return [self.fill(item) for item in cast("list[object]", value)] if isinstance(value, list) else value

    def faults(self, value: object, place: Place = ()) -> Iterator[Fault]:
        """The names that are not set, or are none."""
        if isinstance(value, str):
            for mark in _MARK.finditer(value):
                yield from self._mark_faults(mark, place)
        elif isinstance(value, dict):
            for key, item in cast("dict[str, object]", value).items():
                yield from self.faults(item, (*place, key))
        elif isinstance(value, list):
            for position, item in enumerate(cast("list[object]", value)):
                yield from self.faults(item, (*place, position))

    def veiled(self, fault: Fault, written: object) -> Fault:
        """The fault without what was filled in; `written` is what stands at its place in the file.

        A reason that quotes a part of what was filled in (an engine's complaint about a query) is left out.
        """
        what, advice = self._hide(fault.what), self._hide(fault.advice)
        if "${env:" in str(written) and self._shows(what):
            what, advice = "is wrong", "why is not said, as it would show a value of the environment"
        return replace(fault, what=what, advice=advice)

    def _hide(self, text: str) -> str:
        for name, secret in sorted(self.filled.items(), key=lambda pair: -len(pair[1])):
            if len(secret) >= _SHORTEST_SECRET:
                for shown in (secret, repr(secret)[1:-1]):
                    text = text.replace(shown, f"${{env:{name}}}")
        return text

    def _shows(self, text: str) -> bool:
        """Whether any four characters in a row of what was filled in stand in a text."""
        text, size = text.lower(), _SHORTEST_SECRET
        secrets = [secret.lower() for secret in self.filled.values()]
        return any(s[at : at + size] in text for s in secrets for at in range(len(s) - size + 1))

    def _replacement(self, mark: re.Match[str]) -> str:
        value = self.environ.get(mark[1]) if mark[2] else None
        if value is None:
            return mark[0]
        self.filled[mark[1]] = value
        return value

    def _mark_faults(self, mark: re.Match[str], place: Place) -> Iterator[Fault]:
        if not mark[2] or not _NAME.fullmatch(mark[1]):
            yield Fault(place, f"`{mark[0][:60]}` names no variable of the environment", "write it as ${env:NAME}")
        elif mark[1] not in self.environ:
            yield Fault(place, f"the environment variable {mark[1]} is not set")
