"""The guard: a configuration made live, and the runs that it opens."""

from __future__ import annotations

import os
import socket
import time
import uuid
from collections.abc import Callable, Generator, Mapping
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar, cast

from opentelemetry._logs import LoggerProvider
from opentelemetry.metrics import MeterProvider
from opentelemetry.trace import TracerProvider

from guardrail.call.facts import Facts
from guardrail.call.needs import Need, Work
from guardrail.declare.configuration import Configuration
from guardrail.declare.loading import load
from guardrail.errors import ConfigurationError, GuardrailError, InputError, LedgerError, RunNotOpen
from guardrail.ledger.ledger import Ledger
from guardrail.ledger.records import RunHistory, RunRecord
from guardrail.ledger.transactions import RunTaken
from guardrail.pictures import Picture
from guardrail.run.history import holds_of, inputs_of, operations_of, stop_of
from guardrail.run.journal import Journal
from guardrail.run.live import Live, ledger_place
from guardrail.run.run import Run, current
from guardrail.run.standing import Standing
from guardrail.run.wrapping import wrap
from guardrail.stores.store import Store
from guardrail.telemetry.canonical import canonical
from guardrail.telemetry.logs import get_logger
from guardrail.telemetry.redaction import snapshot, snapshot_text
from guardrail.telemetry.traces import Telemetry
from guardrail.verification.inputs import Inputs
from guardrail.verification.verification import Verification

F = TypeVar("F", bound=Callable[..., Any])


class Guard:
    """Guards the tool calls of an agent's runs.

    `stores` replaces, by name, where a declared store lies: a URL, a path, or a factory of connections.
    OpenTelemetry providers that are not given are the global ones. A guard is safe to share between threads
    and tasks; close it when it is no longer needed (or use it as a context manager).
    """

    def __init__(
        self,
        configuration: Configuration,
        *,
        stores: Mapping[str, object] | None = None,
        tracer_provider: TracerProvider | None = None,
        meter_provider: MeterProvider | None = None,
        logger_provider: LoggerProvider | None = None,
        base: Path | None = None,
    ) -> None:
        """Make a configuration live; relative paths of the ledger and of SQLite stores begin at `base`.

        Raises `ConfigurationError`, `StoreError` and `LedgerError`.
        """
        self._path: Path | None = None
        self._stores = dict(stores or {})
        self._base = base
        self._live = Live(configuration, self._stores, base)
        try:
            self._ledger = Ledger(ledger_place(configuration, base))
        except LedgerError:
            self._live.close()
            raise
        self._telemetry = Telemetry(
            tracer_provider=tracer_provider,
            meter_provider=meter_provider,
            logger_provider=logger_provider,
            content=configuration.content.spans,
            tools=configuration.tools,
            tasks=configuration.tasks,
        )
        self._open: dict[int, Run] = {}

    @classmethod
    def load(cls, path: str | os.PathLike[str], **options: Any) -> Self:
        """Make a guard from a configuration file; options as for `Guard`.

        Raises `ConfigurationError` with every mistake of the file, `StoreError` and `LedgerError`.
        """
        guard = cls(load(path), base=Path(path).parent, **options)
        guard._path = Path(path)
        return guard

    @property
    def configuration(self) -> Configuration:
        """The configuration that new runs get."""
        return self._live.configuration

    @property
    def ledger(self) -> Ledger:
        """The record of all runs."""
        return self._ledger

    def reload(self) -> None:
        """Read the configuration file again, for runs that are opened from now on.

        The former configuration stays if the file has a mistake; then `ConfigurationError` is raised. Runs that
        are open keep the configuration that they were opened with. The ledger and telemetry stay.
        """
        if self._path is None:
            raise ConfigurationError.of("this guard was not made from a file: make a new one instead")
        try:
            self._live = Live(load(self._path), self._stores, self._base)
        except Exception as error:
            get_logger().error("guardrail.reload_failed", file=str(self._path), error=type(error).__name__)
            raise

    def run(
        self,
        task: str | None = None,
        *,
        inputs: Mapping[str, object] | None = None,
        id: str | None = None,
        stores: Mapping[str, object] | None = None,
        attributes: Mapping[str, object] | None = None,
    ) -> Run:
        """A run of `task`, to be opened by `with` or `async with`.

        `inputs` are the task's (checked against its declaration; `InputError`). A run that has this `id` in the
        ledger is taken up again: a stopped one stays stopped, holds and operations stay, and the state
        is judged from its first before-picture. `stores` replaces, for this run, where stores lie (one tenant,
        one database). `attributes` go on the run's span.
        """
        live = self._live
        history = None if id is None else self._ledger.load_run(id)
        task = _same_task(task, history)
        declared = None if task is None else live.configuration.tasks.get(task)
        run_id = id or uuid.uuid4().hex
        known = {} if history is None else inputs_of(history)
        _check_same(run_id, known, inputs or {})
        # What was recorded is redacted and bounded: what is given again is better.
        run_inputs = Inputs(task or "", {} if declared is None else declared.inputs, {**known, **(inputs or {})})
        own = {name: live.open(name, where) for name, where in (stores or {}).items()}
        run_stores = {name: store.for_run() for name, store in {**live.stores, **own}.items()}
        trace = self._telemetry.open_run(run_id, task, live.policy.name, live.policy.mode, attributes)
        if task is not None and declared is None and live.configuration.tasks:
            trace.log.warning("guardrail.task_not_declared", task=task, why=live.why_no_contract(task))
        contract = None if task is None else live.contract(task)
        verification = Verification(
            run_id,
            contract,
            inputs=run_inputs,
            stores=run_stores,
            ledger=self._ledger,
            trace=trace,
            secret=live.secret,
            opened=datetime.now(UTC),
            without="" if contract is not None else live.why_no_contract(task),
        )
        standing = Standing(
            run_id,
            task,
            tools=live.called,
            enforced=live.enforced,
            inputs=run_inputs,
            facts=Facts(live.wanted),
            stores=run_stores,
            journal=Journal(run_id, self._ledger, trace, named=id is not None),
            picture=verification.before,
            parent=_around(),
        )
        if history is not None:
            _take_up(standing, history)
        wanted = declared.on_silent_failure if declared is not None else None
        return Run(
            standing,
            verification,
            drain=live.drain,
            raises=(wanted or live.configuration.on_silent_failure) == "raise",
            opening=lambda run: self._opening(run, verification, live, history),
            ended=lambda run: self._ended(run, own),
        )

    def tool(self, tool: F) -> F:
        """Guard a tool for good (a decorator): each call belongs to the run that is open where it is made.

        That is the run of the context, else the only open run of this guard; without one the call
        raises `RunNotOpen` and the tool does not run.
        """
        return wrap(tool, lambda: self.standing)

    def current(self) -> Run | None:
        """The run that a call made here belongs to; None where it belongs to none, or to one that has ended."""
        run = current.get()
        if run is not None and id(run) in self._open:
            return run
        if run is not None and run.verdict is not None:
            return None
        return next(iter(self._open.values())) if len(self._open) == 1 else None

    def opened(self, id: str) -> Run | None:
        """The run that is open under this id, wherever in this process it was opened; None: there is none."""
        return next((run for run in tuple(self._open.values()) if run.id == id), None)

    @property
    def standing(self) -> Standing:
        """Where the run stands that a call made here belongs to; for adapters. Raises `RunNotOpen`."""
        run = self.current()
        if run is None:
            raise RunNotOpen(f"a guarded tool was called where {self._why_none()}")
        return run.standing

    def close(self) -> None:
        """Write what waits, and close the ledger and the stores."""
        self._ledger.close()
        self._live.close()

    def __enter__(self) -> Self:
        """The guard itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the guard."""
        self.close()

    def _why_none(self) -> str:
        here = current.get()
        if here is not None and here.verdict is not None:
            return f"the run {here.id} has ended"
        if not self._open and here is not None:
            return f"no run of its guard is open: the run {here.id}, which is, was opened by another Guard"
        if not self._open:
            return "no run is open: call it inside `with guard.run(...)`"
        return (
            f"{len(self._open)} runs are open, and none of them here: a run that a generator opened is not current "
            "outside of it, nor is any in a thread without its context; guard the tool with `run.wrap` instead"
        )

    def _opening(
        self, run: Run, verification: Verification, live: Live, history: RunHistory | None
    ) -> Generator[Need, object, None]:
        """Record the run, and see the state before it; one that is taken up is judged from the state it began with."""
        yield Work(partial(self._record, run, live))
        run.standing.open()
        self._open[id(run)] = run
        if history is not None and (yield from self._restored(verification, history)):
            return
        if not run.standing.inputs.missing:
            yield from verification.before()

    def _restored(self, verification: Verification, history: RunHistory) -> Generator[Need, object, bool]:
        """Whether the state before the run is settled: as it was kept, or as lost, if the run has written since."""
        opened = datetime.fromtimestamp(history.run.started, UTC)
        pictures = yield Work(partial(self._ledger.load_pictures, history.run.id))
        if verification.restore(cast("tuple[Picture, ...]", pictures), opened):
            return True
        has_written = any(recorded.call.effect != "read" for recorded in history.calls)
        if has_written:
            yield from verification.go_without("it was not kept when the run was opened")
        return has_written

    def _record(self, run: Run, live: Live) -> None:
        trace = run.standing.journal.trace
        record = RunRecord(
            run.id,
            run.task,
            snapshot_text(run.inputs, live.secret),
            live.policy.name,
            live.policy.mode,
            time.time(),
            os.getpid(),
            socket.gethostname(),
            trace.trace_id or None,
        )
        if any(other.id == run.id for other in self._open.values()):
            raise RunTaken(f"the run {run.id} is open in this process: leave it before it is taken up again")
        try:
            self._ledger.open_run(record)
        except RunTaken:
            raise
        except LedgerError as error:
            # Reads may go on; the first write will be refused by the same fault, with a clear error.
            trace.log.error("guardrail.ledger_error", why=str(error))

    def _ended(self, run: Run, own: Mapping[str, Store]) -> None:
        self._open.pop(id(run), None)
        for store in own.values():
            store.close()


def _around() -> Standing | None:
    """The run that a run opened here is part of; one that has ended is none, if its context was not tidied up."""
    run = current.get()
    return None if run is None or run.verdict is not None else run.standing


def _same_task(task: str | None, history: RunHistory | None) -> str | None:
    """The task of a run; one that is taken up keeps its task. Raises `GuardrailError` if another is named."""
    if history is None or history.run.task == task:
        return task
    if task is None:
        return history.run.task
    raise GuardrailError(f"the run {history.run.id} is one of task {history.run.task}, not of {task}: use another id")


def _check_same(run: str, known: Mapping[str, object], given: Mapping[str, object]) -> None:
    """A run that is taken up is judged by the inputs it was opened with. Raises `InputError` if others are given."""
    others = [n for n, value in given.items() if n in known and canonical(snapshot(value)) != canonical(known[n])]
    if others:
        raise InputError(f"the run {run} was opened with another {', '.join(others)}: use another id for another task")


def _take_up(standing: Standing, history: RunHistory) -> None:
    standing.take_up(
        calls=max((recorded.call.number for recorded in history.calls), default=0),
        stop=stop_of(history),
        holds=holds_of(history),
        operations=operations_of(history.calls),
    )
