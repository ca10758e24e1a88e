"""Events of the OpenTelemetry logs: they are not sampled with their trace, so a flagged run is always told."""

from __future__ import annotations

import time
from collections.abc import Mapping
from functools import cached_property
from inspect import signature
from typing import TypeAlias

from opentelemetry import _logs
from opentelemetry._logs import Logger, LoggerProvider, NoOpLogger, SeverityNumber
from opentelemetry.context import Context

from guardrail import attributes as names

Severity: TypeAlias = SeverityNumber
INFO = SeverityNumber.INFO
WARN = SeverityNumber.WARN
ERROR = SeverityNumber.ERROR

KNOWN_TO_THE_API = "event_name" in signature(NoOpLogger.emit).parameters
"""Whether the installed API can emit events by name."""


class Events:
    """Emits log events through the given provider or the global one, which may be set later.

    Events by name came to the logs API with opentelemetry-api 1.39; with an older one none are emitted.
    """

    def __init__(self, provider: LoggerProvider | None, version: str) -> None:
        self._provider = provider
        self._version = version

    def emit(
        self,
        name: str,
        context: Context | None,
        attributes: Mapping[str, str | int | float | bool],
        severity: SeverityNumber = INFO,
    ) -> None:
        """Emit one event, correlated with the span of `context`."""
        if not KNOWN_TO_THE_API:
            return
        self._logger.emit(
            timestamp=time.time_ns(),
            context=context,
            severity_number=severity,
            severity_text=severity.name,
            attributes=dict(attributes),
            event_name=name,
        )

    @cached_property
    def _logger(self) -> Logger:
        return _logs.get_logger(names.SCOPE, self._version, self._provider)
