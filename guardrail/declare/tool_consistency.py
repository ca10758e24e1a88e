"""Whether the declaration of a tool holds together."""

from __future__ import annotations

import re
from collections.abc import Iterator

from guardrail.declare.expressions import compile_expression
from guardrail.declare.faults import Fault, Place
from guardrail.declare.known import Known
from guardrail.declare.patterns import is_pattern
from guardrail.declare.tools import (
    CelRequirement,
    EarlierRequirement,
    EffectByArgument,
    HttpRequirement,
    Requirement,
    SqlRequirement,
    Tool,
)
from guardrail.declare.values import read
from guardrail.errors import ExpressionError

RUN_PARTS = ("run.task", "run.calls")
"""What an expression may read of the run: the task's name, and how many calls there were, this one included."""


_OPEN_BRACKET = re.compile(r"\[(?!!?.[^\]]*\])")


def tool_faults(name: str, tool: Tool, known: Known) -> Iterator[Fault]:
    """What is wrong with an entry of `tools`."""
    place = ("tools", name)
    yield from _name_faults(name, place)
    yield from _effect_faults(tool, place)
    yield from _statement_faults(tool, place, known)
    yield from _emptiness_faults(tool, place)
    yield from _result_faults(tool, place)
    for argument, matcher in tool.args.items():
        if matcher is None:
            yield Fault((*place, "args", argument), "has no condition", "to demand null, write {equals: null}")
    for position, requirement in enumerate(tool.requires):
        yield from _requirement_faults(requirement, (*place, "requires", position), known)


def _name_faults(name: str, place: Place) -> Iterator[Fault]:
    if not name or name != name.strip() or not name.isprintable():
        yield Fault(place, "is no name of a tool: it is empty, or has blanks around it or control characters in it")
    elif is_pattern(name) and not set("^$|(){}\\").isdisjoint(name):
        yield Fault(place, "is a glob pattern (`*`, `?`, `[…]`), and no regular expression")
    elif _OPEN_BRACKET.search(name):
        yield Fault(place, "is a glob pattern with a [ that is not closed")


def _effect_faults(tool: Tool, place: Place) -> Iterator[Fault]:
    if tool.effect == "read" and tool.once_per:
        yield Fault((*place, "once_per"), "names an operation that is done once, and the tool only reads")
    if tool.effect == "read" and tool.idempotent:
        yield Fault((*place, "idempotent"), "speaks of a write that is repeated, and the tool only reads")
    if tool.effect == "read":
        for error, outcome in tool.raises.items():
            if outcome == "in_doubt":
                yield Fault((*place, "raises", error), "only a write can be in doubt, and the tool only reads")
    if isinstance(tool.effect, EffectByArgument):
        yield from _by_argument_faults(tool.effect, (*place, "effect"))


def _by_argument_faults(effect: EffectByArgument, place: Place) -> Iterator[Fault]:
    if not effect.read and not effect.write:
        yield Fault(place, "lists no value that makes the call a read or a write", rests_on=(place,))
    both = [value for value in effect.read if any(value == w and type(value) is type(w) for w in effect.write)]
    for value in both:
        yield Fault(place, f"says of {value!r} that it is both, a read and a write")


def _statement_faults(tool: Tool, place: Place, known: Known) -> Iterator[Fault]:
    if tool.sql is None:
        for field in ("dialect", "forbids"):
            if getattr(tool, field):
                what = "speaks of statements, and no argument holds any"
                yield Fault((*place, field), what, "name the argument: `sql: query`", rests_on=(place,))
        return
    if tool.effect is not None and not tool.forbids:
        yield Fault((*place, "sql"), "decides the effect, and `effect` says it too", "leave one of them out")
    if tool.dialect is None:
        yield from known.dialect((*place, "dialect"))


def _emptiness_faults(tool: Tool, place: Place) -> Iterator[Fault]:
    if tool.empty is None:
        return
    if tool.effect == "write":
        yield Fault((*place, "empty"), "speaks of a lookup that finds nothing, and the tool writes")
    for outcome in ("empty", "empty_list"):
        if getattr(tool.outcomes, outcome) is not None:
            yield Fault((*place, "outcomes", outcome), "is already said by `empty`", "leave one of them out")


def _result_faults(tool: Tool, place: Place) -> Iterator[Fault]:
    if tool.returns == "text":
        for field in ("root", "data", "signals", "batch"):
            if getattr(tool, field):
                yield Fault((*place, field), "speaks of fields, and the tool `returns: text`, which has none")
    if tool.returns != "any" and tool.sentences:
        yield Fault((*place, "sentences"), f"are never read when the tool `returns: {tool.returns}`")


def _requirement_faults(requirement: Requirement, place: Place, known: Known) -> Iterator[Fault]:
    match requirement:
        case CelRequirement():
            yield from _expression_faults(requirement.cel, (*place, "cel"), known)
        case SqlRequirement():
            yield from known.store(requirement.store, (*place, "store"))
            yield from known.query(requirement.sql, requirement.store, (*place, "sql"))
        case HttpRequirement():
            yield from known.reading(requirement, place)
            try:
                read(requirement.equals)
            except ValueError as error:
                yield Fault((*place, "equals"), str(error))
        case EarlierRequirement():
            yield from _earlier_faults(requirement, place, known)


def _expression_faults(text: str, place: Place, known: Known) -> Iterator[Fault]:
    inputs = ["inputs"] if known.inputs is None else [f"inputs.{name}" for name in known.inputs]
    try:
        compile_expression(text, ("args", *inputs, *RUN_PARTS))
    except ExpressionError as error:
        yield Fault(place, str(error))


def _earlier_faults(requirement: EarlierRequirement, place: Place, known: Known) -> Iterator[Fault]:
    if is_pattern(requirement.earlier):
        yield Fault((*place, "earlier"), "must name one tool, and is a pattern")
    else:
        yield from known.tool(requirement.earlier, (*place, "earlier"))
    if requirement.at is None and "is_" in requirement.model_fields_set:
        yield Fault((*place, "is"), "says what must stand `at` a place, and no place is given", rests_on=(place,))
