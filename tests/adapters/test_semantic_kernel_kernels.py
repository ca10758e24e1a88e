"""What only Semantic Kernel has: plugins, other filters, functions that the program calls, orchestrations, agents elsewhere."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from openai import AsyncOpenAI
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from semantic_kernel import Kernel
from semantic_kernel.agents import (
    ChatCompletionAgent,
    HandoffOrchestration,
    OpenAIResponsesAgent,
    OrchestrationHandoffs,
)
from semantic_kernel.agents.runtime import InProcessRuntime
from semantic_kernel.connectors.ai.function_choice_behavior import FunctionChoiceBehavior
from semantic_kernel.connectors.ai.open_ai import OpenAIChatPromptExecutionSettings
from semantic_kernel.connectors.mcp import MCPStdioPlugin
from semantic_kernel.contents import ChatHistory
from semantic_kernel.filters import FilterTypes
from semantic_kernel.functions import kernel_function

from guardrail import RunNotOpen, RunStopped
from guardrail_semantic_kernel import guarded
from support.kits.pages import LOOK, REFUND, run_page, shop_of_the_page
from support.kits.semantic_kernel import Prompted, SemanticKernel
from support.kits.stage import Mode, Scene, Script, asked
from support.kits.theatre import Theatre
from support.kits.wire import endpoint

CANCEL = asked("cancel_order", order_id=17)
NOTE = asked("note_order", order_id=17, note="done")


def test_functions_of_one_name_are_told_apart_by_their_plugins(tmp_path: Path) -> None:
    class Two(SemanticKernel):
        def kernel(self, scene: Scene, mode: Mode) -> Kernel:
            @kernel_function
            def lookup_order(order_id: int) -> str:
                return "There is none."

            kernel = super().kernel(scene, mode)
            kernel.add_plugin({"lookup_order": lookup_order}, plugin_name="archive")
            return kernel

    with Theatre(Two(), "async", tmp_path) as theatre:
        turns = [asked("shop-lookup_order", order_id=17), asked("archive-lookup_order", order_id=17)]
        played = theatre.play(turns, [asked("shop-note_order", order_id=17, note="done")], "Done.")
        assert sorted(tool for tool, _ in played.outcomes) == [
            "archive-lookup_order",
            "note_order",
            "shop-lookup_order",
        ]


def test_an_argument_of_another_type_is_a_mistake_of_the_models(tmp_path: Path) -> None:
    with Theatre(SemanticKernel(), "async", tmp_path) as theatre:
        turns = ([asked("note_order", order_id="many", note="done")], [LOOK], [NOTE], "Done.")
        bare, played = theatre.bare(*turns), theatre.play(*turns)
        assert (played.told, played.error) == (bare.told, None)
        assert played.begun == ["lookup_order", "note_order"]
        assert played.run is not None
        assert played.run.open_holds == 0


def test_an_argument_that_a_function_gives_another_one_is_its_own_mistake(tmp_path: Path) -> None:
    class Nested(SemanticKernel):
        def kernel(self, scene: Scene, mode: Mode) -> Kernel:
            kernel = super().kernel(scene, mode)
            inner = kernel.plugins["shop"]["lookup_order"]

            @kernel_function
            async def refund_order(order_id: int, amount: str) -> Any:
                scene.tools.refund_order(order_id, amount)
                return await inner.invoke(kernel, order_id="many")

            kernel.plugins["shop"]["refund_order"] = refund_order
            return kernel

    with Theatre(Nested(), "async", tmp_path) as theatre:
        played = theatre.play([REFUND], "Refunded.")
        assert (played.begun, played.outcomes) == (["refund_order"], [("refund_order", "in_doubt")])


class Filtered(Prompted):
    """A kernel with a filter of the user's, of some kind."""

    def __init__(self, kind: FilterTypes, filter: Callable[[Any, Any], Awaitable[None]]) -> None:
        self.kind = kind
        self.filter = filter

    def kernel(self, scene: Scene, mode: Mode) -> Kernel:
        kernel = super().kernel(scene, mode)
        kernel.add_filter(self.kind, self.filter)
        return kernel


def test_what_another_filter_makes_of_a_call_is_judged(tmp_path: Path) -> None:
    async def cheaper(context: Any, next: Any) -> None:
        if "amount" in context.arguments:
            context.arguments["amount"] = "-1"
        await next(context)

    for kind in (FilterTypes.FUNCTION_INVOCATION, FilterTypes.AUTO_FUNCTION_INVOCATION):
        with Theatre(Filtered(kind, cheaper), "async", tmp_path) as theatre:
            played = theatre.play([LOOK], [REFUND], "Refunded.", task="refund_order")
            assert played.outcomes == [("lookup_order", "ok"), ("refund_order", "precondition_failed")]


def test_another_filter_may_end_the_work(tmp_path: Path) -> None:
    async def terminating(context: Any, next: Any) -> None:
        await next(context)
        context.terminate = True

    with Theatre(Filtered(FilterTypes.AUTO_FUNCTION_INVOCATION, terminating), "async", tmp_path) as theatre:
        played = theatre.play([REFUND], "Never asked.", task="refund_order")
        assert (played.error, played.requests) == (None, 1)
        assert str(played.run and played.run.verdict) == "verified"


async def test_a_function_that_the_program_calls_is_no_call_of_the_models(tmp_path: Path) -> None:
    with Theatre(SemanticKernel(), "async", tmp_path) as theatre:
        tools = theatre.tools()
        guard = theatre.guard(tools)
        kernel = guarded(SemanticKernel().kernel(theatre.scene(tools, (), None), "async"), guard)
        found = await kernel.invoke(plugin_name="shop", function_name="lookup_order", order_id=17)
        assert found is not None
        assert found.value == tools.shop.lookup_order(17)


def test_functions_that_a_function_calls_are_its_own_business(tmp_path: Path) -> None:
    class Nested(SemanticKernel):
        def kernel(self, scene: Scene, mode: Mode) -> Kernel:
            kernel = super().kernel(scene, mode)

            @kernel_function
            async def refund_order(order_id: int, amount: str) -> Any:
                await kernel.invoke(plugin_name="shop", function_name="lookup_order", order_id=order_id)
                return scene.tools.refund_order(order_id, amount)

            kernel.plugins["shop"]["refund_order"] = refund_order
            return kernel

    with Theatre(Nested(), "async", tmp_path) as theatre:
        played = theatre.play([REFUND], "Refunded.", task="refund_order")
        assert (played.begun, played.outcomes) == (["lookup_order", "refund_order"], [("refund_order", "ok")])


@pytest.mark.parametrize("streamed", [False, True])
async def test_a_chat_service_that_the_program_asks_is_guarded(tmp_path: Path, streamed: bool) -> None:
    with Theatre(SemanticKernel(), "async", tmp_path) as theatre:
        tools = theatre.tools()
        guard = theatre.guard(tools)
        scene = theatre.scene(tools, ([CANCEL], [NOTE], "Done."), None)
        kernel = guarded(SemanticKernel().kernel(scene, "async"), guard)
        [service] = kernel.get_services_by_type(SemanticKernel().service(scene.script).__class__).values()
        settings = OpenAIChatPromptExecutionSettings(function_choice_behavior=FunctionChoiceBehavior.Auto())
        history = ChatHistory()
        history.add_user_message("Do it.")
        with pytest.raises(RunStopped):
            async with guard.run():
                if streamed:
                    stream = service.get_streaming_chat_message_content(history, settings, kernel=kernel)
                    [part async for part in stream]
                await service.get_chat_message_content(history, settings, kernel=kernel)
        assert (scene.script.requests, tools.begun) == (2, ["cancel_order"])


def test_a_copy_of_a_kernel_is_guarded_and_guarding_anew_leaves_one_guard(tmp_path: Path) -> None:
    class Cloned(SemanticKernel):
        def agent(self, scene: Scene, mode: Mode) -> ChatCompletionAgent:
            kernel = self.kernel(scene, mode)
            if scene.runs is not None:
                guarded(guarded(kernel, scene.runs), scene.runs)
            return ChatCompletionAgent(name="clerk", kernel=kernel.clone())

    with Theatre(Cloned(), "async", tmp_path) as theatre:
        played = theatre.play([LOOK], [REFUND], "Refunded.", task="refund_order")
        assert played.outcomes == [("lookup_order", "ok"), ("refund_order", "ok")]
        played = theatre.play([CANCEL], [NOTE], "Done.")
        assert isinstance(played.error, RunStopped), played.error
        assert (played.requests, played.begun) == (2, ["cancel_order"])


def test_an_agent_that_is_a_plugin_is_a_call_and_its_stop_is_that_of_the_run(tmp_path: Path) -> None:
    class Plugged(SemanticKernel):
        def agent(self, scene: Scene, mode: Mode) -> ChatCompletionAgent:
            if scene.inner is None:
                return super().agent(scene, mode)
            inner = super().agent(Scene(scene.tools, scene.inner, scene.runs, scene.folder), mode)
            agent = ChatCompletionAgent(name="boss", service=self.service(scene.script), plugins=[inner])
            return agent if scene.runs is None else guarded(agent, scene.runs)

    with Theatre(Plugged(), "async", tmp_path) as theatre:
        ask = asked("clerk", messages="Do it.")
        played = theatre.play([ask], "Done.", inner=([LOOK], [REFUND], "Refunded."), task="refund_order")
        assert sorted(played.outcomes) == [("clerk", "ok"), ("lookup_order", "ok"), ("refund_order", "ok")]
        assert str(played.run and played.run.verdict) == "verified"
        played = theatre.play([ask], "Done.", inner=([CANCEL], [NOTE], "Done."))
        assert isinstance(played.error, RunStopped), played.error
        assert (played.requests, played.begun) == (1, ["cancel_order"])


class HandingOver(SemanticKernel):
    """An agent that hands over to another one, which has the model of the inner scene."""

    async def aplay(self, scene: Scene, mode: Mode) -> str:
        assert scene.inner is not None
        first = self.named("first", scene, mode)
        second = self.named("second", Scene(scene.tools, scene.inner, scene.runs, scene.folder), mode)
        handoffs = OrchestrationHandoffs().add("first", "second", "when there is more to do")
        orchestration = HandoffOrchestration(members=[first, second], handoffs=handoffs)
        runtime = InProcessRuntime()
        runtime.start()
        try:
            done = await orchestration.invoke(task="Do it.", runtime=runtime)
            return str(await done.get(timeout=20))
        finally:
            await runtime.stop()

    def named(self, name: str, scene: Scene, mode: Mode) -> ChatCompletionAgent:
        inner, scene.inner = scene.inner, None
        agent = ChatCompletionAgent(name=name, description=name, kernel=self.kernel(scene, mode))
        scene.inner = inner
        return agent if scene.runs is None else guarded(agent, scene.runs)


def test_an_agent_to_which_another_handed_over_is_guarded_and_handing_over_is_no_call(tmp_path: Path) -> None:
    hand_over = asked("Handoff-transfer_to_second")
    complete = asked("Handoff-complete_task", task_summary="Refunded.")
    with Theatre(HandingOver(), "async", tmp_path) as theatre:
        played = theatre.play([LOOK], [hand_over], inner=([REFUND], [complete]), task="refund_order")
        assert (played.error, played.outcomes) == (None, [("lookup_order", "ok"), ("refund_order", "ok")])
        assert str(played.run and played.run.verdict) == "verified"
        played = theatre.play([CANCEL], [hand_over], inner=([NOTE], [complete]))
        assert isinstance(played.error, RunStopped), played.error
        assert played.outcomes == [("cancel_order", "rejected"), ("note_order", "refused")]


def test_an_agent_whose_conversation_is_kept_elsewhere_is_guarded(tmp_path: Path) -> None:
    class Responding(SemanticKernel):
        async def aplay(self, scene: Scene, mode: Mode) -> str:
            client = AsyncOpenAI(base_url=f"{endpoint(scene.script)}/v1", api_key="none")
            agent = OpenAIResponsesAgent(
                ai_model_id="scripted", client=client, name="clerk", kernel=self.kernel(scene, mode)
            )
            return str(await (agent if scene.runs is None else guarded(agent, scene.runs)).get_response("Do it."))

    with Theatre(Responding(), "async", tmp_path) as theatre:
        played = theatre.play([LOOK], [REFUND], "Refunded.", task="refund_order")
        assert (played.error, played.said) == (None, "Refunded.")
        assert played.ids == ["call_1_0", "call_2_0"]
        played = theatre.play([CANCEL], [NOTE], "Done.")
        assert isinstance(played.error, RunStopped), played.error
        assert (played.requests, played.begun) == (2, ["cancel_order"])


SERVER = """
from mcp.server.fastmcp import FastMCP

server = FastMCP("shop")

@server.tool()
def list_orders() -> str:
    return '[{"id": 17}]'

@server.tool()
def cancel_order(order_id: int) -> str:
    return '{"error": "only an open order can be cancelled"}'

server.run()
"""


def test_functions_of_an_mcp_server_are_judged_by_their_texts(tmp_path: Path) -> None:
    (tmp_path / "server.py").write_text(SERVER, "utf-8")

    class Serving(SemanticKernel):
        async def aplay(self, scene: Scene, mode: Mode) -> str:
            async with MCPStdioPlugin(
                name="orders", command=sys.executable, args=[str(tmp_path / "server.py")]
            ) as shop:
                agent = ChatCompletionAgent(name="clerk", service=self.service(scene.script), plugins=[shop])
                return str(await (agent if scene.runs is None else guarded(agent, scene.runs)).get_response("Do it."))

    with Theatre(Serving(), "async", tmp_path) as theatre:
        turns = ([asked("orders-list_orders")], [asked("orders-cancel_order", order_id=17)], "Cancelled.")
        bare, played = theatre.bare(*turns), theatre.play(*turns)
        assert (played.told, played.error) == (bare.told, None)
        assert played.outcomes == [("list_orders", "ok"), ("cancel_order", "rejected")]


def test_a_span_of_the_frameworks_is_made_richer_and_not_doubled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Theatre(SemanticKernel(), "async", tmp_path) as theatre:
        provider = TracerProvider()
        provider.add_span_processor(SimpleSpanProcessor(theatre.exporter))
        module = sys.modules["semantic_kernel.functions.kernel_function"]
        monkeypatch.setattr(module, "tracer", provider.get_tracer("semantic_kernel"))
        theatre.play([CANCEL], "Cancelled.")
        spans = [dict(span.attributes or {}) for span in theatre.spans() if span.name.startswith("execute_tool")]
        assert len(spans) == 1
        assert spans[0]["gen_ai.tool.call.id"] == "call_1_0"
        assert "rejected" in spans[0].values()


def test_a_call_outside_of_a_run_is_told_to_the_program(tmp_path: Path) -> None:
    with Theatre(SemanticKernel(), "async", tmp_path) as theatre:
        tools = theatre.tools()
        scene = theatre.scene(tools, ([LOOK], "Looked."), theatre.guard(tools))
        with pytest.raises(RunNotOpen):
            asyncio.run(SemanticKernel().aplay(scene, "async"))
        assert (tools.begun, scene.script.requests) == ([], 1)


def test_what_is_no_kernel_is_refused(tmp_path: Path) -> None:
    with Theatre(SemanticKernel(), "async", tmp_path) as theatre:
        guard = theatre.guard(theatre.tools())
        service: Any = SemanticKernel().service(Script())
        with pytest.raises(TypeError, match="and not OpenAIChatCompletion"):
            guarded(service, guard)


def test_the_page_says_what_works(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    shop = shop_of_the_page(tmp_path)

    class Shop:
        @kernel_function
        def lookup_order(self, order_id: int) -> dict[str, Any]:
            """Look an order up."""
            return shop.lookup_order(order_id) or {}

        @kernel_function
        def refund_order(self, order_id: int, amount: str) -> dict[str, Any]:
            """Refund an order."""
            return shop.refund_order(order_id, amount)

    service = SemanticKernel().service(Script([LOOK], [REFUND], "Refunded."))
    run_page("semantic-kernel", service=service, Shop=Shop)
    assert capsys.readouterr().out == "verified\n"
