"""The trace that a message belongs to: the host's spans above the guard's, the guard's above the server's.

Between client and server a trace is told in `_meta`, for each message; over HTTP a header may tell it too.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from opentelemetry.context import Context
from opentelemetry.trace import get_current_span
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from guardrail.proxy.messages import Message

_FORM: Final = TraceContextTextMapPropagator()
FIELDS: Final = frozenset(_FORM.fields)
"""The names under which a trace is told."""


def told(message: Message, headers: Mapping[str, str]) -> Context:
    """The context of the span that a message was sent in: as it says itself, else as its headers do; else of none."""
    said = {name: value for name, value in message.meta.items() if name in FIELDS and isinstance(value, str)}
    found = _FORM.extract(said, Context())
    return found if _is_traced(found) else _FORM.extract(headers, Context())


def current() -> dict[str, str]:
    """How the guard's own current span is told; empty where nothing traces here, so that the host's is still true."""
    carrier: dict[str, str] = {}
    if not get_current_span().get_span_context().is_remote:
        _FORM.inject(carrier)
    return carrier


def _is_traced(context: Context) -> bool:
    return get_current_span(context).get_span_context().is_valid
