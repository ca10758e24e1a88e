"""The tool calls of a loop over chat completions or responses, made and answered under a guard."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias

from openai.types.chat import ChatCompletionMessage
from openai.types.responses import Response
from pydantic import ValidationError

from guardrail.run.adapter import Runs
from guardrail.run.batches import Asked, Batches, Tell, arguments, as_text

Answer: TypeAlias = ChatCompletionMessage | Response | Mapping[str, Any]
"""What the model answered: a message of a chat completion, also as a dict (joined from a stream), or a response."""


class ToolCalls:
    """Makes the tool calls that a model asks for: `ToolCalls(guard, {"lookup_order": lookup_order, ...})`.

    `runs` is a guard, whose open run each call then belongs to, or one run. `content` makes what the model is told out
    of a tool's result; as it is left, a text stays one and anything else becomes JSON. A custom tool is called with its
    text as `input`. What OpenAI runs itself (web search, hosted MCP servers and the like) cannot be guarded.
    """

    def __init__(
        self, runs: Runs, tools: Mapping[str, Callable[..., Any]], *, content: Callable[[Any], Any] = as_text
    ) -> None:
        self._batches = Batches(runs, tools, content)

    def gate(self) -> None:
        """Before each request to the model: raise `RunHalted` if the run is over."""
        self._batches.gate()

    def make(self, answer: Answer, messages: list[Any]) -> bool:
        """Make the calls of the model's answer one after another and append their results to `messages`.

        Returns whether there were any. Raises `RunHalted` if the guard stops the run; each call has its result then,
        too. Raises `RunNotOpen`, and `TypeError` for what is no answer.
        """
        whole = _whole(answer)
        asked = list(_asked(whole))
        self._batches.make(asked, _teller(whole, messages))
        return bool(asked)

    async def amake(self, answer: Answer, messages: list[Any]) -> bool:
        """The same by awaiting; tools may be asynchronous then."""
        whole = _whole(answer)
        asked = list(_asked(whole))
        await self._batches.amake(asked, _teller(whole, messages))
        return bool(asked)


def _whole(answer: Answer) -> ChatCompletionMessage | Response:
    if isinstance(answer, ChatCompletionMessage | Response):
        return answer
    try:
        return ChatCompletionMessage.model_validate({"content": None, **answer})
    except (TypeError, ValidationError) as error:
        wanted = "a message (`completion.choices[0].message`), a message as a dict, or a Response"
        raise TypeError(f"the model's answer is {wanted}, and not {type(answer).__name__}") from error


def _asked(answer: ChatCompletionMessage | Response) -> Iterator[Asked]:
    if isinstance(answer, Response):
        for item in answer.output:
            if item.type == "function_call":
                yield Asked(item.call_id, item.name, arguments(item.arguments))
            elif item.type == "custom_tool_call":
                yield Asked(item.call_id, item.name, {"input": item.input})
    else:
        for call in answer.tool_calls or ():
            if call.type == "function":
                yield Asked(call.id, call.function.name, arguments(call.function.arguments))
            else:
                yield Asked(call.id, call.custom.name, {"input": call.custom.input})


def _teller(answer: ChatCompletionMessage | Response, messages: list[Any]) -> Tell:
    """Appends the result of a call as the API that gave the answer wants it."""
    if not isinstance(answer, Response):
        return lambda asked, content, failed: messages.append(
            {"role": "tool", "tool_call_id": asked.id, "content": content}
        )
    custom = {item.call_id for item in answer.output if item.type == "custom_tool_call"}

    def tell(asked: Asked, content: Any, failed: bool) -> None:
        kind = "custom_tool_call_output" if asked.id in custom else "function_call_output"
        messages.append({"type": kind, "call_id": asked.id, "output": content})

    return tell
