"""The configuration: what `guardrail.yaml` says, and the same written in Python."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Final, Literal

from pydantic import Field

from guardrail.declare.choices import BY_FORM, KEYS, PLAIN
from guardrail.declare.contracts import Task
from guardrail.declare.durations import Duration
from guardrail.declare.model import Count, Declaration, Flag
from guardrail.declare.policies import Outcomes, Policy, Sentence, Version
from guardrail.declare.resources import Absent, Resource
from guardrail.declare.texts import Filled, HeaderName, HeaderText, LedgerPlace, Location, Name
from guardrail.declare.tools import Tool
from guardrail.query.urls import is_http

if TYPE_CHECKING:
    from guardrail.query.proof import Dialect

_DIALECTS: Final[Mapping[str, Dialect]] = {
    "sqlite": "sqlite",
    "postgres": "postgres",
    "postgresql": "postgres",
    "mysql": "mysql",
    "mariadb": "mysql",
}


class StoreDeclaration(Declaration):
    """A live datastore. `url` such as `sqlite:///shop.db`, which is not in the repr: it may hold a password.

    `timeout` bounds one look. `replica` is the URL of a replica of the server at `url`: the looks go there, once it has
    what the primary had when the look was asked for.

    The rest is for HTTP stores, whose URL is an origin with a base path:
    headers: what is sent with every request, credentials too; not in the repr.
    resources: what can be watched, by name.
    absent: statuses that mean that there is none.
    private: whether it may be in this machine or in a private network.
    proxy: the URL of the proxy to go through. None is taken from the environment.
    ca: path of a file with the certificates (PEM) that its own is checked with, in the place of the known ones.
    """

    url: Location = Field(repr=False)
    replica: Location | None = Field(default=None, repr=False)
    timeout: Duration = "5s"
    headers: Mapping[HeaderName, HeaderText] = Field(default={}, repr=False)
    resources: Mapping[Name, Resource] = {}
    absent: Absent = (404, 410)
    private: Flag = False
    proxy: Location | None = Field(default=None, repr=False)
    ca: Location | None = None

    @property
    def is_http(self) -> bool:
        """Whether it is an HTTP API, which takes no SQL."""
        return is_http(self.url)

    @property
    def dialect(self) -> Dialect | None:
        """The SQL dialect that the URL's scheme stands for; None: none that is known. A bare path is SQLite's."""
        return dialect_of(self.url)


def dialect_of(url: str) -> Dialect | None:
    """The SQL dialect that a URL's scheme stands for; None: none that is known. A bare path is SQLite's."""
    scheme, found, _ = url.partition("://")
    return _DIALECTS.get(scheme.partition("+")[0].lower()) if found else "sqlite"


class Server(Declaration):
    """An MCP server by name.

    trust_annotations: its annotations may also say that a tool only reads, or that a repeat is harmless; without it
    only that one writes.
    """

    trust_annotations: Flag = False


class Content(Declaration):
    """What of the content telemetry may carry: nothing (the default), or redacted arguments and results."""

    spans: Flag = False
    redact: tuple[Filled, ...] = ()


class Configuration(Declaration):
    """Everything a guard is told.

    policy: the name of a bundled policy, a path, or a `Policy`. `mode`, `outcomes` and `retries` refine it.
    include: further files, merged before this one (and then empty); the same name in two files is a mistake.
    openapi: OpenAPI documents whose operations are tools, each by its `operationId` (and then empty: they are in `tools`).
    ledger: path of the ledger's SQLite file (relative to the configuration file), `memory`, or a `postgresql://` URL,
    which is not in the repr: it may hold a password.
    servers: the MCP servers whose annotations are trusted.
    drain: how long the end of a run waits for calls in flight.
    on_silent_failure: `raise` makes leaving the run raise `SilentFailure`; `report` (default) only says so.
    """

    version: Version = 1
    include: tuple[Filled, ...] = ()
    openapi: tuple[Filled, ...] = ()
    policy: Annotated[Annotated[Filled, PLAIN] | Annotated[Policy, KEYS], BY_FORM] = "balanced"
    mode: Literal["enforce", "observe"] | None = None
    outcomes: Outcomes = Outcomes()
    sentences: tuple[Sentence, ...] = ()
    retries: Count | None = None
    stores: Mapping[Name, StoreDeclaration] = {}
    tools: Mapping[str, Tool] = {}
    tasks: Mapping[Filled, Task] = {}
    servers: Mapping[Filled, Server] = {}
    ledger: LedgerPlace = Field(default="guardrail.db", repr=False)
    drain: Duration = "30s"
    on_silent_failure: Literal["raise", "report"] = "report"
    content: Content = Content()
