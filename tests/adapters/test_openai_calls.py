"""What only OpenAI's APIs have: custom tools, and the tool runner's typed, independent and eager functions."""

from __future__ import annotations

import contextlib
import json
import threading
from pathlib import Path
from typing import Any

import openai
import pytest
from openai.types.chat import ChatCompletionMessage
from openai.types.responses import Response
from pydantic import BaseModel

from guardrail import Configuration, Guard, RunStopped
from guardrail.errors import FINAL, GuardrailError, RunHalted
from guardrail_openai import ToolCalls
from support.kits.openai_clients import client
from support.kits.pages import LOOK, REFUND, played
from support.kits.stage import Script, asked
from support.kits.wire import DIALECTS, endpoint

TOOLS = {"patch": {"effect": "write"}, "cancel_order": {"effect": "write"}, "note_order": {"effect": "write"}}


@pytest.fixture
def guard(tmp_path: Path) -> Any:
    whole = {"ledger": str(tmp_path / "ledger.db"), "tools": TOOLS}
    with Guard(Configuration.model_validate(whole)) as made:
        yield made


def patch(input: str) -> dict[str, str]:
    return {"error": f"no such line: {input}"}


def chat() -> Any:
    function = {"name": "note_order", "arguments": '{"input": "+ b"}'}
    calls = [
        {"id": "c1", "type": "custom", "custom": {"name": "patch", "input": "+ a"}},
        {"id": "c2", "type": "function", "function": function},
    ]
    return ChatCompletionMessage.model_validate({"role": "assistant", "content": None, "tool_calls": calls})


def response() -> Any:
    whole = DIALECTS["v1/responses"].whole("scripted", 1, "")
    whole["output"] = [
        {"type": "custom_tool_call", "id": "i1", "call_id": "c1", "name": "patch", "input": "+ a"},
        {"type": "function_call", "id": "i2", "call_id": "c2", "name": "note_order", "arguments": '{"input": "+ b"}'},
    ]
    return Response.model_validate(whole)


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (chat(), [{"role": "tool", "tool_call_id": "c1"}, {"role": "tool", "tool_call_id": "c2"}]),
        (
            response(),
            [
                {"type": "custom_tool_call_output", "call_id": "c1"},
                {"type": "function_call_output", "call_id": "c2"},
            ],
        ),
    ],
    ids=["chat completions", "responses"],
)
def test_custom_tools_get_their_text_and_each_call_its_answer_in_the_words_of_its_api(
    guard: Guard, answer: Any, told: list[dict[str, str]]
) -> None:
    messages: list[Any] = []
    with pytest.raises(RunStopped), guard.run(), pytest.raises(RunHalted):
        ToolCalls(guard, {"patch": patch, "note_order": patch}).make(answer, messages)
    texts = ['{"error": "no such line: + a"}', FINAL]
    place = "content" if "role" in told[0] else "output"
    assert messages == [{**message, place: text} for message, text in zip(told, texts, strict=True)]


def test_a_message_that_was_joined_by_hand_is_made_like_one_of_the_clients(guard: Guard) -> None:
    noted: list[str] = []
    calls = ToolCalls(guard, {"patch": patch, "note_order": lambda input: noted.append(input) or {"noted": input}})
    for message in (chat().model_dump(), {"role": "assistant", "tool_calls": chat().model_dump()["tool_calls"][1:]}):
        messages: list[Any] = []
        with pytest.raises(RunStopped) if len(message) > 2 else contextlib.nullcontext(), guard.run():
            assert calls.make(message, messages)
        assert {answer["role"] for answer in messages} == {"tool"}
    assert noted == ["+ b"]


@pytest.mark.parametrize("answer", [None, [], "text", {"role": "user"}, object()])
def test_what_is_no_answer_of_a_models_is_refused_with_words(guard: Guard, answer: Any) -> None:
    with guard.run(), pytest.raises(TypeError, match="the model's answer is a message"):
        ToolCalls(guard, {}).make(answer, [])


@pytest.mark.parametrize(
    ("runs", "tools", "words"),
    [
        ("guardrail.yaml", {}, "takes a Guard, or a Run of it, and not str"),
        (None, {}, "takes a Guard, or a Run of it, and not NoneType"),
        ("guard", [patch], "functions by their names"),
        ("guard", {"patch": 1}, "functions by their names"),
    ],
)
def test_what_is_no_guard_and_what_are_no_tools_is_refused_with_words(
    guard: Guard, runs: Any, tools: Any, words: str
) -> None:
    with pytest.raises(TypeError, match=words):
        ToolCalls(guard if runs == "guard" else runs, tools)


def test_the_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = Script([LOOK], [REFUND], "Refunded.")
    monkeypatch.setenv("OPENAI_BASE_URL", f"{endpoint(script)}/v1")
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    assert played("openai", tmp_path, monkeypatch)["run"].verdict.kind == "verified"


lib = pytest.importorskip("openai.lib.responses_tool_runner", reason="the tool runner came with openai 3")


class Order(BaseModel):
    order_id: int
    note: str


def run(guard: Guard, functions: list[Any], script: Script, **options: Any) -> Any:
    from guardrail_openai.runner import guarded_runner

    task: Any = {"model": "scripted", "input": "Do it."}
    with client(script) as api:
        return guarded_runner(guard, functions).run(api, task, max_steps=5, **options)


def function(name: str, execute: Any, **options: Any) -> Any:
    parameters = {"type": "object", "properties": {}}
    tool: Any = {"type": "function", "name": name, "parameters": parameters, "strict": False}
    return lib.RegisteredFunction(tool, execute, **options)


def test_a_typed_function_is_recorded_with_what_the_model_wrote(guard: Guard) -> None:
    tool = openai.pydantic_responses_function_tool(Order, name="note_order")
    made: list[Any] = []
    typed = lib.RegisteredFunction.from_tool(tool, execute=lambda order: made.append(order) or "noted")
    with guard.run() as opened:
        run(guard, [typed], Script([asked("note_order", order_id=17, note="x")], "Done."))
    history = guard.ledger.load_run(opened.id)
    assert history is not None
    assert [json.loads(call.call.args) for call in history.calls] == [{"order_id": 17, "note": "x"}]
    assert made == [Order(order_id=17, note="x")]


def test_functions_that_run_beside_each_other_while_the_answer_streams_are_guarded(guard: Guard) -> None:
    both = threading.Barrier(2, timeout=20)

    def cancel(arguments: Any, *, cancelled: Any) -> str:
        assert cancelled() is False
        both.wait()
        return '{"error": "only an open order can be cancelled"}'

    def note(arguments: Any) -> str:
        both.wait()
        return "noted"

    functions = [function("cancel_order", cancel, independent=True), function("note_order", note, independent=True)]
    script = Script([asked("cancel_order"), asked("note_order")], [asked("note_order")], "Done.")
    with pytest.raises(RunStopped), guard.run() as opened:
        run(guard, functions, script, stream=True, eager=True)
    history = guard.ledger.load_run(opened.id)
    assert history is not None
    calls = [(call.call.call_id, call.outcome.outcome) for call in history.calls if call.outcome]
    assert sorted(calls) == [("call_1_0", "rejected"), ("call_1_1", "ok"), ("call_2_0", "refused")]
    assert script.requests == 2


def test_a_runner_that_its_caller_cancels_ends_in_its_own_way(guard: Guard) -> None:
    with guard.run() as opened, pytest.raises(lib.ToolRunnerError, match="cancelled"):
        run(guard, [], Script("Done."), cancelled=lambda: True)
    assert opened.calls == 0


def test_a_browser_cannot_be_guarded() -> None:
    from guardrail_openai.runner import guarded_runner

    runs: Any = None
    with pytest.raises(GuardrailError, match="browser cannot be guarded"):
        guarded_runner(runs, [], browser=object())
