"""What only Agent Framework has: middleware that swallows errors, conversations that a service keeps, approvals."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from agent_framework import (
    Agent,
    AgentSession,
    ChatResponse,
    Content,
    FunctionInvocationContext,
    FunctionMiddleware,
    Message,
    MiddlewareFailure,
    tool,
)

from guardrail import RunStopped
from guardrail_agent_framework import guardrail_middleware
from support.kits.agent_framework import AgentFramework, Scripted
from support.kits.pages import run_page, shop_of_the_page
from support.kits.stage import Mode, Scene, Script, asked
from support.kits.theatre import Theatre

LOOK = asked("lookup_order", order_id=17)
CANCEL = asked("cancel_order", order_id=17)
NOTE = asked("note_order", order_id=17, note="done")
REFUND = asked("refund_order", order_id=17, amount="19.90")


class Swallowing(AgentFramework):
    """An agent with middleware around the guard's that takes every failure for an answer."""

    def middleware(self, scene: Scene) -> list[Any]:
        class Swallow(FunctionMiddleware):
            async def process(self, context: FunctionInvocationContext, call_next: Any) -> None:
                try:
                    await call_next()
                except MiddlewareFailure:
                    context.result = "never mind"

        return [Swallow(), *super().middleware(scene)]


def test_after_a_stop_that_was_swallowed_the_model_is_not_asked_again(tmp_path: Path) -> None:
    with Theatre(Swallowing(), "async", tmp_path) as theatre:
        played = theatre.play([CANCEL], [NOTE], [LOOK], "Done.")
        assert isinstance(played.error, RunStopped), played.error
        assert (played.requests, played.begun) == (2, ["cancel_order"])


async def test_an_error_that_is_content_is_a_failure(tmp_path: Path) -> None:
    def cancel_order(order_id: int) -> Content:
        """Cancel an order."""
        return Content.from_error(message="only an open order can be cancelled")

    with Theatre(AgentFramework(), "async", tmp_path) as theatre:
        guard = theatre.guard(theatre.tools())
        tools = [tool(cancel_order, approval_mode="never_require")]
        agent = Agent(Scripted(Script([CANCEL], "Cancelled.")), tools=tools, middleware=guardrail_middleware(guard))
        async with guard.run() as run:
            await agent.run("Do it.")
            assert run.open_holds == 1


class Hosted(Scripted):
    """A client of a service that keeps the conversation; `last` is what it was told last."""

    async def _response(self, messages: Sequence[Message]) -> ChatResponse:
        self.last = [str(content.result) for message in messages for content in message.contents]
        response = await super()._response(messages)
        response.conversation_id = "conversation-1"
        return response


class Keeping(AgentFramework):
    def client(self, script: Script) -> Scripted:
        self.hosted = Hosted(script)
        return self.hosted


def test_a_conversation_that_a_service_keeps_is_told_that_its_calls_were_aborted(tmp_path: Path) -> None:
    kit = Keeping()
    with Theatre(kit, "async", tmp_path) as theatre:
        played = theatre.play([CANCEL], [NOTE], [LOOK], "Done.")
        assert isinstance(played.error, RunStopped), played.error
        assert played.begun == ["cancel_order"]
        assert ["aborted by middleware" in told for told in kit.hosted.last] == [True]


class Approving(AgentFramework):
    """An agent that may only refund what a person approved, who does."""

    async def aplay(self, scene: Scene, mode: Mode) -> str:
        tools = [tool(scene.tools.refund_order, approval_mode="always_require"), scene.tools.lookup_order]
        agent = Agent(self.client(scene.script), tools=tools, middleware=self.middleware(scene))
        session = AgentSession()
        response = await agent.run("Do it.", session=session)
        approved = [request.to_function_approval_response(approved=True) for request in response.user_input_requests]
        return (await agent.run(Message(role="user", contents=approved), session=session)).text


def test_a_call_that_a_person_approved_is_guarded(tmp_path: Path) -> None:
    with Theatre(Approving(), "async", tmp_path) as theatre:
        played = theatre.play([REFUND], "Refunded.", task="refund_order")
        assert played.error is None, played.error
        assert played.run is not None
        assert str(played.run.verdict) == "verified"
        assert played.outcomes == [("refund_order", "ok")]
        assert played.ids == ["call_1_0"]


def test_the_code_of_the_page_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    shop = shop_of_the_page(tmp_path)
    script = Script([asked("refund_order", order_id=17, amount="19.90")], "Refunded.")
    run_page("agent-framework", client=Scripted(script), lookup_order=shop.lookup_order, refund_order=shop.refund_order)
    assert capsys.readouterr().out == "verified\n"
