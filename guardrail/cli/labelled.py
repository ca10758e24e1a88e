"""Labelled results: what each label is judged as, and how well failures are told from successes."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast, get_args

from guardrail.calls import Effect, Outcome
from guardrail.cli.exits import Misuse
from guardrail.cli.judging import Judged, judged

if TYPE_CHECKING:
    from guardrail.run.live import Live

OUTCOMES = cast("tuple[str, ...]", get_args(Outcome))

_SAME = {"precondition_failed": "rejected"}
"""What a label of recorded runs is called here: of a result that a tool gave, its own no is meant."""


@dataclass(frozen=True, slots=True)
class Labelled:
    """A result with its label; `line` is where it stands."""

    line: int
    tool: str
    effect: Effect
    result: str
    label: str

    @property
    def outcome(self) -> str:
        """The outcome that the label stands for."""
        return _SAME.get(self.label, self.label)


@dataclass(frozen=True, slots=True)
class Measured:
    """Labelled results, and what each was judged as."""

    results: Sequence[tuple[Labelled, Judged]]

    @property
    def by_label(self) -> dict[str, dict[str, int]]:
        """How often each label was judged as each outcome, both in the order of the outcomes."""
        pairs = Counter[tuple[str, str]]((result.label, it.judgement.outcome) for result, it in self.results)
        labels = sorted({label for label, _ in pairs}, key=lambda label: OUTCOMES.index(_SAME.get(label, label)))
        return {
            label: {outcome: pairs[label, outcome] for outcome in OUTCOMES if pairs[label, outcome]} for label in labels
        }

    @property
    def wrong(self) -> list[tuple[Labelled, Judged]]:
        """The results that were judged otherwise than labelled."""
        return [(result, it) for result, it in self.results if it.judgement.outcome != result.outcome]

    @property
    def not_ok(self) -> dict[str, Any]:
        """Failures (whatever is not ok) told from successes; a rate is None where there is nothing to count."""
        counts = Counter((result.label != "ok", it.judgement.outcome != "ok") for result, it in self.results)
        true_positive, false_positive = counts[True, True], counts[False, True]
        false_negative, true_negative = counts[True, False], counts[False, False]
        return {
            "precision": _rate(true_positive, true_positive + false_positive),
            "recall": _rate(true_positive, true_positive + false_negative),
            "true_positive": true_positive,
            "false_positive": false_positive,
            "true_negative": true_negative,
            "false_negative": false_negative,
        }


def is_labelled(text: str) -> bool:
    """Whether a text is labelled results: its first line is an object with a tool, a result and a label."""
    first = next((line for line in _lines(text) if line.strip()), "")
    try:
        found = json.loads(first)
    except (ValueError, RecursionError):
        return False
    return isinstance(found, dict) and {"tool", "result", "label"} <= cast("Mapping[str, Any]", found).keys()


def measure(name: str, text: str, made: Live, effect: Effect | None) -> Measured:
    """Judge labelled results; `effect` counts over all else. Raises `Misuse` for a line that is none."""
    results = list(_read(name, text))
    return Measured(
        [
            (result, judged(made, result.tool, result.result, effect=effect, otherwise=result.effect))
            for result in results
        ]
    )


def _read(name: str, text: str) -> Iterator[Labelled]:
    for number, line in enumerate(_lines(text), 1):
        if line.strip():
            try:
                yield _labelled(number, json.loads(line))
            except (ValueError, RecursionError) as error:
                raise Misuse(f"{name}:{number}: {error}") from error


def _lines(text: str) -> list[str]:
    """The lines of JSON Lines: only line feeds end one, as JSON texts may hold what else `splitlines` cuts at."""
    return text.split("\n")


def _labelled(number: int, found: Any) -> Labelled:
    if not isinstance(found, dict) or not {"tool", "result", "label"} <= cast("Mapping[str, Any]", found).keys():
        raise ValueError("a labelled result is an object with tool, result and label (and writes: true or false)")
    fields = cast("Mapping[str, Any]", found)
    tool, result, label = fields["tool"], fields["result"], fields["label"]
    if not isinstance(tool, str):
        raise ValueError("tool must be a text")
    if label not in OUTCOMES:
        raise ValueError(f"label {label!r} is no outcome; the outcomes are: {', '.join(OUTCOMES)}")
    writes: dict[object, Effect] = {True: "write", False: "read"}
    effect = writes.get(fields.get("writes"), "unknown")
    return Labelled(number, tool, effect, result if isinstance(result, str) else json.dumps(result), label)


def _rate(part: int, whole: int) -> float | None:
    return round(part / whole, 4) if whole else None
