"""What a verification goes by: inputs, rows read before, pictures before and after, the time of the run."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field

from guardrail.calls import Finding
from guardrail.pictures import Picture, Unanswered
from guardrail.state.matching import Window
from guardrail.state.scope import Found


@dataclass(frozen=True, slots=True)
class Evidence:
    """What a verification goes by.

    inputs: the task's inputs by name, as declared types (optional ones that were not given: None).
    before, after: the pictures of every watched table by `store.table`. A table without a picture from before is held
    against what can be told from the end alone; what cannot be is a `check_error`.
    lets: the rows of each `let`, by column.
    window: the time of the run, for `{during: run}`; the caller may widen it by a known difference of clocks.
    whens: the answers to the alternatives' `when`, by alternative.
    checks: findings of each alternative's own checks, by alternative; they count when alternatives are compared.
    secret: names of columns, document fields and inputs whose values are in no finding; nor are those of columns that
    are held against such an input.
    """

    inputs: Mapping[str, object] = field(default_factory=dict[str, object])
    before: Mapping[str, Picture | Unanswered] = field(default_factory=dict[str, Picture | Unanswered])
    after: Mapping[str, Picture | Unanswered] = field(default_factory=dict[str, Picture | Unanswered])
    lets: Mapping[str, Found | Unanswered] = field(default_factory=dict[str, Found | Unanswered])
    window: Window | None = None
    whens: Mapping[str, bool | Unanswered] = field(default_factory=dict[str, bool | Unanswered])
    checks: Mapping[str, Sequence[Finding]] = field(default_factory=dict[str, Sequence[Finding]])
    secret: Container[str] = frozenset[str]()
