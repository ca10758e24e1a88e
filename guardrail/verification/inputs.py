"""A run's inputs: given when it opens, or bound once during it by a tool's result."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from guardrail.declare.contracts import Input
from guardrail.declare.matchers import Conditions, check
from guardrail.errors import InputError
from guardrail.pointers import MISSING, resolve


@dataclass(frozen=True, slots=True)
class Late:
    """An input that a result of `tool` binds, from what stands `at` a JSON pointer of it."""

    name: str
    tool: str
    at: str
    conditions: Conditions


class Inputs:
    """The inputs of one run: what is known, and what is still awaited."""

    def __init__(self, task: str, declared: Mapping[str, str | Input], given: Mapping[str, object]) -> None:
        """Check the given inputs against the task's; raises `InputError` naming every misfit at once."""
        inputs = {name: item if isinstance(item, Input) else Input(type=item) for name, item in declared.items()}  # type: ignore[arg-type]
        wrong = [f"{name} is not an input of it" for name in given if declared and name not in inputs]
        late: list[Late] = []
        left_out: list[str] = []
        for name, item in inputs.items():
            conditions = Conditions(type=item.type)
            if name in given:
                misfit = check(conditions, given[name])
                wrong += [f"{name} {misfit}"] if misfit is not None else []
            elif item.source is not None:
                late.append(Late(name, item.source.tool, item.source.at, conditions))
            elif item.optional:
                left_out.append(name)
            else:
                wrong.append(f"{name} is missing")
        if wrong:
            known = ", ".join(inputs) or "none"
            raise InputError(f"the inputs of task {task}: {'; '.join(wrong)} (its inputs are: {known})")
        self.values: dict[str, object] = {**dict.fromkeys(left_out), **given}
        self._late = {item.name: item for item in late}
        self.awaited = frozenset(item.tool for item in late)
        """The tools whose results bind inputs."""

    @property
    def missing(self) -> tuple[Late, ...]:
        """The inputs that no result has bound yet."""
        return tuple(self._late.values())

    def bind(self, tool: str, value: object) -> dict[str, object]:
        """Bind what a good result of `tool` holds, once; what was bound, by name."""
        found = {
            late.name: fitting
            for late in self._late.values()
            if late.tool == tool and (fitting := _fitting(late, resolve(value, late.at))) is not MISSING
        }
        self.values.update(found)
        for name in found:
            del self._late[name]
        return found

    def restore(self, values: Mapping[str, object]) -> None:
        """Take over what an earlier process had bound."""
        for name, value in values.items():
            self.values[name] = value
            self._late.pop(name, None)


def _fitting(late: Late, value: object) -> object:
    """A found value as the input's type has it, or `MISSING`: a text of digits is a whole number."""
    if late.conditions.type == "integer" and isinstance(value, str) and _DIGITS.fullmatch(value):
        value = int(value)
    return MISSING if value is None or value is MISSING or check(late.conditions, value) is not None else value


_DIGITS = re.compile(r"-?[0-9]{1,18}")
