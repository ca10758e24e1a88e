"""Contracts as data, with agents that fulfil or break them, played on stores of every kind.

A case is a file of `tests/contracts/cases`:

    tables, rows    the store's tables, with the types of `support.databases`, and what stands in them before each run
    contract        the part of a guardrail.yaml that a user writes; the store `shop`, and the tools `find` (a read) and
                    `write` are declared already
    inputs          those of the run
    timeout         the store's
    resources       those of the store `shop` where it is an HTTP API; without them it is only played on databases. A
                    `where` is left out of the contract then: the resource says which rows there are
    desk            a second store, an HTTP API: its tables, rows and resources
    secrets         texts that no verdict may hold
    apart           whether each agent gets a database of its own, as what it does cannot be undone
    agents          by name, what an agent does and what is found then

An agent's `does` are its calls of guarded tools, and what happens between them; `goes_before` is what happens before
the run:

    - update orders set note = 'x'                  a call of `write`, with a statement
    - ["insert into t values (?)", {decimal: 1}]    or with a statement and its values
    - {tool: pay, args: {id: 17}, does: [...], answers: {id: 3}}
    - {desk: [...]}                                 a call of `write`, which writes to the second store
    - {later: [...]}                                written by somebody else, soon after the agent has ended
    - {held: update orders ...}                     begun by somebody else, and ended after the run
    - {gone: true}                                  the whole database is gone

`findings` are lines of `kind place key column`; a warning's begins with `warning:`. The verdict follows from them, if
none is named. They read alike on all stores; where they hold what a database says itself, `says` gives patterns that
must be found in them instead. `lacks` names the kinds of stores that cannot hold such a state, `unlike` those on which
something else is found, each with the reason.
"""

from __future__ import annotations

import asyncio
import json
import re
import threading
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from datetime import date, datetime, time
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias, cast
from uuid import UUID

from pydantic import BaseModel, ConfigDict
from ruamel.yaml import YAML

from guardrail import CallRefused, Finding, Guard, Run, Verdict
from support.databases import KINDS, Database, Kind, SqliteDatabase
from support.rest import Rest

CASES: Final = Path(__file__).parents[1] / "contracts" / "cases"

Mode: TypeAlias = Literal["with", "async with"]

Place: TypeAlias = Literal["sqlite", "postgres", "mariadb", "http"]
"""Where the store `shop` is."""

_TOOLS: Final = {"find": {"effect": "read"}, "write": {"effect": "write"}}

_TYPES: Final[Mapping[str, Callable[[Any], object]]] = {
    "decimal": lambda text: Decimal(str(text)),
    "instant": datetime.fromisoformat,
    "date": date.fromisoformat,
    "time": time.fromisoformat,
    "bytes": bytes.fromhex,
    "uuid": UUID,
}
"""Values that YAML cannot write, by the one key of the mapping that stands for them."""

_LATER: Final = 0.15
"""After how many seconds somebody else writes."""


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Step(_Model):
    """A call of a tool, or something that happens beside the agent; see the module's text."""

    tool: str = "write"
    args: Mapping[str, Any] = {}
    does: Sequence[Any] = ()
    answers: Any = {"ok": True}
    desk: Sequence[Any] = ()
    later: Sequence[Any] = ()
    held: str | Mapping[Kind, str] = ""
    gone: bool = False

    @classmethod
    def of(cls, raw: object) -> Step:
        """A step as it is written."""
        return cls.model_validate(raw) if isinstance(raw, Mapping) else cls(does=[raw])

    @property
    def is_call(self) -> bool:
        """Whether the agent does it, by calling a tool."""
        return not (self.later or self.held or self.gone)


class Ending(_Model):
    """What is to be found after a run."""

    findings: Sequence[str] = ()
    verdict: str = ""
    says: Sequence[str] = ()

    @property
    def comes_to(self) -> str:
        """The verdict that is named, else what the findings come to."""
        if self.verdict:
            return self.verdict
        kinds = {line.split()[0] for line in self.findings} - {"warning:"}
        if kinds - {"check_error"}:
            return "silent_failure"
        return "unverified" if kinds else "verified"


class Unlike(Ending):
    """What is to be found on one database, and why that is something else than on the others."""

    because: str


class Agent(Ending):
    """What an agent does, and what is to be found then. `refused` is how many of its calls are not carried out."""

    contract: str = ""
    goes_before: Sequence[Any] = ()
    does: Sequence[Any] = ()
    inputs: Mapping[str, Any] = {}
    alternative: str | None = None
    refused: int = 0
    lacks: Mapping[Place, str] = {}
    unlike: Mapping[Place, Unlike] = {}

    def ending(self, place: Place) -> Ending:
        """What is to be found on a store of this kind."""
        return self.unlike.get(place, self)


class Desk(_Model):
    """A second store, which is an HTTP API."""

    tables: str
    rows: str = ""
    resources: Mapping[str, Any]


class Case(_Model):
    """A contract with the tables that it speaks of, and agents. An agent may come with a contract of its own."""

    tables: str
    rows: str = ""
    contract: str = ""
    inputs: Mapping[str, Any] = {}
    timeout: str = "30s"
    resources: Mapping[str, Any] = {}
    desk: Desk | None = None
    secrets: Sequence[str] = ()
    apart: bool = False
    agents: Mapping[str, Agent]

    @property
    def places(self) -> tuple[Place, ...]:
        """The kinds of stores that it is played on."""
        return (*KINDS, "http") if self.resources else KINDS


@cache
def case(name: str) -> Case:
    """The case in the file of this name."""
    written: object = YAML(typ="safe").load(CASES / f"{name}.yaml")  # pyright: ignore[reportUnknownMemberType]
    return Case.model_validate(written)


CASE_NAMES: Final = sorted(path.stem for path in CASES.glob("*.yaml"))


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a run came to. `refused` is how many of its calls were not carried out."""

    verdict: Verdict
    refused: int

    @property
    def findings(self) -> list[str]:
        """The findings as a case writes them."""
        return sorted(map(line_of, self.verdict.findings))

    @property
    def texts(self) -> list[str]:
        """What a person reads, in the order in which it is told."""
        return [*(finding.text for finding in self.verdict.findings), self.verdict.because]


def line_of(finding: Finding) -> str:
    """A finding without its values: `kind place key column`."""
    key = ",".join(f"{column}={value}" for column, value in finding.key.items())
    words = ("warning:" if finding.warning else "", finding.kind, finding.place, key, finding.column or "")
    return " ".join(word for word in words if word).rstrip()


class Scene:
    """A case on a store: its tables, and a guard with its contract, or with another one."""

    def __init__(self, case: Case, database: Database, folder: Path, place: Place, contract: str = "") -> None:
        self.database = database
        self.desk = SqliteDatabase(folder / "desk.db")
        self._case = case
        self._opening = ExitStack()
        database.script(case.tables)
        stores = {"shop": self._served(case.tables, database, case.resources) if place == "http" else {}}
        stores["shop"] = {"url": database.url, **stores["shop"], "timeout": case.timeout}
        if case.desk is not None:
            self.desk.script(case.desk.tables)
            stores["desk"] = self._served(case.desk.tables, self.desk, case.desk.resources)
        setting = {"version": 1, "ledger": "memory", "stores": stores, "tools": _TOOLS}
        (folder / "shop.yaml").write_text(json.dumps(setting), "utf-8")
        written = contract or case.contract
        if place == "http":
            written = re.sub(r', where: "[^"]*"', "", written)
        path = folder / "guardrail.yaml"
        path.write_text(f"include: [shop.yaml]\n{written}", "utf-8")
        self._guard = self._opening.enter_context(closing(Guard.load(path)))
        [self._task] = self._guard.configuration.tasks

    def _served(self, tables: str, database: Database, resources: Mapping[str, Any]) -> dict[str, Any]:
        """The declaration of a store that is an API over tables."""
        assert isinstance(database, SqliteDatabase)
        api = self._opening.enter_context(closing(Rest(database, _names(tables))))
        whole = {table: {"get": f"/{table}", "rows": "/rows", **resource} for table, resource in resources.items()}
        return {"url": api.url, "private": True, "resources": whole}

    def close(self) -> None:
        self._opening.close()

    def set(self) -> None:
        """Let the tables hold the case's rows, and nothing else."""
        _set(self.database, self._case.tables, self._case.rows)
        if self._case.desk is not None:
            _set(self.desk, self._case.desk.tables, self._case.desk.rows)

    def play(self, agent: Agent, mode: Mode) -> Outcome:
        """What a run of the agent comes to, on the case's rows."""
        self.set()
        run = self._guard.run(self._task, inputs={**self._case.inputs, **agent.inputs})
        with ExitStack() as others:
            playing = _Playing(self, run, others)
            for step in agent.goes_before:
                playing.happens(Step.of(step))
            if mode == "with":
                playing.act(agent)
            else:
                asyncio.run(playing.aact(agent))
        assert run.verdict is not None
        return Outcome(run.verdict, playing.refused)


def _names(tables: str) -> list[str]:
    """The tables that a script creates, as they are written there."""
    return [line.split()[2] for line in tables.splitlines() if line.startswith("create table")]


def _set(database: Database, tables: str, rows: str) -> None:
    database.transact(*((f"delete from {table}",) for table in reversed(_names(tables))))
    database.script(rows)


class _Playing:
    """A run in which an agent is at work, and `others` until the run has ended."""

    def __init__(self, scene: Scene, run: Run, others: ExitStack) -> None:
        self.refused = 0
        self._database = scene.database
        self._desk = scene.desk
        self._run = run
        self._others = others

    def act(self, agent: Agent) -> None:
        with self._run:
            for step in self._calls(agent):
                with self._counting():
                    self._run.call(step.tool, _args(step), self._tool(step))

    async def aact(self, agent: Agent) -> None:
        async with self._run:
            for step in self._calls(agent):
                with self._counting():
                    await self._run.acall(step.tool, _args(step), self._tool(step))

    def happens(self, step: Step) -> None:
        """Let something happen that is no call."""
        if step.gone:
            self._database.vanish()
        elif step.held:
            session = self._others.enter_context(closing(self._database.connect()))
            session.execute(step.held if isinstance(step.held, str) else step.held[self._database.kind])
        elif step.later:
            timer = threading.Timer(_LATER, _write, [self._database, step.later])
            timer.start()
            self._others.callback(timer.join)
        else:
            _write(self._database, step.does)

    def _calls(self, agent: Agent) -> Iterator[Step]:
        """The agent's calls; other things happen between them."""
        for step in map(Step.of, agent.does):
            if step.is_call:
                yield step
            else:
                self.happens(step)

    @contextmanager
    def _counting(self) -> Generator[None]:
        try:
            yield
        except CallRefused:
            self.refused += 1

    def _tool(self, step: Step) -> Callable[..., object]:
        def tool(**args: object) -> object:
            _write(self._database, step.does)
            _write(self._desk, step.desk)
            return step.answers

        return tool


def _args(step: Step) -> Mapping[str, object]:
    return step.args or {"statements": [str(statement) for statement in (*step.does, *step.desk)]}


def _write(database: Database, statements: Sequence[Any]) -> None:
    written = [[statement] if isinstance(statement, str) else statement for statement in statements]
    database.transact(*((statement, *map(_value, values)) for statement, *values in written))


def _value(raw: Any) -> object:
    """A statement's value, as it is written in a case."""
    if isinstance(raw, Mapping):
        [(name, written)] = cast("Mapping[str, Any]", raw).items()
        return _TYPES[name](written)
    return raw
