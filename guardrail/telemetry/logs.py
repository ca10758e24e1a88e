"""Log lines through structlog, with trace and span ids; nothing is configured globally."""

from __future__ import annotations

import logging
import sys
from collections.abc import MutableMapping
from contextlib import suppress
from typing import Any, Literal, TypeAlias

from opentelemetry import trace

from guardrail.attributes import SCOPE
from guardrail.telemetry.redaction import snapshot

Level: TypeAlias = Literal["debug", "info", "warning", "error"]


def get_logger(**bound: object) -> Log:
    """The library's log, with values bound to every line of it."""
    return Log(bound)


def add_trace_context(logger: object, method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """A structlog processor that adds `trace_id`, `span_id` and `trace_flags` of the current span.

    Put it before the renderer: `structlog.configure(processors=[..., add_trace_context, JSONRenderer()])`. The
    library's own lines have the ids without it.
    """
    event.update(_trace_ids())
    return event


class Log:
    """A log that cannot harm the run: it never raises, and it redacts and bounds every value.

    If the application has configured structlog, lines go there. Otherwise they go, as `key=value` text, to the
    logger "guardrail" of the standard library, which shows warnings on stderr; never to stdout.
    """

    __slots__ = ("_bound",)

    def __init__(self, bound: dict[str, object]) -> None:
        self._bound = bound

    def bind(self, **values: object) -> Log:
        """The same log with more values bound."""
        return Log({**self._bound, **values})

    def debug(self, event: str, **values: object) -> None:
        """What only a developer wants to know."""
        self._say("debug", event, values)

    def info(self, event: str, **values: object) -> None:
        """What happened."""
        self._say("info", event, values)

    def warning(self, event: str, **values: object) -> None:
        """What somebody should look at."""
        self._say("warning", event, values)

    def error(self, event: str, **values: object) -> None:
        """What went wrong."""
        self._say("error", event, values)

    def _say(self, level: Level, event: str, values: dict[str, object]) -> None:
        if not _is_heard(level):
            return
        with suppress(Exception):  # a processor or handler of the user's may raise: a line is not worth a run
            line = snapshot({**self._bound, **_trace_ids(), **values})
            getattr(_logger(), level)(event, **(line if isinstance(line, dict) else {}))


def _trace_ids() -> dict[str, str]:
    """The ids of the current span, written as they are in traces; nothing where there is no span, or a broken one."""
    with suppress(Exception):  # a span of the user's own making may raise anything
        span = trace.get_current_span().get_span_context()
        if span.is_valid:
            return {
                "trace_id": trace.format_trace_id(span.trace_id),
                "span_id": trace.format_span_id(span.span_id),
                "trace_flags": f"{span.trace_flags:02x}",
            }
    return {}


def _is_heard(level: Level) -> bool:
    """Whether anybody hears lines of this level.

    Importing structlog takes tens of milliseconds: it is left alone until a line is really written.
    """
    if _is_structlog_configured():
        return True
    return logging.getLogger(SCOPE).isEnabledFor(getattr(logging, level.upper()))


def _is_structlog_configured() -> bool:
    # Without the function while another thread is importing the module.
    is_configured = getattr(sys.modules.get("structlog"), "is_configured", None)
    return is_configured is not None and bool(is_configured())


def _logger() -> Any:
    import structlog

    if structlog.is_configured():
        return structlog.get_logger(SCOPE)
    return structlog.wrap_logger(
        logging.getLogger(SCOPE),
        processors=[structlog.processors.KeyValueRenderer(key_order=["event"])],
        wrapper_class=structlog.stdlib.BoundLogger,
    )
