"""A loopback server that speaks as OpenAI (chat completions, responses) and Anthropic (messages), streaming or not.

`endpoint(script)` is where the model of a script answers: a client of Anthropic takes it as its base URL, one of OpenAI
with `/v1` behind it. Each script has an address of its own, so many can play at once. No client may go by a proxy.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, TypeAlias

from support.kits.stage import Asked, Script, Turn, call_id

Body: TypeAlias = dict[str, Any]


@dataclass(frozen=True)
class Dialect:
    """How an API is spoken: what a request holds of tools' results, a whole answer to it, and the same as a stream."""

    results: Callable[[Body], Iterator[str]]
    whole: Callable[[str, int, Turn], Body]
    events: Callable[[Body], Iterator[Body]]


def endpoint(script: Script) -> str:
    """Where the script's model answers."""
    server = _server()
    server.models.append(Model(script))
    return f"http://127.0.0.1:{server.server_port}/{len(server.models) - 1}"


@dataclass
class Model:
    """A script, and the results of tools that it was told: a request may hold only those that came since."""

    script: Script
    told: list[str] = field(default_factory=list[str])

    def next(self, results: Sequence[str], *, continued: bool) -> tuple[int, Turn]:
        self.told = [*self.told, *results] if continued else [*results]
        return self.script.next(self.told)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.models: list[Model] = []
        threading.Thread(target=self.serve_forever, daemon=True).start()


@cache
def _server() -> _Server:
    return _Server()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # an answer is one write: two of them would wait for each other's acknowledgement
    server: _Server

    def do_POST(self) -> None:
        request: Body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        _, model, path = self.path.split("?")[0].split("/", 2)
        dialect = DIALECTS[path]
        continued = "previous_response_id" in request or request.get("thread", {}).get("type") == "continue"
        number, turn = self.server.models[int(model)].next([*dialect.results(request)], continued=continued)
        whole = dialect.whole(request["model"], number, turn)
        if request.get("stream"):
            self._answer("text/event-stream", "".join(map(_event, dialect.events(whole))))
        else:
            self._answer("application/json", json.dumps(whole))

    def _answer(self, kind: str, text: str) -> None:
        body = text.encode()
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


def _event(body: Body) -> str:
    name = f"event: {body['type']}\n" if "type" in body else ""
    return f"{name}data: {json.dumps(body)}\n\n"


def _text(content: str | Sequence[Mapping[str, Any]] | None) -> str:
    """What stands in a content: a text, or the texts of its parts."""
    if content is None or isinstance(content, str):
        return content or ""
    return "".join(str(part.get("text", "")) for part in content)


def _arguments(asked: Asked) -> str:
    return json.dumps(asked.args) if asked.text is None else asked.text


# Chat completions.


def _chat_results(request: Body) -> Iterator[str]:
    return (_text(message["content"]) for message in request["messages"] if message["role"] == "tool")


def _chat(model: str, number: int, turn: Turn) -> Body:
    message: Body = {"role": "assistant", "content": turn if isinstance(turn, str) else None}
    if not isinstance(turn, str):
        message["tool_calls"] = [
            {
                "id": call_id(number, place),
                "type": "function",
                "function": {"name": asked.name, "arguments": _arguments(asked)},
            }
            for place, asked in enumerate(turn)
        ]
    reason = "stop" if isinstance(turn, str) else "tool_calls"
    return {
        "id": f"chatcmpl-{number}",
        "object": "chat.completion",
        "created": 1,
        "model": model,
        "choices": [{"index": 0, "message": message, "finish_reason": reason, "logprobs": None}],
        "usage": {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15},
    }


def _chat_events(whole: Body) -> Iterator[Body]:
    chunk = {key: whole[key] for key in ("id", "created", "model")} | {"object": "chat.completion.chunk"}
    choice = whole["choices"][0]
    delta = {**choice["message"]}
    if "tool_calls" in delta:
        delta["tool_calls"] = [{**call, "index": index} for index, call in enumerate(delta["tool_calls"])]
    yield {**chunk, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
    yield {**chunk, "choices": [{"index": 0, "delta": {}, "finish_reason": choice["finish_reason"]}]}
    yield {**chunk, "choices": [], "usage": whole["usage"]}


# Responses.


def _responses_results(request: Body) -> Iterator[str]:
    items = request["input"] if isinstance(request["input"], list) else []
    return (_text(item["output"]) for item in items if item.get("type") == "function_call_output")


def _response(model: str, number: int, turn: Turn) -> Body:
    output: list[Body]
    if isinstance(turn, str):
        part = {"type": "output_text", "text": turn, "annotations": [], "logprobs": []}
        output = [
            {"id": f"msg_{number}", "type": "message", "role": "assistant", "status": "completed", "content": [part]}
        ]
    else:
        output = [
            {
                "id": f"fc_{number}_{place}",
                "type": "function_call",
                "call_id": call_id(number, place),
                "name": asked.name,
                "arguments": _arguments(asked),
                "status": "completed",
            }
            for place, asked in enumerate(turn)
        ]
    return {
        "id": f"resp_{number}",
        "object": "response",
        "created_at": 1,
        "model": model,
        "status": "completed",
        "output": output,
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "metadata": {},
        "temperature": 1.0,
        "top_p": 1.0,
        "usage": {
            "input_tokens": 10,
            "output_tokens": 5,
            "total_tokens": 15,
            "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
            "output_tokens_details": {"reasoning_tokens": 0},
        },
    }


def _response_events(whole: Body) -> Iterator[Body]:
    begun = {**whole, "status": "in_progress", "output": [], "usage": None}
    events: list[Body] = [{"type": "response.created", "response": begun}]
    for index, item in enumerate(whole["output"]):
        events += _item_events(item, {"output_index": index, "item_id": item["id"]})
    events.append({"type": "response.completed", "response": whole})
    return ({**event, "sequence_number": number} for number, event in enumerate(events))


def _item_events(item: Body, place: Body) -> Iterator[Body]:
    index = {"output_index": place["output_index"]}
    if item["type"] == "function_call":
        yield {
            "type": "response.output_item.added",
            **index,
            "item": {**item, "arguments": "", "status": "in_progress"},
        }
        yield {"type": "response.function_call_arguments.delta", **place, "delta": item["arguments"]}
        done = {"name": item["name"], "arguments": item["arguments"]}
        yield {"type": "response.function_call_arguments.done", **place, **done}
    else:
        part = item["content"][0]
        of_part = {**place, "content_index": 0}
        yield {"type": "response.output_item.added", **index, "item": {**item, "content": [], "status": "in_progress"}}
        yield {"type": "response.content_part.added", **of_part, "part": {**part, "text": ""}}
        yield {"type": "response.output_text.delta", **of_part, "delta": part["text"], "logprobs": []}
        yield {"type": "response.output_text.done", **of_part, "text": part["text"], "logprobs": []}
        yield {"type": "response.content_part.done", **of_part, "part": part}
    yield {"type": "response.output_item.done", **index, "item": item}


# Messages.


def _message_results(request: Body) -> Iterator[str]:
    contents = [message["content"] for message in request["messages"] if isinstance(message["content"], list)]
    blocks = [block for content in contents for block in content if block["type"] == "tool_result"]
    # Whether it is an error is part of what the model is told.
    return (("error: " if block.get("is_error") else "") + _text(block.get("content")) for block in blocks)


def _message(model: str, number: int, turn: Turn) -> Body:
    content: list[Body]
    if isinstance(turn, str):
        content = [{"type": "text", "text": turn}]
    else:
        content = [_tool_use(asked, call_id(number, place)) for place, asked in enumerate(turn)]
    return {
        "id": f"msg_{number}",
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": content,
        "stop_reason": "end_turn" if isinstance(turn, str) else "tool_use",
        "stop_sequence": None,
        "usage": {"input_tokens": 10, "output_tokens": 5},
    }


def _tool_use(asked: Asked, id: str) -> Body:
    """A call; `browser.click` is that of the member `click` of the toolset `browser`."""
    toolset, _, name = asked.name.rpartition(".")
    member = {"toolset_name": toolset} if toolset else {}
    return {"type": "tool_use", "id": id, "name": name, "input": asked.args, **member}


def _message_events(whole: Body) -> Iterator[Body]:
    yield {"type": "message_start", "message": {**whole, "content": [], "stop_reason": None}}
    for index, block in enumerate(whole["content"]):
        is_text = block["type"] == "text"
        empty = {**block, **({"text": ""} if is_text else {"input": {}})}
        delta = (
            {"type": "text_delta", "text": block["text"]}
            if is_text
            else {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
        )
        yield {"type": "content_block_start", "index": index, "content_block": empty}
        yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    ending = {"stop_reason": whole["stop_reason"], "stop_sequence": None}
    yield {"type": "message_delta", "delta": ending, "usage": {"output_tokens": 5}}
    yield {"type": "message_stop"}


DIALECTS = {
    "v1/chat/completions": Dialect(_chat_results, _chat, _chat_events),
    "v1/responses": Dialect(_responses_results, _response, _response_events),
    "v1/messages": Dialect(_message_results, _message, _message_events),
}
