"""What an adapter adds to a call, beside `run.call` itself: CPU time of the process, medians, one scripted agent.

Run by `nox -s adapter_benchmarks`, in the frameworks' environments; one JSON line for each kit.
"""

from __future__ import annotations

import asyncio
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, TypeAlias

from benchmarks.measuring import say
from guardrail import Configuration, Guard, Run
from support.kits.registry import kits
from support.kits.stage import Kit, Mode, Scene, Script, Tools, asked
from support.shop import Shop

FEW, MANY, ROUNDS, WARM = 1, 9, 80, 5
MODES: tuple[Mode, ...] = ("sync", "async")
Way: TypeAlias = Literal["bare", "called", "adapted"]
"""Without a guard; with tools that are guarded by `run.wrap`; with the adapter."""


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
    took: dict[Way, list[float]] = {"bare": [], "called": [], "adapted": []}
    with Guard(Configuration.model_validate(declared)) as guard:
        for round_ in range(ROUNDS + WARM):
            for way, times in took.items():
                few, many = (_play(kit, mode, tools, way, guard, folder, turns) for turns in (FEW, MANY))
                if round_ >= WARM:
                    times.append((many - few) / (MANY - FEW) * 1e6)  # without what is done once for an agent
    us = {way: statistics.median(times) for way, times in took.items()}
    added = statistics.median(a - c for a, c in zip(took["adapted"], took["called"], strict=True))
    say(
        "adapter", framework=kit.name, mode=mode, added_us=added, bare_turn_us=us["bare"], run_call_turn_us=us["called"]
    )


def _play(kit: Kit, mode: Mode, tools: Idle, way: Way, guard: Guard, folder: Path, turns: int) -> float:
    """The CPU time of one scene, in seconds."""
    script = Script(*[[asked("lookup_order", order_id=n)] for n in range(turns)], "Done.")
    run = guard.run()
    tools.guarded_by = run if way == "called" else None
    scene = Scene(tools, script, guard if way == "adapted" else None, folder, thread=f"{way} {id(script)}")
    if mode == "sync":
        with run:
            started = time.process_time()
            kit.play(scene, mode)
            return time.process_time() - started
    return asyncio.run(_aplay(kit, mode, scene, run))


async def _aplay(kit: Kit, mode: Mode, scene: Scene, run: Run) -> float:
    async with run:
        started = time.process_time()
        await kit.aplay(scene, mode)
        return time.process_time() - started


if __name__ == "__main__":
    main()
