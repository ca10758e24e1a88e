"""Results that are one short line of text, read by anchored patterns. The patterns are data."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from guardrail.declare.policies import Sentence
from guardrail.judge.meanings import Meaning

LONGEST_SENTENCE: Final = 300
_MOST_PREFIXES: Final = 3
_SYMBOLS: Final = re.compile(r"[^\w'\"#$(+-]+")
_UPPER: Final = re.compile(r"[A-Z]")


@dataclass(frozen=True, slots=True)
class Sentences:
    """Compiled sentence patterns, in the order in which they are tried; the first that matches counts.

    A pattern matches the whole line, case is ignored. If it has a group named `rest`, that part is read
    again and says more precisely what the line means ("Error: user not found" is a "not found").
    """

    patterns: tuple[tuple[re.Pattern[str], Meaning], ...] = ()

    @staticmethod
    def of(sentences: Sequence[Sentence]) -> Sentences:
        """The patterns of declared sentences, compiled once. Raises ValueError naming a pattern that is no regex."""
        return _compiled(tuple(sentences))

    def read(self, text: str) -> Meaning | None:
        """What a text means that is one short line; None when it is none, or no pattern knows it."""
        line = text.strip()
        if not line or len(line) > LONGEST_SENTENCE or "\n" in line:
            return None
        line = line.lower()
        meaning = self._read(line, _MOST_PREFIXES)
        symbols = None if meaning else _SYMBOLS.match(line)
        return self._read(line[symbols.end() :], _MOST_PREFIXES) if symbols else meaning

    def _read(self, line: str, prefixes: int) -> Meaning | None:
        for pattern, meaning in self.patterns:
            if match := pattern.fullmatch(line):
                rest = match.groupdict().get("rest") if prefixes else None
                return (self._read(rest.strip(), prefixes - 1) if rest else None) or meaning
        return None


@lru_cache(maxsize=256)
def _compiled(sentences: tuple[Sentence, ...]) -> Sentences:
    return Sentences(tuple((_compile(sentence.pattern), sentence.means) for sentence in sentences))


def _compile(pattern: str) -> re.Pattern[str]:
    # Lines are folded to lower case before they are read, and a pattern without capitals needs no flag
    # then: the flag keeps the engine from skipping ahead, which makes reading three times as slow.
    try:
        return re.compile(pattern, re.IGNORECASE if _UPPER.search(pattern) else 0)
    except re.error as error:
        raise ValueError(f"{pattern!r} is no regular expression: {error}") from error
