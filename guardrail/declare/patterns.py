"""Tools by name: an exact entry, and the glob patterns that match it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from functools import reduce
from typing import Any

from guardrail.declare.faults import suggestion
from guardrail.declare.policies import Outcomes
from guardrail.declare.tools import Tool

_GLOB = frozenset("*?[")


def is_pattern(name: str) -> bool:
    """Whether an entry stands for every tool whose name it matches (`*`, `?`, `[…]`)."""
    return not _GLOB.isdisjoint(name)


def matches(entry: str, name: str) -> bool:
    """Whether an entry of `tools` speaks of the tool `name`."""
    return entry == name or (is_pattern(entry) and fnmatchcase(name, entry))


def tool_for(tools: Mapping[str, Tool], name: str) -> Tool:
    """What is declared of the tool `name`, from the general to the specific: patterns in file order, then its own entry.

    Where two speak of the same field, the later one wins; `requires`, `redact`, and by name `args`,
    `raises` and `outcomes`, accumulate. A tool that nothing speaks of is an undeclared `Tool()`.
    """
    layers = [tool for entry, tool in tools.items() if entry != name and matches(entry, name)]
    own = [tools[name]] if name in tools else []
    return reduce(_over, [*layers, *own], Tool())


def unmatched(tools: Mapping[str, Tool], names: Iterable[str]) -> dict[str, str]:
    """The entries that speak of none of the tools `names`, each with advice: most likely a slip of the pen."""
    known = list(names)
    return {
        entry: suggestion(entry, known, "the tools are")
        for entry in tools
        if not any(matches(entry, name) for name in known)
    }


def _over(general: Tool, specific: Tool) -> Tool:
    given: dict[str, Any] = {name: getattr(specific, name) for name in specific.model_fields_set}
    return general.model_copy(
        update={
            **given,
            "requires": (*general.requires, *specific.requires),
            "redact": tuple(dict.fromkeys((*general.redact, *specific.redact))),
            "args": {**general.args, **specific.args},
            "raises": {**general.raises, **specific.raises},
            "outcomes": _outcomes(general, specific),
        }
    )


def _outcomes(general: Tool, specific: Tool) -> Outcomes:
    """The outcomes of both; what the specific one says of emptiness by `empty` is not undone by the general one."""
    said = general.outcomes
    if specific.empty is not None:
        said = said.model_copy(update={"empty": None, "empty_list": None})
    given = {name: value for name in Outcomes.model_fields if (value := getattr(specific.outcomes, name)) is not None}
    return said.model_copy(update=given)
