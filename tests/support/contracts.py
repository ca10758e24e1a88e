"""Contracts as data, with agents that fulfil or break them, played on a database of any kind.

A case is a file of `tests/contracts/cases`:

    tables, rows    the store's tables, with the types of `support.databases`, and what stands in them before each run
    contract        the part of a guardrail.yaml that a user writes; the store `shop`, and the tools `find` (a read) and
                    `write` are declared already
    inputs          those of the run
    agents          by name, what an agent does and what is found then

An agent's `does` are its calls of guarded tools:

    - update orders set note = 'x'              a call of `write`, with a statement
    - ["insert into t values (?)", {decimal: 1}]  or with a statement and its values
    - {tool: pay, args: {id: 17}, does: [...], answers: {id: 3}}
    - {later: [...]}                            written by somebody else, soon after the agent has ended

`findings` are lines of `kind place key column`; a warning's begins with `warning:`. The verdict follows from
them, if none is named.
`lacks` names the databases that cannot hold such a state, each with the reason.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
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
from support.databases import Database

CASES: Final = Path(__file__).parents[1] / "contracts" / "cases"

Mode: TypeAlias = Literal["with", "async with"]

_SETTING: Final = """\
version: 1
ledger: memory
stores:
  shop: {{url: "{url}"}}
tools:
  find: {{effect: read}}
  write: {{effect: write}}
"""

_TYPES: Final[Mapping[str, Callable[[Any], object]]] = {
    "decimal": lambda text: Decimal(str(text)),
    "instant": datetime.fromisoformat,
    "date": date.fromisoformat,
    "time": time.fromisoformat,
    "bytes": bytes.fromhex,
    "uuid": UUID,
}
"""Values that YAML cannot write, by the one key of the mapping that stands for them."""


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Step(_Model):
    """A call of a tool, or what somebody else does; see the module's text."""

    tool: str = "write"
    args: Mapping[str, Any] = {}
    does: Sequence[Any] = ()
    answers: Any = {"ok": True}
    later: Sequence[Any] = ()

    @classmethod
    def of(cls, raw: object) -> Step:
        """A step as it is written."""
        return cls.model_validate(raw) if isinstance(raw, Mapping) else cls(does=[raw])


class Agent(_Model):
    """What an agent does, and what is to be found."""

    does: Sequence[Any] = ()
    inputs: Mapping[str, Any] = {}
    findings: Sequence[str] = ()
    alternative: str | None = None
    refused: int = 0
    verdict: str = ""
    lacks: Mapping[str, str] = {}

    @property
    def comes_to(self) -> str:
        """The verdict that is named, else what the findings come to."""
        if self.verdict:
            return self.verdict
        kinds = {line.split()[0] for line in self.findings} - {"warning:"}
        if kinds - {"check_error"}:
            return "silent_failure"
        return "unverified" if kinds else "verified"


class Case(_Model):
    """A contract with the tables that it speaks of, and agents."""

    tables: str
    rows: str = ""
    contract: str
    inputs: Mapping[str, Any] = {}
    secrets: Sequence[str] = ()
    agents: Mapping[str, Agent]


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
        """The findings as a person reads them."""
        return sorted(finding.text for finding in self.verdict.findings)


def line_of(finding: Finding) -> str:
    """A finding without its values: `kind place key column`."""
    key = ",".join(f"{column}={value}" for column, value in finding.key.items())
    words = ("warning:" if finding.warning else "", finding.kind, finding.place, key, finding.column or "")
    return " ".join(word for word in words if word).rstrip()


class Scene:
    """A case on a database: its tables, and a guard with its contract."""

    def __init__(self, case: Case, database: Database, folder: Path) -> None:
        self.database = database
        self._case = case
        database.script(case.tables)
        (folder / "shop.yaml").write_text(_SETTING.format(url=database.url), "utf-8")
        path = folder / "guardrail.yaml"
        path.write_text(f"include: [shop.yaml]\n{case.contract}", "utf-8")
        self._guard = Guard.load(path)
        [self._task] = self._guard.configuration.tasks

    def close(self) -> None:
        self._guard.close()

    def set(self) -> None:
        """Let the tables hold the case's rows, and nothing else."""
        created = [line.split()[2] for line in self._case.tables.splitlines() if line.startswith("create table")]
        self.database.transact(*((f"delete from {table}",) for table in reversed(created)))
        self.database.script(self._case.rows)

    def play(self, agent: Agent, mode: Mode) -> Outcome:
        """What a run of the agent comes to, on the case's rows."""
        self.set()
        run = self._guard.run(self._task, inputs={**self._case.inputs, **agent.inputs})
        playing = _Playing(self.database, run)
        if mode == "with":
            playing.act(agent)
        else:
            asyncio.run(playing.aact(agent))
        assert run.verdict is not None
        return Outcome(run.verdict, playing.refused)


class _Playing:
    """A run in which an agent is at work."""

    def __init__(self, database: Database, run: Run) -> None:
        self.refused = 0
        self._database = database
        self._run = run

    def act(self, agent: Agent) -> None:
        with ExitStack() as others, self._run:
            for step in self._calls(agent, others):
                with self._counting():
                    self._run.call(step.tool, _args(step), self._tool(step))

    async def aact(self, agent: Agent) -> None:
        with ExitStack() as others:
            async with self._run:
                for step in self._calls(agent, others):
                    with self._counting():
                        await self._run.acall(step.tool, _args(step), self._tool(step))

    def _calls(self, agent: Agent, others: ExitStack) -> Iterator[Step]:
        """The agent's calls; what somebody else does later is begun, and awaited at the end of `others`."""
        for step in map(Step.of, agent.does):
            if not step.later:
                yield step
                continue
            timer = threading.Timer(_LATER, self._write, [step.later])
            timer.start()
            others.callback(timer.join)

    @contextmanager
    def _counting(self) -> Generator[None]:
        try:
            yield
        except CallRefused:
            self.refused += 1

    def _tool(self, step: Step) -> Callable[..., object]:
        def tool(**args: object) -> object:
            self._write(step.does)
            return step.answers

        return tool

    def _write(self, statements: Sequence[Any]) -> None:
        written = [[statement] if isinstance(statement, str) else statement for statement in statements]
        self._database.transact(*((statement, *map(_value, values)) for statement, *values in written))


_LATER: Final = 0.15
"""After how many seconds somebody else writes."""


def _args(step: Step) -> Mapping[str, object]:
    return step.args or {"statements": [str(statement) for statement in step.does]}


def _value(raw: Any) -> object:
    """A statement's value, as it is written in a case."""
    if isinstance(raw, Mapping):
        [(name, written)] = cast("Mapping[str, Any]", raw).items()
        return _TYPES[name](written)
    return raw
