"""A tool made live: its declaration compiled once, so that a call costs little."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias, cast

from guardrail.calls import Effect, Hints, ToolCall
from guardrail.decide.rules import Actions
from guardrail.declare.expressions import Expression, compile_expression
from guardrail.declare.matchers import Matcher
from guardrail.declare.policies import Policy, Sentence, actions
from guardrail.declare.tools import (
    CelRequirement,
    EarlierRequirement,
    EffectByArgument,
    HttpRequirement,
    Requirement,
    SqlRequirement,
    Tool,
)
from guardrail.judge.result import ResultRules
from guardrail.query.classification import Trait, classify
from guardrail.query.proof import Dialect, Query, known_dialect, prove
from guardrail.query.requests import Request, prove_request
from guardrail.state.readings import Reading

CEL_NAMES = frozenset({"args", "inputs", "run"})
"""What a CEL precondition may speak of: the arguments, the run's inputs, and `run.task`, `run.calls`."""


@dataclass(frozen=True, slots=True)
class CelDemand:
    """A CEL expression that must be true."""

    expression: Expression
    because: str


@dataclass(frozen=True, slots=True)
class SqlDemand:
    """A proved query that must answer one row with one true value."""

    store: str
    query: Query
    because: str


@dataclass(frozen=True, slots=True)
class HttpDemand:
    """A value of an HTTP store, `at` a pointer of what a request answers, and what it must be."""

    store: str
    request: Request
    at: str
    reading: Reading
    because: str


@dataclass(frozen=True, slots=True)
class EarlierDemand:
    """A fact that an earlier good result of the run must hold."""

    tool: str
    same: tuple[str, ...]
    at: str | None
    is_matched: bool
    matcher: Matcher
    because: str


@dataclass(frozen=True, slots=True)
class StatementDemand:
    """Statements that do nothing of what is forbidden, in the argument that holds them."""

    argument: str
    dialect: Dialect
    forbids: tuple[Trait, ...]


Demand: TypeAlias = StatementDemand | CelDemand | SqlDemand | HttpDemand | EarlierDemand


@dataclass(frozen=True, slots=True)
class LiveTool:
    """What the flow of a call knows of its tool. `demands` are in the order in which they are checked."""

    name: str
    effect: Callable[[Mapping[str, object]], Effect]
    results: ResultRules
    actions: Actions
    retries: int
    idempotent: bool
    once_per: tuple[str, ...]
    args: Mapping[str, Matcher]
    demands: tuple[Demand, ...]
    redact: frozenset[str]

    @property
    def demanding(self) -> bool:
        """Whether anything must hold before the tool may run."""
        return bool(self.args or self.demands)


def live_tool(
    name: str, tool: Tool, policy: Policy, sentences: Sequence[Sentence], dialects: Mapping[str, Dialect | None]
) -> LiveTool:
    """Compile a tool's declaration; `dialects` gives the SQL dialect of each store by name."""
    sql = _sql(tool, dialects)
    return LiveTool(
        name=name,
        effect=_effect(tool, sql),
        results=ResultRules.of(tool, sentences),
        actions=actions(policy, tool),
        retries=policy.retries if tool.retries is None else tool.retries,
        idempotent=tool.idempotent,
        once_per=tool.once_per,
        args=tool.args,
        # Cheap ones first: nobody asks a server for what an expression already refuses.
        demands=(*_on_statements(tool, sql), *sorted((_demand(r, dialects) for r in tool.requires), key=_cost)),
        redact=frozenset(tool.redact),
    )


_Sql: TypeAlias = tuple[str, Dialect] | None
"""The argument that holds statements, and their dialect; None: none does."""


def _sql(tool: Tool, dialects: Mapping[str, Dialect | None]) -> _Sql:
    """Raises `QueryRefused` where no dialect is known, so that nothing is let through that was not looked at."""
    if tool.sql is None:
        return None
    return tool.sql, known_dialect(tool.dialect or next(filter(None, dialects.values()), None))


def _on_statements(tool: Tool, sql: _Sql) -> tuple[StatementDemand, ...]:
    return () if sql is None or not tool.forbids else (StatementDemand(*sql, tool.forbids),)


def _demand(requirement: Requirement, dialects: Mapping[str, Dialect | None]) -> Demand:
    match requirement:
        case CelRequirement(cel=text, because=because):
            return CelDemand(compile_expression(text, CEL_NAMES), because)
        case SqlRequirement(store=store, sql=text, because=because):
            return SqlDemand(store, prove(text, dialects[store]), because)
        case HttpRequirement():
            request = prove_request(requirement.get, requirement.query)
            return HttpDemand(requirement.store, request, requirement.at, Reading.of(requirement), requirement.because)
        case EarlierRequirement():
            # `is: null` demands a null; it is not the same as no `is` at all.
            is_matched = "is_" in requirement.model_fields_set
            return EarlierDemand(
                requirement.earlier, requirement.same, requirement.at, is_matched, requirement.is_, requirement.because
            )


def _cost(demand: Demand) -> int:
    return 2 if isinstance(demand, HttpDemand) else 1 if isinstance(demand, SqlDemand) else 0


def _effect(tool: Tool, sql: _Sql) -> Callable[[Mapping[str, object]], Effect]:
    if isinstance(tool.effect, EffectByArgument):
        return _by_argument(tool.effect)
    if tool.effect is None and sql is not None:
        return _by_statement(*sql)
    known: Effect = tool.effect or "unknown"
    return lambda args: known


def _by_statement(argument: str, dialect: Dialect) -> Callable[[Mapping[str, object]], Effect]:
    def effect(args: Mapping[str, object]) -> Effect:
        text = args.get(argument)
        if text is None:
            return "unknown"
        return classify(text, dialect).effect if isinstance(text, str) else "write"

    return effect


def _by_argument(declared: EffectByArgument) -> Callable[[Mapping[str, object]], Effect]:
    path = declared.by.split(".")[1:]
    effects: dict[object, Effect] = {
        **{_exact(value): "read" for value in declared.read},
        **{_exact(value): "write" for value in declared.write},
    }

    def effect(args: Mapping[str, object]) -> Effect:
        value: object = args
        for name in path:
            value = _at(value, name)
        return effects.get(_exact(value), "unknown") if isinstance(value, (str, int)) else "unknown"

    return effect


def _at(value: object, name: str) -> object:
    return cast("Mapping[str, object]", value).get(name) if isinstance(value, Mapping) else None


def _exact(value: object) -> tuple[bool, object]:
    """A key in which true is not 1."""
    return isinstance(value, bool), value


def call_of(name: str, args: Mapping[str, object], call_id: str | None = None, hints: Hints | None = None) -> ToolCall:
    """A call with a copy of its arguments: tools are known to change the containers that they are given."""
    return ToolCall(name, {key: _copied(value, _DEEPEST) for key, value in args.items()}, call_id, hints)


_DEEPEST = 20


def _copied(value: object, depth: int) -> object:
    """A value whose plain lists and dicts are copied; anything else is left alone, so that nothing is consumed."""
    if depth and type(value) is dict:
        items = cast("dict[object, object]", value)
        return {key: _copied(item, depth - 1) for key, item in items.items()}
    if depth and type(value) is list:
        return [_copied(item, depth - 1) for item in cast("list[object]", value)]
    return value
