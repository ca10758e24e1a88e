"""The stage on which an agent of any framework plays: a shop, tools that log what they do, and a scripted model."""

from __future__ import annotations

import asyncio
import functools
import threading
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol, TypeAlias

from guardrail import Guard, Run
from support.shop import Shop

Mode: TypeAlias = Literal["sync", "async", "sync stream", "async stream"]
"""How an agent is run: by blocking or by awaiting, and whether what the model says is streamed."""


@dataclass(frozen=True)
class Asked:
    """A tool call that the scripted model asks for."""

    name: str
    args: Mapping[str, object]
    text: str | None = None
    """The arguments as the model writes them, where they are no JSON."""


def asked(name: str, /, **args: object) -> Asked:
    return Asked(name, args)


Turn: TypeAlias = str | Sequence[Asked]
"""What the model says in a turn: a text, which ends the agent's work, or the tool calls of one batch."""


class Script:
    """A model that says one turn after another, whatever it is told; `seen` is what it was told.

    One item of `seen` is a request: the texts of the tool results that it held, each turn's once.
    """

    def __init__(self, *turns: Turn) -> None:
        self.turns = turns
        self.seen: list[list[str]] = []
        self._known = 0
        self._lock = threading.Lock()

    def next(self, results: Sequence[str]) -> tuple[int, Turn]:
        """The next turn and its number, from 1; `results` are all results of tools that the request holds."""
        with self._lock:
            self.seen.append([*results[self._known :]])
            self._known = len(results)
            number = len(self.seen)
        return number, self.turns[number - 1] if number <= len(self.turns) else "I have nothing more to say."

    @property
    def requests(self) -> int:
        """How often the model was asked."""
        return len(self.seen)


def call_id(number: int, place: int) -> str:
    """The id that a kit gives the call at a place of a turn."""
    return f"call_{number}_{place}"


class Tools:
    """The shop's tools, as plain functions and as asynchronous ones; `begun` names what ran.

    `cancel_order` says no in an answer that looks well, as often as `refusals` says; `ship_order` raises.
    `wait_order` ends when it is let go on.
    """

    def __init__(self, shop: Shop, *, refusals: int = 10**6) -> None:
        self.shop = shop
        self.refusals = refusals
        self.begun: list[str] = []
        self.waiting = threading.Event()
        self.go_on = threading.Event()

    def lookup_order(self, order_id: int) -> dict[str, Any]:
        """Look an order up."""
        self._begin("lookup_order")
        return self.shop.lookup_order(order_id) or {}

    def refund_order(self, order_id: int, amount: str) -> dict[str, Any]:
        """Refund an order."""
        self._begin("refund_order")
        return self.shop.refund_order(order_id, amount)

    def note_order(self, order_id: int, note: str) -> dict[str, Any]:
        """Write a note on an order."""
        self._begin("note_order")
        return self.shop.note_order(order_id, note)

    def cancel_order(self, order_id: int) -> dict[str, Any]:
        """Cancel an order."""
        self._begin("cancel_order")
        self.refusals -= 1
        return {"error": "only an open order can be cancelled"} if self.refusals >= 0 else {"cancelled": order_id}

    def ship_order(self, order_id: int) -> dict[str, Any]:
        """Ship an order."""
        self._begin("ship_order")
        raise RuntimeError(f"the carrier of order {order_id} is away")

    def wait_order(self, order_id: int) -> dict[str, Any]:
        """Wait for the order."""
        self._begin("wait_order")
        self.waiting.set()
        assert self.go_on.wait(20)
        return {"waited": order_id}

    async def await_order(self, order_id: int) -> dict[str, Any]:
        """The same as `wait_order`, by awaiting."""
        self._begin("wait_order")
        self.waiting.set()
        assert await asyncio.to_thread(self.go_on.wait, 20)
        return {"waited": order_id}

    def _begin(self, name: str) -> None:
        self.begun.append(name)

    def functions(self, *, asynchronous: bool) -> list[Callable[..., Any]]:
        """All tools, as a framework takes them: named, typed and described functions of one kind."""
        plain: list[Callable[..., Any]] = [
            *(self.lookup_order, self.refund_order, self.note_order, self.cancel_order, self.ship_order)
        ]
        if not asynchronous:
            return [*plain, self.wait_order]
        waiting = functools.update_wrapper(_bound(self.await_order), self.wait_order)
        return [*map(_awaited, plain), waiting]


def _bound(method: Callable[..., Awaitable[Any]]) -> Callable[..., Any]:
    async def tool(order_id: int) -> dict[str, Any]:
        found: dict[str, Any] = await method(order_id)
        return found

    return tool


def _awaited(tool: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(tool)
    async def awaited(*values: Any, **args: Any) -> dict[str, Any]:
        await asyncio.sleep(0)
        found: dict[str, Any] = tool(*values, **args)
        return found

    return awaited


@dataclass
class Scene:
    """What a kit is to play: an agent with these tools and this model; `runs` is what the adapter gets, None: no guard."""

    tools: Tools
    script: Script
    runs: Guard | Run | None
    folder: Path
    inner: Script | None = None
    """The model of an agent that the first one has as a tool (`ask_clerk`); it has the shop's tools."""
    thread: str = "thread"
    """The name under which a framework that keeps checkpoints keeps this one."""
    kept: dict[str, Any] = field(default_factory=dict[str, Any])
    """What a kit keeps from one play to the next, such as a checkpointer."""

    def functions(self, mode: Mode) -> list[Callable[..., Any]]:
        return self.tools.functions(asynchronous=mode.startswith("async"))


class Awaited(ABC):
    """A kit of a framework that can only be awaited: by blocking that is done in a loop of its own, with blocking tools."""

    modes: Sequence[Mode] = ("sync", "async", "async stream")
    limits: Mapping[str, str] = {}
    nests = True

    def play(self, scene: Scene, mode: Mode) -> str:
        return asyncio.run(self.aplay(scene, mode))

    @abstractmethod
    async def aplay(self, scene: Scene, mode: Mode) -> str:
        """Play by awaiting."""


class Kit(Protocol):
    """A framework with its adapter: plays a scene, and answers the agent's last words.

    `limits` says, by the name of a test, what the framework itself does not let be, and where that is written.
    """

    name: str
    modes: Sequence[Mode]
    limits: Mapping[str, str]
    nests: bool
    """Whether an agent can have another one as a tool."""

    def play(self, scene: Scene, mode: Mode) -> str:
        """Play by blocking."""
        ...

    async def aplay(self, scene: Scene, mode: Mode) -> str:
        """Play by awaiting."""
        ...
