"""The guard: a configuration made live, and the runs that it opens."""

from __future__ import annotations

import json
import os
import socket
import time
import uuid
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

from opentelemetry._logs import LoggerProvider
from opentelemetry.metrics import MeterProvider
from opentelemetry.trace import TracerProvider

from guardrail.call.facts import Facts
from guardrail.declare.configuration import Configuration
from guardrail.declare.loading import load
from guardrail.errors import ConfigurationError, LedgerError, RunNotOpen
from guardrail.ledger.ledger import Ledger
from guardrail.ledger.records import RunHistory, RunRecord
from guardrail.ledger.transactions import RunTaken
from guardrail.run.history import holds_of, inputs_of, operations_of, stop_of
from guardrail.run.inputs import Inputs
from guardrail.run.live import Live, ledger_path
from guardrail.run.run import Run, current
from guardrail.run.standing import Standing
from guardrail.run.verification import Verification
from guardrail.run.wrapping import wrap
from guardrail.stores.store import Store
from guardrail.telemetry.logs import get_logger
from guardrail.telemetry.redaction import snapshot_text
from guardrail.telemetry.traces import RunTrace, Telemetry

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
        """Make a configuration live; a relative ledger path begins at `base`. Raises `ConfigurationError`, `StoreError` and `LedgerError`."""
        self._path: Path | None = None
        self._environ: Mapping[str, str] | None = None
        self._stores = dict(stores or {})
        self._live = Live(configuration, self._stores)
        self._ledger = Ledger(ledger_path(configuration, base))
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
        configuration = load(path)
        place = ledger_path(configuration, Path(path).parent)
        guard = cls(configuration.model_copy(update={"ledger": place}), **options)
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
            self._live = Live(load(self._path), self._stores)
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
        run_id = id or uuid.uuid4().hex
        declared = live.configuration.tasks.get(task) if task is not None else None
        run_inputs = Inputs(task or "", {} if declared is None else declared.inputs, inputs or {})
        own = {name: live.open(name, where) for name, where in (stores or {}).items()}
        run_stores = {**live.stores, **own}
        trace = self._telemetry.open_run(run_id, task, live.policy.name, live.policy.mode, attributes)
        verification = Verification(
            run_id,
            live.contract(task) if task is not None else None,
            inputs=run_inputs,
            stores=run_stores,
            ledger=self._ledger,
            trace=trace,
            secret=live.secret,
            opened=datetime.now(UTC),
        )
        around = current.get()
        if around is not None and around.verdict is not None:
            around = None  # it has ended; its context was not tidied up
        standing = Standing(
            run_id,
            task,
            tools=live.called,
            enforced=live.enforced,
            inputs=run_inputs,
            facts=Facts(live.wanted),
            stores=run_stores,
            ledger=self._ledger,
            trace=trace,
            picture=verification.before,
            parent=None if around is None else around.standing,
        )
        wanted = declared.on_silent_failure if declared is not None else None
        return Run(
            standing,
            verification,
            drain=live.drain,
            raises=(wanted or live.configuration.on_silent_failure) == "raise",
            opening=lambda run: self._opened(run, standing, verification, live, trace, known=id is not None),
            ended=lambda run: self._ended(run, own),
        )

    def tool(self, tool: F) -> F:
        """Guard a tool for good (a decorator): each call belongs to the run that is open where it is made.

        That is the run of the context, else the only open run of this guard; without one the call
        raises `RunNotOpen` and the tool does not run.
        """
        return wrap(tool, self._find)

    def current(self) -> Run | None:
        """The run that a call made here belongs to."""
        run = current.get()
        if run is not None and id(run) in self._open:
            return run
        return next(iter(self._open.values())) if len(self._open) == 1 else None

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

    def _find(self) -> Standing:
        run = self.current()
        if run is None:
            count = len(self._open)
            why = f"{count} runs are open, and none of them here" if count else "no run is open"
            raise RunNotOpen(f"a guarded tool was called where {why}: call it inside `with guard.run(...)`")
        return run.standing

    def _opened(
        self, run: Run, standing: Standing, verification: Verification, live: Live, trace: RunTrace, *, known: bool
    ) -> None:
        """Record the run, take it up again if it is known, and take the before-picture."""
        history = self._ledger.load_run(run.id) if known else None
        if history is not None:
            _take_up(standing, history)
        self._record(run, live, trace)
        self._open[id(run)] = run
        if history is not None and self._restored(verification, history):
            return
        if not standing.inputs.missing:
            verification.before()

    def _restored(self, verification: Verification, history: RunHistory) -> bool:
        """Whether the state before the run is settled: as it was kept, or as lost, if the run has written since."""
        opened = datetime.fromtimestamp(history.run.started, UTC)
        if verification.restore(self._ledger.load_pictures(history.run.id), opened):
            return True
        has_written = any(recorded.call.effect != "read" for recorded in history.calls)
        if has_written:
            verification.go_without("it was not kept when the run was opened")
        return has_written

    def _record(self, run: Run, live: Live, trace: RunTrace) -> None:
        record = RunRecord(
            run.id,
            run.task,
            snapshot_text(dict(run.inputs), live.secret),
            live.policy.name,
            live.policy.mode,
            time.time(),
            os.getpid(),
            socket.gethostname(),
            trace.trace_id or None,
        )
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


def _take_up(standing: Standing, history: RunHistory) -> None:
    # What was recorded is redacted and bounded: what is given again is better.
    standing.inputs.restore({**json.loads(history.run.inputs), **inputs_of(history), **standing.inputs.values})
    standing.take_up(
        calls=max((recorded.call.number for recorded in history.calls), default=0),
        stop=stop_of(history),
        holds=holds_of(history),
        operations=operations_of(history.calls),
    )
