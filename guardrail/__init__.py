"""Guard an agent's tool calls: hard stops, live state checks, a durable record."""

from guardrail.calls import Finding, Hints, Stop, ToolCall, Verdict
from guardrail.declare.configuration import Configuration
from guardrail.errors import (
    CallRefused,
    ConfigurationError,
    GuardrailError,
    InputError,
    LedgerError,
    QueryRefused,
    RunHalted,
    RunNotOpen,
    RunStopped,
    SilentFailure,
    StoreError,
)
from guardrail.run.guard import Guard
from guardrail.run.run import Run
from guardrail.verification.checks import State

__all__ = [
    "CallRefused",
    "Configuration",
    "ConfigurationError",
    "Finding",
    "Guard",
    "GuardrailError",
    "Hints",
    "InputError",
    "LedgerError",
    "QueryRefused",
    "Run",
    "RunHalted",
    "RunNotOpen",
    "RunStopped",
    "SilentFailure",
    "State",
    "Stop",
    "StoreError",
    "ToolCall",
    "Verdict",
]
