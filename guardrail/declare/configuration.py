"""The configuration: what `guardrail.yaml` says, and the same written in Python."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from pydantic import Field

from guardrail.declare.contracts import Task
from guardrail.declare.model import Declaration
from guardrail.declare.policies import Outcomes, Policy, Sentence
from guardrail.declare.tools import Tool


class StoreDeclaration(Declaration):
    """A live datastore. `url` such as `sqlite:///shop.db`; `timeout` bounds one look."""

    url: str
    timeout: str = "5s"


class Content(Declaration):
    """What of the content telemetry may carry: nothing (the default), or redacted arguments and results."""

    spans: bool = False
    redact: tuple[str, ...] = ()


class Configuration(Declaration):
    """Everything a guard is told.

    policy: the name of a bundled policy, a path, or a `Policy`. `mode`, `outcomes` and `retries` refine it.
    include: further files, merged before this one; the same name in two files is a mistake.
    ledger: path of the ledger's SQLite file (relative to the configuration file), or `memory`.
    drain: how long the end of a run waits for calls in flight.
    on_silent_failure: `raise` makes leaving the run raise `SilentFailure`; `report` (default) only says so.
    """

    version: Literal[1] = 1
    include: tuple[str, ...] = ()
    policy: str | Policy = "balanced"
    mode: Literal["enforce", "observe"] | None = None
    outcomes: Outcomes = Outcomes()
    sentences: tuple[Sentence, ...] = ()
    retries: int | None = Field(default=None, ge=0)
    stores: Mapping[str, StoreDeclaration] = {}
    tools: Mapping[str, Tool] = {}
    tasks: Mapping[str, Task] = {}
    ledger: str = "guardrail.db"
    drain: str = "30s"
    on_silent_failure: Literal["raise", "report"] = "report"
    content: Content = Content()
