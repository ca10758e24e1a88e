"""The calls of one message of the model's, made for a loop that is written by hand."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Mapping
from contextvars import Context, copy_context
from decimal import Decimal
from typing import Any

import pytest

from guardrail import Guard, RunStopped
from guardrail.calls import ToolCall
from guardrail.errors import FINAL, RunHalted, RunNotOpen
from guardrail.run.adapter import Adapter
from guardrail.run.batches import Asked, AsynchronousTool, Batches, arguments, as_text
from support.shop import Guards, Shop

CANCEL = Asked("c1", "cancel_order", {"order_id": 17})
NOTE = Asked("c2", "note_order", {"order_id": 17, "note": "x"})
LOOK = Asked("c3", "lookup_order", {"order_id": 17})


class Told:
    """What the model is told, call by call: id, content, whether it failed."""

    def __init__(self) -> None:
        self.results: list[tuple[str, Any, bool]] = []

    def __call__(self, asked: Asked, content: Any, failed: bool) -> None:
        self.results.append((asked.id, content, failed))


@pytest.fixture
def told() -> Told:
    return Told()


@pytest.fixture
def batches(guard: Guard, shop: Shop) -> Batches:
    tools: list[Callable[..., Any]] = [shop.cancel_order, shop.note_order, shop.lookup_order]
    return Batches(guard, {tool.__name__: tool for tool in tools}, as_text)


def test_each_call_of_a_message_is_answered_though_one_of_them_stops_the_run(
    guard: Guard, shop: Shop, batches: Batches, told: Told
) -> None:
    with pytest.raises(RunStopped), guard.run():
        with pytest.raises(RunHalted):  # a loop that swallows the signal
            batches.make([CANCEL, NOTE, LOOK], told)
        with pytest.raises(RunHalted):
            batches.make([LOOK], told)
        with pytest.raises(RunHalted):
            batches.gate()
    error = '{"error": "only an open order can be cancelled"}'
    assert told.results == [("c1", error, False), ("c2", FINAL, True), ("c3", FINAL, True), ("c3", FINAL, True)]
    assert shop.calls == ["cancel_order"]


async def test_each_call_is_answered_though_the_batch_is_cancelled(guard: Guard, told: Told) -> None:
    begun = asyncio.Event()

    async def note_order(order_id: int, note: str) -> None:
        begun.set()
        await asyncio.sleep(60)

    async with guard.run() as run:
        batches = Batches(run, {"note_order": note_order}, as_text)
        task = asyncio.create_task(batches.amake([NOTE, LOOK], told))
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert told.results == [(id, "Error: the call was cut off.", True) for id in ("c2", "c3")]


@pytest.mark.parametrize(
    ("mistake", "text"),
    [
        (Asked("c", "shred_order", {}), "Error: there is no tool shred_order"),
        (Asked("c", "note_order", '{"order_id": 17'), "Error: the arguments of note_order are no JSON object"),
        (Asked("c", "note_order", {"order_id": 17}), "Error: Shop.note_order() missing 1 required positional argument"),
        (Asked("c", "note_order", {"oder_id": 17}), "Error: Shop.note_order() got an unexpected keyword argument"),
    ],
    ids=["no such tool", "no JSON", "an argument too few", "an argument too many"],
)
@pytest.mark.parametrize("awaited", [False, True], ids=["made", "awaited"])
async def test_a_mistake_of_the_models_is_told_and_holds_nothing(
    guard: Guard, shop: Shop, batches: Batches, told: Told, mistake: Asked, text: str, awaited: bool
) -> None:
    async with guard.run() as run:
        if awaited:
            await batches.amake([mistake], told)
        else:
            batches.make([mistake], told)
        assert run.open_holds == 0
    [(_, content, failed)] = told.results
    assert content.startswith(text)
    assert failed
    assert shop.calls == []


def test_an_error_of_the_tools_is_told_and_holds_even_if_it_is_one_of_types(guard: Guard, told: Told) -> None:
    def note_order(order_id: int, note: str) -> str:
        raise TypeError("a note must be short")

    with guard.run() as run:
        Batches(guard, {"note_order": note_order}, as_text).make([NOTE], told)
        assert run.open_holds == 1
    assert told.results == [("c2", "Error: a note must be short", True)]


def test_a_call_that_is_refused_is_told_as_failed(guards: Guards, shop: Shop, told: Told) -> None:
    guard = guards(
        tools={"note_order": {"effect": "write", "args": {"note": {"type": "text", "matches": "^[a-z]{3}"}}}}
    )
    with guard.run():
        Batches(guard, {"note_order": shop.note_order}, as_text).make([NOTE], told)
    [(_, content, failed)] = told.results
    assert "was not carried out" in content
    assert failed
    assert shop.calls == []


def test_a_mistake_within_a_decorated_tool_is_no_misfit(guards: Guards, told: Told) -> None:
    """What the decorator adds, the model does not give; so the signature never fits, and says nothing."""

    def with_session(tool: Callable[..., object]) -> Callable[..., object]:
        @functools.wraps(tool)
        def called(**args: object) -> object:
            return tool(session="s", **args)

        return called

    written: list[int] = []

    @with_session
    def note_order(session: str, order_id: int) -> object:
        written.append(order_id)
        return "order " + order_id  # type: ignore[operator]  # pyright: ignore[reportOperatorIssue]

    guard = guards(tools={"note_order": {"effect": "write", "once_per": ["order_id"]}})
    with guard.run() as run:
        batches = Batches(guard, {"note_order": note_order}, as_text)
        batches.make([Asked("c1", "note_order", {})], told)
        assert run.open_holds == 0
        for _ in range(2):
            batches.make([Asked("c2", "note_order", {"order_id": 17})], told)
        assert run.open_holds == 1
    assert written == [17]
    assert "may have succeeded" in told.results[-1][1]


def test_a_result_that_is_no_json_and_an_error_without_words_are_told(guards: Guards, told: Told) -> None:
    circle: dict[str, object] = {}
    circle["me"] = circle

    class Wordless(ValueError):
        def __str__(self) -> str:
            raise RuntimeError

    def fail() -> object:
        raise Wordless

    guard = guards(tools={"*": {"effect": "read"}})
    tools: dict[str, Callable[..., object]] = {"circle": lambda: circle, "pairs": lambda: {(1, 2): 3}, "fail": fail}
    with guard.run():
        Batches(guard, tools, as_text).make([Asked(name, name, {}) for name in tools], told)
    assert told.results == [
        ("circle", "{'me': {...}}", False),
        ("pairs", "{(1, 2): 3}", False),
        ("fail", "Error: a Wordless without words", True),
    ]


def test_a_default_of_the_tools_decides_what_a_call_does(guards: Guards, told: Told) -> None:
    def orders(action: str = "update") -> dict[str, str]:
        return {"error": "not now"}

    effect = {"by": "args.action", "read": ["get"], "write": ["update"]}
    guard = guards(tools={"orders": {"effect": effect}})
    with guard.run() as run:
        Batches(guard, {"orders": orders}, as_text).make([Asked("c", "orders", {})], told)
    history = guard.ledger.load_run(run.id)
    assert history is not None
    assert [call.call.effect for call in history.calls] == ["write"]


def test_an_asynchronous_tool_is_not_made_without_being_awaited(guard: Guard, told: Told) -> None:
    async def lookup_order(order_id: int) -> None:
        raise AssertionError

    batches = Batches(guard, {"lookup_order": lookup_order}, as_text)
    with guard.run() as run:
        with pytest.raises(AsynchronousTool, match="await"):
            batches.make([LOOK], told)
        assert run.open_holds == 0


def test_a_call_outside_of_a_run_is_no_message_for_the_model(batches: Batches, told: Told) -> None:
    batches.gate()
    with pytest.raises(RunNotOpen):
        batches.make([LOOK], told)


def test_arguments_and_results_are_written_as_json() -> None:
    assert arguments('{"order_id": 17}') == {"order_id": 17}
    assert arguments("") == {}
    assert arguments("[17]") == "[17]"
    assert arguments('{"order_id":') == '{"order_id":'
    assert as_text("as it is") == "as it is"
    assert as_text({"amount": Decimal("19.90")}) == '{"amount": "19.90"}'


def test_a_tool_that_is_guarded_already_is_not_guarded_twice(guard: Guard, shop: Shop, told: Told) -> None:
    with guard.run() as run:
        Batches(guard, {"lookup_order": guard.tool(shop.lookup_order)}, as_text).make([LOOK], told)
    assert run.calls == 1


class Elsewhere(Adapter[Asked]):
    """A second place where the same calls are guarded."""

    def describe(self, native: Asked) -> ToolCall:
        assert isinstance(native.args, Mapping)
        return ToolCall(native.name, native.args, native.id)


def test_a_call_that_is_guarded_in_two_places_is_one_call(guard: Guard, shop: Shop, told: Told) -> None:
    inner = Elsewhere(guard)

    def note_order(order_id: int, note: str) -> object:
        return inner.call(NOTE, lambda: shop.note_order(order_id, note))

    with guard.run() as run:
        Batches(guard, {"note_order": note_order}, as_text).make([NOTE], told)
        assert run.calls == 1
    assert shop.calls == ["note_order"]


def test_what_a_tool_leaves_behind_makes_calls_that_are_guarded(guard: Guard, shop: Shop, told: Told) -> None:
    """As a server does that was started within a call, and lives on in the context of that."""
    left: list[Context] = []

    def note_order(order_id: int, note: str) -> object:
        left.append(copy_context())
        return shop.note_order(order_id, note)

    with guard.run() as run:
        batches = Batches(guard, {"note_order": note_order}, as_text)
        for _ in range(2):
            left[-1].run(batches.make, [NOTE], told) if left else batches.make([NOTE], told)
        assert run.calls == 2
