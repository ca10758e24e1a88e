"""Inputs as they are written on the command line."""

from __future__ import annotations

import json as jsons
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from guardrail.cli.exits import Misuse

if TYPE_CHECKING:
    from guardrail.declare.contracts import Input


def read_inputs(declared: Mapping[str, str | Input], given: Sequence[str]) -> dict[str, object]:
    """Inputs written as NAME=VALUE, each read as its declared type; raises `Misuse`.

    Texts, decimals, dates and instants are taken as they stand, everything else is JSON. Where any type will do, what
    is no JSON is a text.
    """
    inputs: dict[str, object] = {}
    for item in given:
        name, found, text = item.partition("=")
        if not found or not name:
            raise Misuse(f"the input {item!r} is not NAME=VALUE")
        if name in inputs:
            raise Misuse(f"the input {name} is given twice")
        kind = declared.get(name, "any")
        inputs[name] = _read(text, kind if isinstance(kind, str) else kind.type)
    return inputs


def _read(text: str, kind: str) -> Any:
    if kind in ("text", "decimal", "date", "instant"):
        return text
    try:
        return jsons.loads(text, parse_float=_decimal, parse_constant=_refuse)
    except ValueError:
        return text  # where another type is declared, the task's own check says what it must be


def _decimal(text: str) -> object:
    from decimal import Decimal

    return Decimal(text)


def _refuse(text: str) -> object:
    raise ValueError(text)
