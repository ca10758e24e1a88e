"""Backtest: recorded runs replayed against a real database, to see what a policy would have done."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from multiprocessing.queues import SimpleQueue
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from guardrail.call.tools import CEL_NAMES
from guardrail.calls import Effect, Stop, VerdictKind
from guardrail.declare.configuration import Configuration, StoreDeclaration
from guardrail.declare.expressions import compile_expression
from guardrail.declare.patterns import tool_for
from guardrail.declare.policies import Policy
from guardrail.declare.tools import CelRequirement, Requirement, SqlRequirement, Tool
from guardrail.recorded.database import RecordedDatabase
from guardrail.recorded.engines import connect
from guardrail.recorded.expected import STORE, contract
from guardrail.recorded.format import RecordedCall, RecordedRun, RecordedRunsError, RecordedTask, Recording, read
from guardrail.recorded.places import place
from guardrail.run.guard import Guard


@dataclass(frozen=True, slots=True)
class Replayed:
    """What one recorded run came to: its label, the verdict of its end state, where it would have stopped."""

    run_id: str
    passed: bool
    state_is_right: bool
    fault: str | None
    verdict: VerdictKind
    stop: Stop | None
    open_holds: int
    findings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Share:
    """How many of a group of runs: `[count, total]` in JSON."""

    count: int = 0
    total: int = 0

    def __add__(self, hit: bool) -> Share:
        """The share with one more run counted."""
        return Share(self.count + hit, self.total + 1)


@dataclass(frozen=True, slots=True)
class Shares:
    """Shares of the passed runs, of the failed ones, and by fault where the recording names faults."""

    passed: Share = Share()
    failed: Share = Share()
    by_fault: Mapping[str, Share] = field(default_factory=dict[str, Share])


@dataclass(frozen=True, slots=True)
class BacktestReport:
    """What a policy would have done with a folder of recorded runs.

    `state` is the verdict on the end state against its label (positive: the state is wrong). `stops` are the
    runs that the policy would have stopped, `open_holds` those that it would not have stopped but that
    ended with an unresolved failure.
    """

    name: str
    policy: str
    seconds: float
    replayed: tuple[Replayed, ...]

    @property
    def state(self) -> dict[str, int]:
        """The confusion of the state's verdict with its label."""
        counts: dict[str, int] = dict.fromkeys(_CONFUSION, 0)
        for run in self.replayed:
            counts[_confusion(run)] += 1
        return counts

    @property
    def stops(self) -> Shares:
        """The runs that the policy would have stopped."""
        return _shares(self.replayed, lambda run: run.stop is not None)

    @property
    def open_holds(self) -> Shares:
        """The runs that would not have been stopped and ended with an open hold."""
        return _shares(self.replayed, lambda run: run.stop is None and run.open_holds > 0)

    def as_json(self) -> dict[str, Any]:
        """The report as plain data."""
        return {
            "folder": self.name,
            "policy": self.policy,
            "runs": len(self.replayed),
            "seconds": round(self.seconds, 2),
            "state": self.state,
            "stops": _plain(self.stops),
            "open_holds": _plain(self.open_holds),
        }


def backtest(
    folder: Path,
    policy: str | Policy | Configuration = "balanced",
    *,
    jobs: int | None = None,
    limit: int | None = None,
    store: str | None = None,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> BacktestReport:
    """Replay the runs of a folder; raises `RecordedRunsError`, `ConfigurationError` and `StoreError`.

    Of a configuration, the policy, the sentences and the tools are tried. Effects are those of the recording where
    none are declared; preconditions that ask a store or speak of the run's inputs are left out, as a recording has
    neither. `store` is the URL of a PostgreSQL or MariaDB server to replay on, each process in a schema or database of its
    own, which is made and dropped (default: SQLite files). `jobs` is the number of processes (default: one a processor), `limit` replays only so many runs;
    `progress` is called with how many of how many runs are done.
    """
    started = time.perf_counter()
    recording = read(folder)
    tried = policy if isinstance(policy, Configuration) else Configuration(policy=policy)
    runs = recording.runs[:limit]
    replayed: list[Replayed] = []
    for results in _played(recording, folder, tried, store, _groups(runs), jobs or os.cpu_count() or 1):
        replayed.extend(results)
        progress(len(replayed), len(runs))
    order = {run.run_id: number for number, run in enumerate(runs)}
    replayed.sort(key=lambda run: order[run.run_id])
    name = tried.policy if isinstance(tried.policy, str) else tried.policy.name
    return BacktestReport(recording.name, name, time.perf_counter() - started, tuple(replayed))


def _groups(runs: Iterable[RecordedRun]) -> list[list[RecordedRun]]:
    """The runs by task: they share a database and a contract."""
    groups: dict[str, list[RecordedRun]] = {}
    for run in runs:
        groups.setdefault(run.task_id, []).append(run)
    return list(groups.values())


def _played(
    recording: Recording,
    folder: Path,
    tried: Configuration,
    store: str | None,
    groups: list[list[RecordedRun]],
    jobs: int,
) -> Iterator[list[Replayed]]:
    jobs = min(jobs, len(groups)) or 1
    with TemporaryDirectory(prefix="guardrail-") as scratch, ExitStack() as made:
        places = [made.enter_context(place(store, Path(scratch), number)) for number in range(jobs)]
        if jobs == 1:
            with closing(_Player(recording, tried, places[0])) as player:
                yield from map(player.play, groups)
            return
        # Fresh interpreters: a copy of this one might hold a lock of another thread's. They read the folder
        # themselves, so that little is sent to them.
        context = multiprocessing.get_context("spawn")
        free = context.SimpleQueue()
        for url in places:
            free.put(url)
        named = [[run.run_id for run in group] for group in groups]
        with ProcessPoolExecutor(jobs, context, _start, (folder, tried, free)) as pool:
            yield from pool.map(_play, named, chunksize=max(1, len(named) // (jobs * 8)))


_worker: tuple[_Player, Mapping[str, RecordedRun]] | None = None
"""What a worker process plays with: a player, and the runs by id."""


def _start(folder: Path, tried: Configuration, free: SimpleQueue[str]) -> None:
    global _worker
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C reaches every process: those that only help say nothing
    recording = read(folder)
    _worker = _Player(recording, tried, free.get()), {run.run_id: run for run in recording.runs}


def _play(named: list[str]) -> list[Replayed]:
    assert _worker is not None
    player, runs = _worker
    return player.play([runs[name] for name in named])


class _Player:
    """Plays runs on a database of its own, which `url` leads to."""

    def __init__(self, recording: Recording, tried: Configuration, url: str) -> None:
        self._recording = recording
        self._tried = tried
        self._tools = _tools(tried.tools, recording.effects)
        self._url = url
        self._engine = connect(url)

    def close(self) -> None:
        """Let go of the database."""
        self._engine.connection.close()

    def play(self, runs: list[RecordedRun]) -> list[Replayed]:
        """Replay the runs of one task."""
        task = self._recording.tasks[runs[0].task_id]
        changes = [*task.expected_changes, *(c for run in runs for call in run.calls for c in call.changes)]
        database = RecordedDatabase(self._engine, self._recording.tables_of(task), changes)
        with self._guard(task) as guard:
            replayed = [self._replay(guard, database, run) for run in runs]
        database.drop()
        return replayed

    def _replay(self, guard: Guard, database: RecordedDatabase, run: RecordedRun) -> Replayed:
        with guard.run("task") as guarded:
            turn = run.calls[0].turn if run.calls else None
            for call in run.calls:
                if call.turn != turn:
                    turn = call.turn
                    guarded.user_turn()
                tool = _Tool(call, database, self._engine.errors)
                guarded.call(call.tool, call.args, tool)
                if tool.error is not None:
                    raise RecordedRunsError(
                        f"{self._recording.name}: run {run.run_id}: a change recorded of {call.tool} cannot be "
                        f"made: {tool.error}"
                    ) from tool.error
        database.put_back()
        verdict = guarded.verdict
        assert verdict is not None
        return Replayed(
            run.run_id,
            run.passed,
            run.state_is_right,
            run.fault,
            verdict.kind,
            guarded.would_stop,
            guarded.open_holds,
            tuple(map(str, verdict.findings)),
        )

    def _guard(self, task: RecordedTask) -> Guard:
        own = {
            "include": (),
            "mode": "observe",
            "stores": {STORE: StoreDeclaration(url=self._url, timeout="60s")},
            "tools": self._tools,
            "tasks": {"task": contract(task, self._recording.tables_of(task))},
            "ledger": "memory",
            "on_silent_failure": "report",
        }
        return Guard(self._tried.model_copy(update=own))


class _Tool:
    """A recorded call as a tool: it makes the recorded changes and returns the recorded result."""

    def __init__(self, call: RecordedCall, database: RecordedDatabase, errors: type[Exception]) -> None:
        self._call = call
        self._database = database
        self._errors = errors
        self.error: Exception | None = None

    def __call__(_self, /, **args: object) -> object:
        try:
            _self._database.apply(_self._call.changes)
        except _self._errors as error:
            _self.error = error
        return _self._call.result


def _tools(declared: Mapping[str, Tool], effects: Mapping[str, Effect]) -> dict[str, Tool]:
    """The declared tools as far as a recording can try them, and the recorded ones with their effects."""
    tools = {name: _replayable(tool) for name, tool in declared.items()}
    recorded = {
        name: tools.get(name, Tool()).model_copy(update={"effect": tool_for(tools, name).effect or effect})
        for name, effect in effects.items()
    }
    return {**tools, **recorded}


def _replayable(tool: Tool) -> Tool:
    return tool.model_copy(update={"requires": tuple(filter(_is_replayable, tool.requires))})


def _is_replayable(requirement: Requirement) -> bool:
    """Whether a precondition speaks of nothing but the run's calls."""
    if isinstance(requirement, CelRequirement):
        references = compile_expression(requirement.cel, CEL_NAMES).references
        return "inputs" not in {reference.partition(".")[0] for reference in references}
    return not isinstance(requirement, SqlRequirement)


_CONFUSION = ("true_positive", "false_positive", "true_negative", "false_negative", "unverified")


def _confusion(run: Replayed) -> str:
    if run.verdict == "unverified":
        return "unverified"
    wrong = run.verdict == "silent_failure"
    if run.state_is_right:
        return "false_positive" if wrong else "true_negative"
    return "true_positive" if wrong else "false_negative"


def _shares(runs: Iterable[Replayed], hit: Callable[[Replayed], bool]) -> Shares:
    passed, failed = Share(), Share()
    by_fault: dict[str, Share] = {}
    for run in runs:
        it = hit(run)
        passed, failed = (passed + it, failed) if run.passed else (passed, failed + it)
        if run.fault is not None:
            by_fault[run.fault] = by_fault.get(run.fault, Share()) + it
    return Shares(passed, failed, dict(sorted(by_fault.items())))


def _plain(shares: Shares) -> dict[str, Any]:
    return {
        "passed": [shares.passed.count, shares.passed.total],
        "failed": [shares.failed.count, shares.failed.total],
        "by_fault": {fault: [share.count, share.total] for fault, share in shares.by_fault.items()},
    }
