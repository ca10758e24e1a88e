"""Playing scenes: one run of a guard, in which a kit's agent does what its script says."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from guardrail import Configuration, Guard, Run
from guardrail.ledger.records import RecordedCall, RunHistory
from support.kits.stage import Kit, Mode, Scene, Script, Tools, Turn
from support.shop import CONFIGURATION, Shop

TOOLS: Mapping[str, Any] = {
    "lookup_order": {"effect": "read"},
    "refund_order": {"effect": "write", "once_per": ["order_id"], "args": {"amount": {"type": "decimal", "above": 0}}},
    "note_order": {"effect": "write"},
    "cancel_order": {"effect": "write"},
    "ship_order": {"effect": "write"},
    "wait_order": {"effect": "write"},
    "ask_clerk": {"effect": "read"},
}
REFUND: Mapping[str, object] = {"order_id": 17, "amount": "19.90"}


@dataclass
class Played:
    """What came of a scene: what the agent said or raised, what the tools did, what the model was told, the run."""

    said: str | None
    error: BaseException | None
    tools: Tools
    script: Script
    run: Run | None
    history: RunHistory | None = None

    @property
    def outcomes(self) -> list[tuple[str, str]]:
        """What the recorded calls came to, by tool."""
        return [(call.call.tool, "" if call.outcome is None else call.outcome.outcome) for call in self._calls]

    @property
    def ids(self) -> list[str | None]:
        """The ids of the recorded calls."""
        return [call.call.call_id for call in self._calls]

    @property
    def late(self) -> list[str]:
        """The tools that ran although they were called after the run was stopped."""
        stop = None if self.history is None else self.history.stop
        ran = [call for call in self._calls if call.outcome is not None and call.outcome.executed]
        return [call.call.tool for call in ran if stop is not None and call.call.started > stop.at]

    @property
    def _calls(self) -> Sequence[RecordedCall]:
        return () if self.history is None else self.history.calls

    @property
    def told(self) -> list[list[str]]:
        """What the model was told, request by request."""
        return self.script.seen

    @property
    def requests(self) -> int:
        return self.script.requests

    @property
    def begun(self) -> list[str]:
        """The tools whose bodies ran."""
        return self.tools.begun


class Theatre:
    """A kit in a mode, with guards around its agents."""

    def __init__(self, kit: Kit, mode: Mode, folder: Path) -> None:
        self.kit = kit
        self.mode = mode
        self.folder = folder
        self.exporter = InMemorySpanExporter()
        self._provider = TracerProvider()
        self._provider.add_span_processor(SimpleSpanProcessor(self.exporter))
        self._guards: list[Guard] = []
        self._shops = self._scenes = 0
        self.kept: dict[str, Any] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for guard in self._guards:
            guard.close()

    def tools(self, **options: int) -> Tools:
        """The tools of a new shop."""
        self._shops += 1
        return Tools(Shop(self.folder / f"shop{self._shops}.db"), **options)

    def guard(self, tools: Tools, policy: str = "balanced", **rest: object) -> Guard:
        """A guard around a shop; `rest` are further keys of its configuration."""
        whole = {
            "policy": policy,
            "stores": {"shop": {"url": tools.shop.url}},
            "ledger": str(self.folder / "ledger.db"),
            "drain": "5s",
            "tools": TOOLS,
            "tasks": CONFIGURATION["tasks"],
            **rest,
        }
        guard = Guard(Configuration.model_validate(whole), tracer_provider=self._provider)
        self._guards.append(guard)
        return guard

    def bare(self, *turns: Turn, **options: Any) -> Played:
        """Play without a guard."""
        return self._play(None, turns, bare=True, **options)

    def outside(self, *turns: Turn) -> Played:
        """Play with a guard of which no run is open."""
        tools = self.tools()
        scene = self.scene(tools, turns, self.guard(tools))
        said, error = asyncio.run(self._acted(scene)) if self.is_async else self._acts(scene)
        return Played(said, error, tools, scene.script, None)

    def play(self, *turns: Turn, **options: Any) -> Played:
        """Play in a run of a guard; `task`, `id`, `policy`, `tools`, `inner` as needed, `of_run` gives the adapter the run."""
        return self._play(options.pop("task", None), turns, **options)

    def _play(
        self,
        task: str | None,
        turns: tuple[Turn, ...],
        *,
        bare: bool = False,
        policy: str = "balanced",
        tools: Tools | None = None,
        guard: Guard | None = None,
        id: str | None = None,
        inner: tuple[Turn, ...] | None = None,
        of_run: bool = False,
    ) -> Played:
        tools = tools or self.tools()
        scene = self.scene(tools, turns, None, inner)
        script = scene.script
        if bare:
            said, error = asyncio.run(self._acted(scene)) if self.is_async else self._acts(scene)
            return Played(said, error, tools, script, None)
        guard = guard or self.guard(tools, policy)
        run = guard.run(task, inputs=None if task is None else REFUND, id=id)
        scene.runs = run if of_run else guard
        said, error = asyncio.run(self.aguarded(run, scene)) if self.is_async else self._guarded(run, scene)
        history = guard.ledger.load_run(run.id)
        assert history is not None
        return Played(said, error, tools, script, run, history)

    def scene(
        self, tools: Tools, turns: tuple[Turn, ...], runs: Guard | Run | None, inner: tuple[Turn, ...] | None = None
    ) -> Scene:
        """What the kit is to play."""
        self._scenes += 1
        asked = None if inner is None else Script(*inner)
        return Scene(tools, Script(*turns), runs, self.folder, asked, f"thread {self._scenes}", self.kept)

    @property
    def is_async(self) -> bool:
        return self.mode.startswith("async")

    def _acts(self, scene: Scene) -> tuple[str | None, BaseException | None]:
        try:
            return self.kit.play(scene, self.mode), None
        except Exception as error:  # noqa: BLE001 - whatever a framework makes of it is looked at
            return None, error

    async def _acted(self, scene: Scene) -> tuple[str | None, BaseException | None]:
        try:
            return await self.kit.aplay(scene, self.mode), None
        except Exception as error:  # noqa: BLE001 - whatever a framework makes of it is looked at
            return None, error

    def _guarded(self, run: Run, scene: Scene) -> tuple[str | None, BaseException | None]:
        said = None
        try:
            with run:
                said = self.kit.play(scene, self.mode)
        except Exception as error:  # noqa: BLE001 - whatever a framework makes of it is looked at
            return said, error
        return said, None

    async def aguarded(self, run: Run, scene: Scene) -> tuple[str | None, BaseException | None]:
        """Play by awaiting in a run that is opened here; what the agent said and what left the run."""
        said = None
        try:
            async with run:
                said = await self.kit.aplay(scene, self.mode)
        except Exception as error:  # noqa: BLE001 - whatever a framework makes of it is looked at
            return said, error
        return said, None

    def spans(self) -> list[ReadableSpan]:
        """The spans that ended so far."""
        return list(self.exporter.get_finished_spans())
