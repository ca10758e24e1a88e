"""A configuration made live: policies merged, tools and contracts compiled, stores opened, once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from guardrail.call.hints import hinted, is_trusted, tells_effect
from guardrail.call.tools import LiveTool, live_tool
from guardrail.calls import Hints
from guardrail.declare.bundled import policy as bundled_policy
from guardrail.declare.bundled import sentences as bundled_sentences
from guardrail.declare.configuration import Configuration
from guardrail.declare.durations import seconds
from guardrail.declare.faults import suggestion
from guardrail.declare.loading import check
from guardrail.declare.patterns import matches, tool_for
from guardrail.declare.policies import Policy, refined
from guardrail.declare.tools import EarlierRequirement
from guardrail.errors import ConfigurationError, Mistake, StoreError
from guardrail.ledger.opening import is_url
from guardrail.pictures import Table
from guardrail.query.proof import Dialect
from guardrail.run.apis import api_of
from guardrail.stores.opening import open_api, open_replicated, open_store
from guardrail.stores.store import Store, tables_of
from guardrail.telemetry.logs import get_logger
from guardrail.verification.contracts import LiveContract

MOST_TOOLS = 1_000
"""How many tools are kept compiled."""


class Live:
    """Everything that the runs of one configuration share. It does not change; a reload makes another."""

    def __init__(self, configuration: Configuration, stores: Mapping[str, object], base: Path | None = None) -> None:
        """Compile and open; raises `ConfigurationError` with all mistakes, or `StoreError`."""
        mistakes = check(configuration)
        if mistakes:
            raise ConfigurationError(mistakes)
        self.configuration = configuration
        self._base = base
        self.policy = _policy(configuration)
        self.enforced = self.policy.mode == "enforce"
        self.drain = seconds(configuration.drain)
        self.stores: dict[str, Store] = {
            name: self.open(name, stores[name]) if name in stores else self._declared(name)
            for name in configuration.stores
        }
        oversized = self._oversized()
        if oversized:
            self.close()
            raise ConfigurationError(oversized)
        self.dialects: dict[str, Dialect | None] = {name: store.dialect for name, store in self.stores.items()}
        self._sentences = (*configuration.sentences, *bundled_sentences())
        self._trusted = frozenset(name for name, server in configuration.servers.items() if server.trust_annotations)
        self._tools: dict[str | tuple[str, Hints], LiveTool] = {}
        self._undeclared: set[str] = set()
        self._contracts: dict[str, LiveContract] = {}
        self.wanted = frozenset(
            requirement.earlier
            for tool in configuration.tools.values()
            for requirement in tool.requires
            if isinstance(requirement, EarlierRequirement)
        )

    def _oversized(self) -> list[Mistake]:
        """The tasks that name no `watch` while a store of theirs has a table that is too big to be watched whole.

        A store that is away is not asked: that is no mistake of the configuration, and the verdict will say so.
        """
        return [
            Mistake(
                "<stores>",
                None,
                f"tasks.{name}.watch",
                f"is missing, and {store}.{table.name} has more than {task.most_rows} rows",
                "name the tables that the task watches, or raise most_rows",
            )
            for name, task in self.configuration.tasks.items()
            if task.watch is None and (task.expect is not None or task.any_of)
            for store in (self.stores if task.stores is None else task.stores)
            for table in self._tables(store, task.most_rows)
            if table.rows is not None and table.rows > task.most_rows
        ]

    def _tables(self, store: str, most: int) -> tuple[Table, ...]:
        try:
            return tables_of(self.stores[store], most)
        except StoreError:
            return ()

    @property
    def secret(self) -> frozenset[str]:
        """Names of arguments, fields and columns that are never stored or shown."""
        tools = self.configuration.tools.values()
        return frozenset(self.configuration.content.redact).union(*(tool.redact for tool in tools))

    def open(self, name: str, where: object) -> Store:
        """Open a store under its declared name, at `where` (a URL, a path, a function; None: as declared).

        Raises `StoreError`.
        """
        if name not in self.configuration.stores:
            known = ", ".join(self.configuration.stores) or "none"
            raise StoreError(f"there is no store {name} in the configuration; its stores are: {known}")
        declared = self.configuration.stores[name]
        timeout = seconds(declared.timeout)
        if declared.is_http:
            return open_api(name, where, api_of(declared, self._base), timeout)
        return open_store(name, where, timeout, declared.dialect)

    def _declared(self, name: str) -> Store:
        """Open a store where it is declared to be."""
        declared = self.configuration.stores[name]
        url = _placed(declared.url, self._base)
        if declared.replica is None:
            return self.open(name, url)
        return open_replicated(name, url, declared.replica, seconds(declared.timeout))

    def tool(self, name: str, hints: Hints | None = None) -> LiveTool:
        """The live tool of this name, with what is said about it; compiled when it is first asked for."""
        key = name if hints is None else (name, hints)
        found = self._tools.get(key)
        if found is None:
            if len(self._tools) >= MOST_TOOLS:  # a model makes names up
                self._tools.clear()
            found = self._tools[key] = self._compiled(name, hints)
        return found

    def called(self, name: str, hints: Hints | None = None) -> LiveTool:
        """The live tool that a run calls by this name; that nobody says what it does is told once."""
        found = self._tools.get(name if hints is None else (name, hints))
        if found is None:
            found = self.tool(name, hints)
            if not tells_effect(hints, self._trusted):
                self._mind(name)
        return found

    def _compiled(self, name: str, hints: Hints | None) -> LiveTool:
        declared = tool_for(self.configuration.tools, name)
        if hints is not None:
            declared = hinted(declared, hints, trusted=is_trusted(hints, self._trusted))
        found = live_tool(name, declared, self.policy, self._sentences, self.dialects)
        return replace(found, redact=found.redact.union(self.configuration.content.redact))

    def _mind(self, name: str) -> None:
        """Say of a tool that nothing is declared of it: there may be a slip in the name of what is."""
        tools = self.configuration.tools
        if len(self._undeclared) >= MOST_TOOLS:
            self._undeclared.clear()
        if tools and name not in self._undeclared and not any(matches(entry, name) for entry in tools):
            self._undeclared.add(name)
            advice = suggestion(name, tools, "declared are") or "declare its effect"
            get_logger().warning("guardrail.tool_not_declared", tool=name, advice=advice)

    def contract(self, task: str) -> LiveContract | None:
        """The live contract of a task; None when nothing is declared of it."""
        if task not in self._contracts and task in self.configuration.tasks:
            self._contracts[task] = LiveContract(task, self.configuration.tasks[task], self.dialects)
        return self._contracts.get(task)

    def why_no_contract(self, task: str | None) -> str:
        """Why a run of this task has no contract."""
        if task is None:
            return "the run has no contract: it was opened without a task"
        advice = suggestion(task, self.configuration.tasks, "the tasks are")
        return f"the run has no contract: no task {task} is declared" + (f" ({advice})" if advice else "")

    def close(self) -> None:
        """Close the stores."""
        for store in self.stores.values():
            store.close()


def _policy(configuration: Configuration) -> Policy:
    named = configuration.policy
    policy = named if isinstance(named, Policy) else bundled_policy(named)
    return refined(policy, configuration.mode, configuration.outcomes, configuration.retries)


_SQLITE = "sqlite:///"


def _placed(url: str, base: Path | None) -> str:
    """The URL of a store; a relative path of a SQLite file begins at the configuration file."""
    path = url.removeprefix(_SQLITE)
    if base is None or path == url or path.startswith(("/", ":")):
        return url
    return f"{_SQLITE}{(base / path).absolute()}"


def ledger_place(configuration: Configuration, base: Path | None) -> str:
    """Where the ledger lies; a path is relative to the configuration file, or to the working directory."""
    place = configuration.ledger
    return place if place == "memory" or base is None or is_url(place) else str(base / place)
