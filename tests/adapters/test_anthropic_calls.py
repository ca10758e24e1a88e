"""What only Anthropic's API has: toolsets, tools that are given while the runner runs, results made of blocks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from anthropic import beta_tool
from anthropic.lib.tools import ToolError
from anthropic.types import Message
from pydantic import BaseModel

from guardrail import Configuration, Guard, RunStopped
from guardrail.errors import FINAL, GuardrailError, RunHalted
from guardrail_anthropic import ToolCalls, guarded_runner
from support.kits.anthropic import MODEL, TASK, client
from support.kits.pages import LOOK, REFUND, played
from support.kits.stage import Script, asked
from support.kits.wire import DIALECTS, endpoint

TOOLS = {
    "cancel_order": {"effect": "write"},
    "note_order": {"effect": "write"},
    "lookup_order": {"effect": "read"},
    "browser.click": {"effect": "write", "args": {"at": {"type": "decimal", "above": 0}}},
}


@pytest.fixture
def guard(tmp_path: Path) -> Any:
    whole = {"ledger": str(tmp_path / "ledger.db"), "tools": TOOLS}
    with Guard(Configuration.model_validate(whole)) as made:
        yield made


def outcomes(guard: Guard, run: str) -> list[tuple[str, str | None, str]]:
    history = guard.ledger.load_run(run)
    assert history is not None
    return [(call.call.tool, call.call.call_id, call.outcome.outcome if call.outcome else "") for call in history.calls]


@beta_tool
def cancel_order(order_id: int) -> str:
    """Cancel an order."""
    return '{"error": "only an open order can be cancelled"}'


@beta_tool
def note_order(order_id: int) -> str:
    """Write a note on an order."""
    return "noted"


CANCEL = asked("cancel_order", order_id=17)
NOTE = asked("note_order", order_id=17)
CLICK = asked("browser.click", at=1)


def test_each_call_of_a_message_is_answered_in_one_message_though_the_run_is_stopped(guard: Guard) -> None:
    whole = DIALECTS["v1/messages"].whole("scripted", 1, [CANCEL, NOTE, CLICK])
    messages: list[Any] = []
    tools = {"cancel_order": cancel_order.func, "note_order": note_order.func}
    with pytest.raises(RunStopped), guard.run(), pytest.raises(RunHalted):
        ToolCalls(guard, tools).make(Message.model_validate(whole), messages)
    refused = {"type": "tool_result", "content": FINAL, "is_error": True}
    error = '{"error": "only an open order can be cancelled"}'
    assert messages == [
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "call_1_0", "content": error},
                {**refused, "tool_use_id": "call_1_1"},
                {**refused, "tool_use_id": "call_1_2", "toolset_name": "browser"},
            ],
        }
    ]


def test_an_answer_without_calls_leaves_the_conversation_as_it_is(guard: Guard) -> None:
    messages: list[Any] = []
    with guard.run():
        answer = Message.model_validate(DIALECTS["v1/messages"].whole("scripted", 1, "Done."))
        assert ToolCalls(guard, {}).make(answer, messages) is False
    assert messages == []


def test_a_tool_that_the_runner_is_given_on_the_way_is_guarded(guard: Guard) -> None:
    script = Script([CANCEL], [NOTE], "Done.")
    with pytest.raises(RunStopped), guard.run() as run, client(script) as api:
        runner = guarded_runner(guard, api.beta.messages.tool_runner(**MODEL, messages=TASK, tools=[cancel_order]))
        assert guarded_runner(guard, runner) is runner  # and is not guarded twice
        for number, _ in enumerate(runner):
            if number == 0:
                runner.add_tools(note_order)
    assert outcomes(guard, run.id) == [
        ("cancel_order", "call_1_0", "rejected"),
        ("note_order", "call_2_0", "refused"),
    ]


def browser() -> Any:
    lib = pytest.importorskip("anthropic.lib.tools")

    class Browser(lib.BetaRunnableToolset):  # type: ignore[misc]
        toolset_name = "browser"

        def to_dict(self) -> Any:
            return {"type": "browser_toolset_20260801"}

        def call(self, context: Any, name: str, input: Any) -> str:
            raise ToolError("there is no such button")

    return Browser()


@pytest.mark.parametrize("turns", [([CANCEL], [CLICK]), ([CLICK], [NOTE])], ids=["stopped", "failed"])
def test_members_of_toolsets_are_guarded(guard: Guard, turns: tuple[Any, ...]) -> None:
    tools = [cancel_order, note_order, browser()]
    with pytest.raises(RunStopped) as caught, guard.run() as run, client(Script(*turns, "Done.")) as api:
        guarded_runner(guard, api.beta.messages.tool_runner(**MODEL, messages=TASK, tools=tools)).until_done()
    assert caught.value.stop.reason == "write_under_hold"
    assert [outcome for _, _, outcome in outcomes(guard, run.id)][1] == "refused"


def test_a_refusal_of_a_toolsets_member_is_told_to_the_model(guard: Guard) -> None:
    script = Script([asked("browser.click", at=-1)], "Done.")
    with guard.run(), client(script) as api:
        guarded_runner(guard, api.beta.messages.tool_runner(**MODEL, messages=TASK, tools=[browser()])).until_done()
    [told] = script.seen[1]
    assert told.startswith("error: browser.click was not carried out")


class Slip(BaseModel):
    number: int


@pytest.mark.parametrize(
    ("error", "outcome"),
    [(ToolError("only an open order can be noted"), "rejected"), (ValueError("the shop is closed"), "error")],
    ids=["an error with content", "a value error"],
)
def test_an_error_of_the_tools_holds_and_is_told_in_the_runners_words(
    guard: Guard, error: Exception, outcome: str
) -> None:
    @beta_tool
    def note_order(order_id: int) -> str:
        """Write a note on an order."""
        raise error

    told: list[list[str]] = []
    for guards in (False, True):
        script = Script([NOTE], "Done.")
        with guard.run() as run, client(script) as api:
            runner = api.beta.messages.tool_runner(**MODEL, messages=TASK, tools=[note_order])
            (guarded_runner(guard, runner) if guards else runner).until_done()
        told.append(script.seen[1])
    assert told[0] == told[1]
    assert outcomes(guard, run.id) == [("note_order", "call_1_0", outcome)]
    assert run.open_holds == 1


def test_a_wrong_value_within_a_tool_is_no_mistake_of_the_models(guard: Guard) -> None:
    @beta_tool
    def note_order(order_id: int) -> str:
        """Write a note on an order."""
        return str(Slip.model_validate({"number": "none"}))

    with guard.run() as run, client(Script([NOTE], "Done.")) as api:
        runner = api.beta.messages.tool_runner(**MODEL, messages=TASK, tools=[note_order])
        guarded_runner(guard, runner).until_done()
    assert run.open_holds == 1


def test_what_is_no_tool_runner_is_not_taken_for_guarded(guard: Guard) -> None:
    with pytest.raises(GuardrailError, match="no tool runner"):
        guarded_runner(guard, object())


def test_the_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = Script([LOOK], [REFUND], "Refunded.")
    monkeypatch.setenv("ANTHROPIC_BASE_URL", endpoint(script))
    monkeypatch.setenv("ANTHROPIC_API_KEY", "none")
    assert played("anthropic", tmp_path, monkeypatch)["run"].verdict.kind == "verified"
