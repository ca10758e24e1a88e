"""The open runs of a proxy: which one a call belongs to, who may use it, and when it ends."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from contextvars import Context as Variables
from functools import partial
from typing import Final, TypeAlias

from opentelemetry import context as contexts
from opentelemetry.context import Context

from guardrail.calls import Verdict
from guardrail.errors import GuardrailError, RunStopped, SilentFailure
from guardrail.ledger.records import RunHistory
from guardrail.proxy.words import Words
from guardrail.run.guard import Guard
from guardrail.run.run import Run
from guardrail.telemetry.logs import get_logger
from guardrail.threads import in_thread

MOST_OPEN: Final = 1_000
"""How many runs may be open at once: a host that never ends its runs must not use up the machine."""


class RunDenied(GuardrailError):
    """A host may not have the run that it names; says why."""


class RunOver(Exception):
    """The run that a call belongs to was stopped and has been closed since."""

    def __init__(self, run: str) -> None:
        self.run = run
        super().__init__(run)


Key: TypeAlias = tuple[str, str]
"""A run's place among the open ones: ("named", its id), or ("own", its session)."""


class OpenRun:
    """A run while it is open; `owner` is the session, or the credential, that opened it."""

    def __init__(self, run: Run, owner: str) -> None:
        self.run = run
        self.owner = owner
        self.pending: set[Callable[[], object]] = set()
        """What has to be given up before the run ends: calls that wait for the host to go on with them."""
        self._calls = 0
        self._used = time.monotonic()
        self._ending = asyncio.Event()

    @contextmanager
    def in_use(self) -> Generator[None]:
        """A call of the run is under way."""
        self._calls += 1
        try:
            yield
        finally:
            self._calls -= 1
            self._used = time.monotonic()

    def end(self) -> None:
        """Let the run end now."""
        self._ending.set()

    async def over(self, idle: float) -> None:
        """Wait until the run is to end: it was said to, or has not been used for so many seconds."""
        while not self._ending.is_set():
            left = self._used + idle - time.monotonic()
            if left <= 0 and self._calls == len(self.pending):
                break
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._ending.wait(), left if left > 0 else idle)
        for give_up in tuple(self.pending):
            give_up()


class Runs:
    """The open runs of all sessions; each is kept by a task of its own, in whose context alone it is current.

    `task` and `inputs` are those of sessions whose host names none.
    """

    def __init__(self, guard: Guard, *, idle: float, task: str | None = None, inputs: Mapping[str, object]) -> None:
        self._guard = guard
        self._idle = idle
        self._task = task
        self._inputs = inputs
        self._open: dict[Key, asyncio.Future[OpenRun]] = {}
        self._keeping: dict[Key, asyncio.Task[Verdict | None]] = {}
        self._kept: set[asyncio.Task[Verdict | None]] = set()
        """The keepers of all runs that have no verdict yet, of those too that are open to no call any more."""
        self._stopped: dict[Key, str] = {}

    async def find(self, session: str, owner: str, words: Words, parent: Context) -> OpenRun:
        """The run of a call: the named one, else the session's own; opened if need be, below the span of `parent`.

        Raises `RunDenied`, `RunOver`, and whatever the opening of a run raises.
        """
        key = _key(session, words)
        if key in self._stopped:
            raise RunOver(self._stopped[key])
        if key not in self._open:
            self._begin(key, owner, words, parent)
        found = await asyncio.shield(self._open[key])
        if found.owner != owner:
            raise RunDenied(f"the run {words.run} was opened by another: open one under an id of your own")
        if words.task is not None and words.task != found.run.task:
            raise RunDenied(
                f"the run {found.run.id} is one of task {found.run.task}, not of {words.task}: end it first"
            )
        return found

    async def end(self, session: str, owner: str, words: Words) -> tuple[str, Verdict | None] | None:
        """End the run that the words name, and wait for its verdict; None where none is open. Raises `RunDenied`."""
        key = _key(session, words)
        opening, keeping = self._open.get(key), self._keeping.get(key)
        if opening is None or keeping is None:
            return None
        found = await asyncio.shield(opening)
        if found.owner != owner:
            raise RunDenied(f"the run {words.run} was opened by another, who alone may end it")
        found.end()
        return found.run.id, await asyncio.shield(keeping)

    async def leave(self, session: str, owner: str) -> None:
        """A session has ended: judge its own run, and forget that it was stopped."""
        with contextlib.suppress(GuardrailError):
            await self.end(session, owner, Words())
        self._stopped.pop(("own", session), None)

    async def close(self) -> None:
        """End all runs, and wait for their verdicts."""
        for opened in await asyncio.gather(*self._open.values(), return_exceptions=True):
            if isinstance(opened, OpenRun):
                opened.end()
        await asyncio.gather(*self._kept, return_exceptions=True)

    def abort(self) -> None:
        """End all runs at once, without another look at the state."""
        for keeping in self._kept:
            keeping.cancel()

    def _begin(self, key: Key, owner: str, words: Words, parent: Context) -> None:
        if len(self._open) >= MOST_OPEN:
            raise RunDenied(f"{MOST_OPEN} runs are open: end some before another is opened")
        opening = self._open[key] = asyncio.get_running_loop().create_future()
        keep = self._keep(key, owner, words, parent, opening)
        keeping = self._keeping[key] = asyncio.create_task(keep, context=Variables())
        self._kept.add(keeping)
        keeping.add_done_callback(self._kept.discard)

    async def _keep(
        self, key: Key, owner: str, words: Words, parent: Context, opening: asyncio.Future[OpenRun]
    ) -> Verdict | None:
        """Keep a run open until it is to end; its verdict, None where it did not open."""
        contexts.attach(parent)
        run: Run | None = None
        try:
            run = await self._made(words)
            async with run:
                opened = OpenRun(run, owner)
                opening.set_result(opened)
                await opened.over(self._idle)
                self._forget(key, run)
        except (RunStopped, SilentFailure, asyncio.CancelledError):
            pass  # told by the verdict
        except Exception as error:  # noqa: BLE001 - told to whoever waits for the run
            if not opening.done():
                opening.set_exception(error)
            else:
                get_logger().error("guardrail.guard_error", error=type(error).__name__, why=str(error))
        finally:
            self._forget(key, run)
            opening.cancel()
        return None if run is None else await self._told(run)

    async def _made(self, words: Words) -> Run:
        task, inputs = words.task or self._task, words.inputs
        if inputs is None and task == self._task:
            inputs = self._inputs
        make = partial(self._guard.run, task, inputs=inputs, id=words.run)
        made = await in_thread(partial(self._new, words.run, make))
        assert isinstance(made, Run)
        return made

    def _new(self, named: str | None, make: Callable[[], Run]) -> Run:
        """A new run. An id that was used before may be another's: whose it was, nobody knows any more."""
        known = None if named is None else self._guard.ledger.load_run(named)
        if known is None:
            return make()
        if known.stop is not None:
            raise RunOver(known.run.id)
        raise RunDenied(f"the run {named} was opened before: give each run an id of its own")

    async def _told(self, run: Run) -> Verdict | None:
        """The verdict, told to whoever reads the log, with the writes that nobody knows the end of."""
        if run.verdict is None:
            return None
        known = await in_thread(partial(self._guard.ledger.load_run, run.id))
        doubtful = [call.tool for call in known.in_doubt] if isinstance(known, RunHistory) else []
        kind, log = run.verdict.kind, get_logger(run_id=run.id, task=run.task)
        told = {"verdict": kind, "findings": len(run.verdict.findings)}
        if doubtful:
            log.warning("guardrail.run_ended", **told, in_doubt=doubtful)
        elif kind in ("stopped", "silent_failure"):
            log.warning("guardrail.run_ended", **told)
        else:
            log.info("guardrail.run_ended", **told)
        return run.verdict

    def _forget(self, key: Key, run: Run | None) -> None:
        self._open.pop(key, None)
        self._keeping.pop(key, None)
        if run is not None and run.stop is not None and key[0] == "own":
            self._stopped[key] = run.id


def _key(session: str, words: Words) -> Key:
    return ("own", session) if words.run is None else ("named", words.run)
