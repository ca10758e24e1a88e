"""Results that are one short line of text, read by anchored patterns. The patterns are data."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final, TypeAlias

from guardrail.declare.policies import Sentence
from guardrail.judge.meanings import Meaning

LONGEST_SENTENCE: Final = 300
_LONGEST_TEXT: Final = 10_000
_MOST_PREFIXES: Final = 3
_SYMBOLS: Final = re.compile(r"[^\w'\"#$(+\[-]+")
_UPPER: Final = re.compile(r"[A-Z]")
_DASHES: Final = ("\N{EN DASH}", "\N{EM DASH}")
_PUNCTUATION: Final = str.maketrans({**dict.fromkeys(',.!?;()[]"`', " "), **dict.fromkeys(_DASHES, " - "), ":": " : "})

_Patterns: TypeAlias = tuple[tuple[re.Pattern[str], Meaning], ...]


@dataclass(frozen=True, slots=True)
class Sentences:
    """Compiled sentence patterns, in the order in which they are tried; the first that matches counts.

    A pattern matches the whole line, case is ignored. If it has a group named `rest`, that part is read
    again and says more precisely what the line means ("Error: user not found" is a "not found").
    `by_word` holds the places of the patterns that are tried for a word, in order, with those tried `always`.
    """

    patterns: _Patterns = ()
    always: tuple[int, ...] = ()
    by_word: Mapping[str, tuple[int, ...]] = field(default_factory=dict[str, tuple[int, ...]])

    @staticmethod
    def of(sentences: Sequence[Sentence]) -> Sentences:
        """The patterns of declared sentences, compiled once. Raises ValueError naming a pattern that is no regex."""
        return _compiled(tuple(sentences))

    def read(self, text: str) -> Meaning | None:
        """What a text means that is one short line; None when it is none, or no pattern knows it."""
        if len(text) > _LONGEST_TEXT:
            return None
        line = text.strip()
        if not line or len(line) > LONGEST_SENTENCE or "\n" in line:
            return None
        line = line.lower()
        meaning = self._read(line, _MOST_PREFIXES)
        if meaning or line[0].isalnum():
            return meaning
        symbols = _SYMBOLS.match(line)
        return self._read(line[symbols.end() :], _MOST_PREFIXES) if symbols else None

    def _read(self, line: str, prefixes: int) -> Meaning | None:
        for place in self._candidates(line):
            pattern, meaning = self.patterns[place]
            if match := pattern.fullmatch(line):
                rest = match["rest"] if prefixes and "rest" in pattern.groupindex else None
                return (self._read(rest.strip(), prefixes - 1) if rest else None) or meaning
        return None

    def _candidates(self, line: str) -> Sequence[int]:
        known = self.by_word.keys() & line.translate(_PUNCTUATION).split()
        if len(known) < 2:
            return self.by_word[known.pop()] if known else self.always
        return sorted({place for word in known for place in self.by_word[word]})


@lru_cache(maxsize=256)
def _compiled(sentences: tuple[Sentence, ...]) -> Sentences:
    always = {place for place, sentence in enumerate(sentences) if not sentence.words}
    by_word: dict[str, set[int]] = {}
    for place, sentence in enumerate(sentences):
        for word in sentence.words:
            by_word.setdefault(word.lower(), set(always)).add(place)
    return Sentences(
        tuple((_compile(sentence.pattern), sentence.means) for sentence in sentences),
        tuple(sorted(always)),
        {word: tuple(sorted(places)) for word, places in by_word.items()},
    )


def _compile(pattern: str) -> re.Pattern[str]:
    # Lines are folded to lower case before they are read, and a pattern without capitals needs no flag
    # then: the flag keeps the engine from skipping ahead, which makes reading three times as slow.
    try:
        return re.compile(pattern, re.IGNORECASE if _UPPER.search(pattern) else 0)
    except re.error as error:
        raise ValueError(f"{pattern!r} is no regular expression: {error}") from error
