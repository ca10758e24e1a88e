"""Spans made with care: the outlets they go to, their attributes, and what is current while they last."""

from __future__ import annotations

from collections.abc import Mapping
from contextvars import Token
from dataclasses import dataclass
from typing import Final, TypeAlias, cast

from opentelemetry import context as contexts
from opentelemetry.context import Context
from opentelemetry.trace import Span, StatusCode, Tracer

from guardrail import attributes as names
from guardrail.telemetry.events import Events
from guardrail.telemetry.members import members
from guardrail.telemetry.metrics import Metrics, Names
from guardrail.telemetry.net import Net
from guardrail.telemetry.redaction import snapshot, snapshot_text
from guardrail.telemetry.secrecy import cut, sound

Value: TypeAlias = str | bool | int | float
"""What an attribute may be; lists and mappings become JSON text."""

SHORT: Final = 200
"""How many characters of a name or an id are kept."""

MOST: Final = 32
"""How many attributes a user may add to a run's span, so that they cannot push out the library's own."""


@dataclass(frozen=True, slots=True)
class Outlets:
    """Where telemetry goes, and how much of it."""

    net: Net
    tracer: Tracer
    metrics: Metrics
    events: Events
    tools: Names
    tasks: Names
    content: bool


def short(text: str) -> str:
    """A name or an id as an attribute: bounded, and such that any exporter can encode it."""
    return text if len(text) <= SHORT and text.isascii() else cut(sound(text[: 2 * SHORT]), SHORT)


def given(attributes: Mapping[str, object]) -> dict[str, Value]:
    """A user's attributes as plain ones: redacted by name and content, bounded, without nulls; never raises."""
    opened = members(attributes, MOST)
    plain: dict[str, Value] = {}
    for name, value in zip(opened.names or (), opened.values, strict=False) if opened else ():
        shown = snapshot({name: value})
        if name == names.SESSION_ID:  # named like a secret, and meant to be seen
            shown = {names.SESSION_ID: snapshot(value)}
        for key, item in cast("dict[str, object]", shown).items():
            if item is not None:
                plain[key] = item if isinstance(item, (str, bool, int, float)) else snapshot_text(item)
    return plain


def joins(span: Span, operation: str, mark: str, tool: str | None = None) -> bool:
    """Whether a span is the framework's own for what is about to happen, so that it is enriched, not doubled.

    It is when it records, says that it is this operation (of this tool), and does not bear the `mark` of an earlier
    enrichment. Some say of a tool's span by its name alone what it is, and the rest when it ends (Google's ADK). The
    attributes of a span can be read where the SDK made it; of another it is not known.
    """
    if not span.is_recording():
        return False
    present = cast("Mapping[str, object]", getattr(span, "attributes", None) or {})
    if mark in present:
        return False
    if tool is not None and names.OPERATION not in present:
        return bool(getattr(span, "name", "") == f"{operation} {tool}")
    return present.get(names.OPERATION) == operation and (tool is None or present.get(names.TOOL_NAME) == tool)


def begun(tracer: Tracer, name: str, context: Context | None, attributes: Mapping[str, Value]) -> Span:
    """A new span. Raises TypeError where a tracer of the user's gives something that is none."""
    span = cast("object", tracer.start_span(name, context, attributes=attributes))
    if isinstance(span, Span):
        return span
    raise TypeError(f"the tracer gave a {type(span).__name__} for a span")


def finish(span: Span, start: Mapping[str, Value], end: dict[str, Value], failure: str | None, phrase: str) -> None:
    """Set the last attributes and the status of a span.

    A span keeps a limited number of attributes and drops the oldest, which are the ones that say what it
    is: those are set again if others (an instrumentation inside the tool) pushed them out.
    """
    if failure is not None:
        end[names.ERROR_TYPE] = failure
        span.set_status(StatusCode.ERROR, phrase)
    span.set_attributes(end)
    first = next(iter(start), None)
    if first is not None and first not in getattr(span, "attributes", start):
        span.set_attributes({**start, **end})


def error_type(error: BaseException) -> str:
    """An exception as the value of `error.type`: its class, with the module unless it is a built-in one."""
    kind = type(error)
    name = kind.__qualname__
    return short(name if kind.__module__ == "builtins" else f"{kind.__module__}.{name}")


def detach(token: object, entered: Context | None) -> None:
    """Make current again what was before `entered` was; does nothing for None.

    The API's own `detach` logs an error with a traceback when it is called in another context than `attach` (a
    generator that another task closes): there, the token is left alone, and if `entered` came along by a copy of
    the context it is replaced by what was before.
    """
    if not isinstance(token, Token):
        return
    mine = cast("Token[Context]", token)
    try:
        mine.var.reset(mine)
    except (ValueError, RuntimeError):
        if entered is not None and contexts.get_current() is entered:
            before = mine.old_value
            contexts.attach(before if isinstance(before, Context) else Context())
