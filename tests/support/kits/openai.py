"""OpenAI's clients in loops written by hand, over chat completions and over responses."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

from guardrail.run.adapter import Runs
from guardrail_openai import ToolCalls
from support.kits.loops import Calls, Functions, LoopKit
from support.kits.openai_clients import aclient, client
from support.kits.stage import Kit, Script


class Chat:
    """Chat completions."""

    name = "openai chat completions"

    def guarded(self, runs: Runs, tools: Functions) -> Calls:
        return ToolCalls(runs, tools)

    def ask(self, script: Script, messages: list[Any], *, streamed: bool) -> Any:
        with client(script) as api:
            if not streamed:
                return api.chat.completions.create(model="scripted", messages=messages).choices[0].message
            with api.chat.completions.stream(model="scripted", messages=messages) as stream:
                return stream.get_final_completion().choices[0].message

    async def aask(self, script: Script, messages: list[Any], *, streamed: bool) -> Any:
        async with aclient(script) as api:
            if not streamed:
                return (await api.chat.completions.create(model="scripted", messages=messages)).choices[0].message
            async with api.chat.completions.stream(model="scripted", messages=messages) as stream:
                return (await stream.get_final_completion()).choices[0].message

    def keep(self, answer: Any, messages: list[Any]) -> None:
        messages.append(answer)

    def said(self, answer: Any) -> str:
        return str(answer.content)

    def asked(self, answer: Any) -> list[tuple[str, str, str]]:
        return [(call.id, call.function.name, call.function.arguments) for call in answer.tool_calls or ()]

    def tell(self, results: list[tuple[str, str, bool]], messages: list[Any]) -> None:
        messages += [{"role": "tool", "tool_call_id": id, "content": content} for id, content, _ in results]


class Responses:
    """Responses."""

    name = "openai responses"

    def guarded(self, runs: Runs, tools: Functions) -> Calls:
        return ToolCalls(runs, tools)

    def ask(self, script: Script, messages: list[Any], *, streamed: bool) -> Any:
        with client(script) as api:
            if not streamed:
                return api.responses.create(model="scripted", input=messages)
            with api.responses.stream(model="scripted", input=messages) as stream:
                return stream.get_final_response()

    async def aask(self, script: Script, messages: list[Any], *, streamed: bool) -> Any:
        async with aclient(script) as api:
            if not streamed:
                return await api.responses.create(model="scripted", input=messages)
            async with api.responses.stream(model="scripted", input=messages) as stream:
                return await stream.get_final_response()

    def keep(self, answer: Any, messages: list[Any]) -> None:
        messages += answer.output

    def said(self, answer: Any) -> str:
        return str(answer.output_text)

    def asked(self, answer: Any) -> list[tuple[str, str, str]]:
        return [(item.call_id, item.name, item.arguments) for item in answer.output if item.type == "function_call"]

    def tell(self, results: list[tuple[str, str, bool]], messages: list[Any]) -> None:
        messages += [{"type": "function_call_output", "call_id": id, "output": content} for id, content, _ in results]


KITS: list[Kit] = [LoopKit(Chat()), LoopKit(Responses())]
if find_spec("openai.lib.responses_tool_runner"):  # openai 3
    from support.kits.openai_runner import ToolRunner

    KITS.append(ToolRunner())
