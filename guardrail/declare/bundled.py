"""What is shipped with the library: the policies, and the sentences that results are read by."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Final

from guardrail.declare.documents import parse
from guardrail.declare.faults import suggestion
from guardrail.declare.model import Declaration
from guardrail.declare.policies import Policy, Sentence, Version
from guardrail.declare.validation import Model, validated
from guardrail.errors import ConfigurationError, Mistake

_SENTENCES: Final = "sentences"


class _Sentences(Declaration):
    version: Version = 1
    sentences: tuple[Sentence, ...]


@cache
def names() -> tuple[str, ...]:
    """The names of the bundled policies."""
    found = (entry.name.removesuffix(".yaml") for entry in _root().iterdir() if entry.name.endswith(".yaml"))
    return tuple(sorted(name for name in found if name != _SENTENCES))


@cache
def policy(name: str) -> Policy:
    """The bundled policy of this name. Raises ConfigurationError when there is none."""
    if name not in names():
        advice = suggestion(name, names(), "bundled are")
        raise ConfigurationError([Mistake("<python>", None, "policy", f"there is no bundled policy {name!r}", advice)])
    return _read(name, Policy)


@cache
def sentences() -> tuple[Sentence, ...]:
    """The bundled patterns for results that are one short line of text."""
    return _read(_SENTENCES, _Sentences).sentences


def _root() -> Traversable:
    """Where the bundled policies lie: in the wheel, or at the top of a checkout."""
    installed = files("guardrail").joinpath("policies")
    return installed if installed.is_dir() else Path(__file__).parents[2] / "policies"


def _read(name: str, model: type[Model]) -> Model:
    file = _root().joinpath(f"{name}.yaml")
    document = parse(file.read_text("utf-8"), str(file))
    declared, faults = validated(model, document.value, document.value)
    if declared is None or document.faults:
        raise ConfigurationError([document.mistake(fault) for fault in (*document.faults, *faults)])
    return declared
