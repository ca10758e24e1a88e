"""Typed matchers: what a value must be. Numbers are compared as decimals, so money stays exact."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from guardrail.declare.model import Declaration

Scalar = str | int | float | bool | None

TypeName = Literal["any", "text", "integer", "decimal", "number", "boolean", "date", "instant", "list", "object"]
"""The types that arguments and inputs can have."""


class Conditions(Declaration):
    """What a value must be; every given condition must hold.

    `type` checks the value's type (`decimal` takes a number, or a text that is one). `above`, `below`,
    `at_least`, `at_most` compare as decimals (instants and dates as such). `is_in` (`in` in a file)
    and `is_not` (`not`) list allowed and forbidden values, `equals` names one. `matches` is a
    regular expression for the whole text. `longest` bounds the length of a text or a list. `optional`
    lets an argument be missing.
    """

    type: TypeName = "any"
    equals: Scalar = None
    above: str | int | float | None = None
    below: str | int | float | None = None
    at_least: str | int | float | None = None
    at_most: str | int | float | None = None
    is_in: tuple[Scalar, ...] | None = Field(default=None, alias="in")
    is_not: Scalar | tuple[Scalar, ...] = Field(default=None, alias="not")
    matches: str | None = None
    longest: int | None = Field(default=None, ge=0)
    optional: bool = False


Matcher = Conditions | Scalar
"""Conditions, or a plain value that the checked value must equal."""
