"""A policy: what each outcome does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Annotated, Final, Literal, Protocol, TypeAlias

from pydantic import BeforeValidator

from guardrail.calls import Action, Effect
from guardrail.declare.choices import BY_FORM, KEYS, PLAIN
from guardrail.declare.model import Count, Declaration
from guardrail.declare.texts import Filled, Pattern


def _version(value: object) -> object:
    if type(value) is not int or value != 1:
        raise ValueError("must be 1, the only version there is")
    return value


Version: TypeAlias = Annotated[Literal[1], BeforeValidator(_version)]
"""The version of the format; true and 1.0 are not 1."""


class ByEffect(Declaration):
    """An action that depends on the call's effect; a call of unknown effect counts as a write."""

    read: Action
    write: Action


Consequence: TypeAlias = Annotated[Annotated[Action, PLAIN] | Annotated[ByEffect, KEYS], BY_FORM]
"""What an outcome does: the same for every call, or by effect."""


class Outcomes(Declaration):
    """What each outcome does; a missing one is taken from the policy below, at last from `FLOOR`.

    `empty` is a lookup of one thing that found nothing; `empty_list` an answer that is an empty list.
    """

    empty: Consequence | None = None
    empty_list: Consequence | None = None
    incomplete: Consequence | None = None
    partial: Consequence | None = None
    rejected: Consequence | None = None
    error: Consequence | None = None
    in_doubt: Consequence | None = None
    cancelled: Consequence | None = None
    precondition_failed: Consequence | None = None


class Sentence(Declaration):
    """A pattern for results that are one short line of text.

    `pattern` is a regular expression that must match the whole line (it is anchored at both ends, case
    is ignored). A group named `rest` is read again and says more precisely what the line means. `means` says
    what the result then came to: `empty` looked for one thing that is not there, `empty_list` is a search
    that found nothing, `in_doubt` is an error if the call was a read. With `words` the pattern is tried only on
    a line that holds one of them, which makes reading cheap; a colon and a lone dash count as words.
    """

    pattern: Pattern
    means: Literal["ok", "empty", "empty_list", "rejected", "error", "in_doubt"]
    words: tuple[Filled, ...] = ()


class Policy(Declaration):
    """What each outcome does, and whether the guard enforces it.

    `mode`: `enforce` refuses and stops; `observe` records and judges everything, refuses nothing, and
    names what would have been stopped. `retries`: how often a failed call may be tried again before the
    run stops.
    """

    version: Version = 1
    name: str
    description: str = ""
    mode: Literal["enforce", "observe"] = "enforce"
    outcomes: Outcomes = Outcomes()
    retries: Count = 3


FLOOR: Final = Outcomes(
    empty="hold",
    empty_list="allow",
    incomplete="allow",
    partial="hold",
    rejected="hold",
    error="hold",
    in_doubt="hold",
    cancelled=ByEffect(read="allow", write="hold"),
    precondition_failed="hold",
)
"""What an outcome does when nobody says: as in the bundled policy `balanced`. No gap ever means "allow all"."""

Actions: TypeAlias = Mapping[tuple[str, Effect], Action]
"""What each outcome does, by outcome (`empty_list` apart from `empty`) and effect."""

_EFFECTS: Final[tuple[Effect, ...]] = ("read", "write", "unknown")


def refined(
    policy: Policy, mode: Literal["enforce", "observe"] | None, outcomes: Outcomes, retries: int | None
) -> Policy:
    """A policy with what a configuration lays over it; None, and an outcome not given, leave it as it is."""
    given = {name: getattr(outcomes, name) for name in Outcomes.model_fields if getattr(outcomes, name) is not None}
    return policy.model_copy(
        update={
            "mode": mode or policy.mode,
            "outcomes": policy.outcomes.model_copy(update=given),
            "retries": policy.retries if retries is None else retries,
        }
    )


class Refining(Protocol):
    """What lays its own word over a policy: a tool's declaration."""

    @property
    def outcomes(self) -> Outcomes:
        """What each outcome does."""
        ...

    @property
    def empty(self) -> Action | None:
        """What an empty answer of any shape does."""
        ...


def actions(policy: Policy, tool: Refining) -> Actions:
    """What each outcome does for a tool, complete: the tool over the policy over `FLOOR`.

    A tool's `empty` speaks of an empty answer of any shape.
    """
    empty = Outcomes(empty=tool.empty, empty_list=tool.empty)
    layers = (tool.outcomes, empty, policy.outcomes, FLOOR)
    return MappingProxyType(
        {
            (outcome, effect): _action(_first(layers, outcome), effect)
            for outcome in Outcomes.model_fields
            for effect in _EFFECTS
        }
    )


def _first(layers: Sequence[Outcomes], outcome: str) -> Action | ByEffect:
    return next(found for layer in layers if (found := getattr(layer, outcome)) is not None)


def _action(consequence: Action | ByEffect, effect: Effect) -> Action:
    if isinstance(consequence, ByEffect):
        return consequence.read if effect == "read" else consequence.write
    return consequence
