"""A policy: what each outcome does."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from guardrail.calls import Action
from guardrail.declare.model import Declaration


class ByEffect(Declaration):
    """An action that depends on the call's effect; a call of unknown effect counts as a write."""

    read: Action
    write: Action


class Outcomes(Declaration):
    """What each outcome does; a missing one is taken from the policy below, at last from `balanced`.

    `empty` is a lookup of one thing that found nothing; `empty_list` an answer that is an empty list.
    """

    empty: Action | ByEffect | None = None
    empty_list: Action | ByEffect | None = None
    incomplete: Action | ByEffect | None = None
    partial: Action | ByEffect | None = None
    rejected: Action | ByEffect | None = None
    error: Action | ByEffect | None = None
    in_doubt: Action | ByEffect | None = None
    cancelled: Action | ByEffect | None = None
    precondition_failed: Action | ByEffect | None = None


class Sentence(Declaration):
    """A pattern for results that are one short line of text.

    `pattern` is a regular expression that must match the whole line (it is anchored at both ends, case
    is ignored); `means` says what the result then came to.
    """

    pattern: str
    means: Literal["ok", "empty", "rejected", "error"]


class Policy(Declaration):
    """What each outcome does, and whether the guard enforces it.

    `mode`: `enforce` refuses and stops; `observe` records and judges everything, refuses nothing, and
    names what would have been stopped. `retries`: how often a failed call may be tried again before the
    run stops.
    """

    version: Literal[1] = 1
    name: str
    description: str = ""
    mode: Literal["enforce", "observe"] = "enforce"
    outcomes: Outcomes = Outcomes()
    retries: int = Field(default=3, ge=0)
