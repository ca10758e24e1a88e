"""Preconditions: what must hold before a tool may run."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping
from typing import TypeAlias, cast

from guardrail.call.needs import Look, Need
from guardrail.call.steps import Step
from guardrail.call.tools import CelDemand, Demand, EarlierDemand, HttpDemand, SqlDemand, StatementDemand
from guardrail.declare.matchers import check
from guardrail.errors import StoreError
from guardrail.pictures import Answer, Rows, Unanswered
from guardrail.pointers import MISSING, resolve
from guardrail.query.classification import classify
from guardrail.state.scope import Scope
from guardrail.stores.store import Ask, Fetch

Checking: TypeAlias = Generator[Need, object, str | None]


def unmet(step: Step) -> Checking:
    """The first precondition that does not hold, in words that may reach the model; None: all hold.

    A precondition that cannot be decided (a store that is away, an expression that fails) raises:
    that is the guard's failure, never a "no" and never a "yes".
    """
    for name, matcher in step.tool.args.items():
        wrong = _argument(step.call.args, name, matcher)
        if wrong is not None:
            return wrong
    for demand in step.tool.demands:
        wrong = yield from _demand(step, demand)
        if wrong is not None:
            return wrong
    return None


def _argument(args: Mapping[str, object], name: str, matcher: object) -> str | None:
    if name not in args:
        return None if getattr(matcher, "optional", False) else f"the argument {name} is missing"
    wrong = check(matcher, args[name])  # type: ignore[arg-type]
    return None if wrong is None else f"the argument {name} {wrong}"


def _demand(step: Step, demand: Demand) -> Checking:
    match demand:
        case StatementDemand():
            return _statements(step, demand)
        case CelDemand(expression, because):
            variables = {"args": dict(step.call.args), "inputs": dict(step.run.inputs), "run": _run(step)}
            return None if expression.evaluate(variables) else because or "a precondition does not hold"
        case SqlDemand():
            return (yield from _sql(step, demand))
        case HttpDemand():
            return (yield from _http(step, demand))
        case EarlierDemand():
            return _earlier(step, demand)


def _statements(step: Step, demand: StatementDemand) -> str | None:
    text = step.call.args.get(demand.argument)
    if text is None:
        return f"the argument {demand.argument} is missing"
    if not isinstance(text, str):
        return f"the argument {demand.argument} is not the text of a statement"
    return classify(text, demand.dialect).forbidden(demand.forbids)


def _run(step: Step) -> dict[str, object]:
    return {"task": step.run.task or "", "calls": step.number}


def _sql(step: Step, demand: SqlDemand) -> Checking:
    values = {**step.run.inputs, **step.call.args}
    missing = _missing(demand.query.parameters, values)
    if missing is not None:
        return missing
    rows = yield from _looked(step, demand.store, Ask(demand.query, values))
    return None if rows.is_true else demand.because or _DOES_NOT_HOLD


def _http(step: Step, demand: HttpDemand) -> Checking:
    values = {**step.run.inputs, **step.call.args}
    missing = _missing((*demand.request.parameters, *demand.reading.names), values)
    if missing is not None:
        return missing
    rows = yield from _looked(step, demand.store, Fetch(demand.request, demand.at, values))
    return None if demand.reading.misread(rows, Scope(values)) is None else demand.because or _DOES_NOT_HOLD


_DOES_NOT_HOLD = "a precondition on the stored state does not hold"


def _missing(names: Iterable[str], values: Mapping[str, object]) -> str | None:
    return next((f"the argument {name} is missing" for name in names if name not in values), None)


def _looked(step: Step, store: str, question: Ask | Fetch) -> Generator[Need, object, Rows]:
    """What a store answers. Raises `StoreError` when it cannot."""
    [answer] = cast("list[Answer]", (yield Look(step.run.stores[store], [question], step.trace)))
    if isinstance(answer, Rows):
        return answer
    why = answer.why if isinstance(answer, Unanswered) else f"{store} gave no rows"
    raise StoreError(f"a precondition of {step.tool.name} could not be checked: {why}")


def _earlier(step: Step, demand: EarlierDemand) -> str | None:
    same = {name: step.call.args.get(name) for name in demand.same}
    known, value = step.run.facts.latest(demand.tool, same)
    if not known:
        return demand.because or f"{demand.tool} must have succeeded before"
    if demand.at is None:
        return None
    found = resolve(value, demand.at)
    if found is MISSING:
        return demand.because or f"the result of {demand.tool} has no {demand.at}"
    if not demand.is_matched or check(demand.matcher, found) is None:
        return None
    return demand.because or f"{demand.at} of {demand.tool} is not as required"
