"""What an adapter adds to a call, beside `run.call` itself: CPU time of the process, medians, one scripted agent.

One JSON line for each kit of an environment: `GUARDRAIL_FRAMEWORKS=langchain PYTHONPATH=tests:adapters
.nox/frameworks-main/bin/python tests/benchmarks/adapters.py`. `hooks_us` is what the framework takes for its own hooks.
"""

from __future__ import annotations

import asyncio
import statistics
import tempfile
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any, Literal, TypeAlias
from unittest.mock import patch

from benchmarks.measuring import say
from guardrail import Configuration, Guard, Run
from guardrail.calls import Unmade
from guardrail.run.adapter import Adapter
from support.kits.registry import kits
from support.kits.stage import Kit, Mode, Scene, Script, Tools, asked
from support.shop import Shop

FEW, MANY, ROUNDS, WARM = 1, 8, 80, 5
MODES: tuple[Mode, ...] = ("sync", "async")
Way: TypeAlias = Literal["bare", "called", "hooked", "adapted"]
"""Without a guard; with tools that are guarded by `run.wrap`; with these, and an adapter that guards nothing, so that only
the framework's hooks are added; with the adapter.
"""


class Idle(Tools):
    """Tools that do nothing; `guarded_by` makes them those of a run, without the adapter."""

    guarded_by: Run | None = None

    def functions(self, *, asynchronous: bool) -> list[Callable[..., Any]]:
        tool = _aidle if asynchronous else _idle
        return [tool if self.guarded_by is None else self.guarded_by.wrap(tool)]


def _idle(order_id: int) -> dict[str, Any]:
    """Look an order up."""
    return {"id": order_id, "status": "paid"}


async def _aidle(order_id: int) -> dict[str, Any]:
    """Look an order up."""
    return {"id": order_id, "status": "paid"}


_idle.__name__ = _aidle.__name__ = "lookup_order"


def main() -> None:
    """Measure every kit of this environment in its first mode and, if it has one, its first asynchronous mode."""
    with tempfile.TemporaryDirectory() as folder:
        for kit in kits():
            for mode in MODES:
                if mode in kit.modes:
                    _measure(kit, mode, Path(folder) / kit.name / mode)


def _measure(kit: Kit, mode: Mode, folder: Path) -> None:
    folder.mkdir(parents=True)
    tools = Idle(Shop(folder / "shop.db"))
    declared = {"ledger": "memory", "tools": {"lookup_order": {"effect": "read"}}}
    took: dict[Way, list[float]] = {"bare": [], "called": [], "hooked": [], "adapted": []}
    with Guard(Configuration.model_validate(declared)) as guard:
        for round_ in range(ROUNDS + WARM):
            for way, times in took.items():
                few, many = (_play(kit, mode, tools, way, guard, folder, turns) for turns in (FEW, MANY))
                if round_ >= WARM:
                    times.append((many - few) / (MANY - FEW) * 1e6)  # without what is done once for an agent
    us = {way: statistics.median(times) for way, times in took.items()}
    added, hooks = (_median_difference(took[way], took["called"]) for way in ("adapted", "hooked"))
    turns = {"bare_turn_us": us["bare"], "run_call_turn_us": us["called"]}
    say("adapter", framework=kit.name, mode=mode, added_us=added, hooks_us=hooks, **turns)


def _median_difference(longer: list[float], shorter: list[float]) -> float:
    return statistics.median(one - other for one, other in zip(longer, shorter, strict=True))


def _play(kit: Kit, mode: Mode, tools: Idle, way: Way, guard: Guard, folder: Path, turns: int) -> float:
    """The CPU time of one scene, in seconds."""
    script = Script(*[[asked("lookup_order", order_id=n)] for n in range(turns)], "Done.")
    run = guard.run()
    tools.guarded_by = run if way in {"called", "hooked"} else None
    runs = guard if way in {"hooked", "adapted"} else None
    scene = Scene(tools, script, runs, folder, thread=f"{way} {id(script)}")
    with _guarding_nothing() if way == "hooked" else nullcontext():
        if mode == "sync":
            with run:
                started = time.process_time()
                kit.play(scene, mode)
                return time.process_time() - started
        return asyncio.run(_aplay(kit, mode, scene, run))


class _Elsewhere:
    """A call that is made elsewhere, of which nobody wants to know."""

    async def begin(self) -> None:
        """It may be made."""

    async def end(self, ending: object) -> object:
        """It has been made."""
        return ending

    def give_up(self) -> None:
        """It was not."""


@contextmanager
def _guarding_nothing() -> Generator[None]:
    """Adapters let every call through, as a hook that does nothing would."""

    def call(self: object, native: object, execute: Callable[[], Any]) -> Any:
        result = execute()
        return result.value if isinstance(result, Unmade) else result

    async def acall(self: object, native: object, execute: Callable[[], Any]) -> Any:
        result = await execute()
        return result.value if isinstance(result, Unmade) else result

    def parted(self: object, native: object) -> _Elsewhere:
        return _Elsewhere()

    def gate(self: object) -> None:
        pass

    with patch.multiple(Adapter, call=call, acall=acall, parted=parted, gate=gate):
        yield


async def _aplay(kit: Kit, mode: Mode, scene: Scene, run: Run) -> float:
    async with run:
        started = time.process_time()
        await kit.aplay(scene, mode)
        return time.process_time() - started


if __name__ == "__main__":
    main()
