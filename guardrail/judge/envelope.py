"""The envelope of a result, opened once: what the tool said, and what its wrapping says about it.

No framework is imported: shapes are known by their fields. A value is opened layer by layer (an MCP
result holds a text, which is JSON, which is a wrapper around the answer), up to a bounded number of layers.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple, cast

from guardrail.judge.fields import Fields, fields_of, is_named, peek
from guardrail.judge.meanings import is_failure, is_failure_word
from guardrail.judge.texts import Unparsed, parse

_MOST_LAYERS: Final = 12


class Envelope(NamedTuple):
    """An opened result.

    `value` is the answer that is judged. `shown` is what pointers are read from: the answer as the tool's
    author sees it, without the transport's envelopes, with a wrapper that is part of the tool's own data.
    `failed` says that an envelope is marked as failed (`isError`, `status: "error"` of a message,
    `FunctionError`), `status` is the transport's HTTP status if it tells of a failure. `is_json` is false for a
    text that is no JSON, `is_whole` for one that is too long to be read.
    """

    value: object
    shown: object
    failed: bool = False
    status: int | None = None
    is_json: bool = True
    is_whole: bool = True


class _Layer(NamedTuple):
    """One layer taken off: what was inside, and what the layer said."""

    inside: object
    failed: bool = False
    status: int | None = None
    own_data: bool = False


def open_envelope(value: object, *, parsing: bool = True) -> Envelope:
    """Take off every layer around a tool's answer; with `parsing` off, texts stay texts.

    Never raises for plain data, and consumes nothing: generators, streams and bodies that were not read
    stay as they are.
    """
    failed = False
    status: int | None = None
    shown: object = _NOTHING_YET
    unread: Unparsed | None = None
    for _ in range(_MOST_LAYERS):
        layer = _text_layer(value) if isinstance(value, str) and parsing else _layer(value)
        if not isinstance(layer, _Layer):
            unread = layer
            break
        if layer.own_data and shown is _NOTHING_YET and not _is_document(layer.inside):
            shown = value
        failed = failed or layer.failed
        status = status or layer.status
        value = layer.inside
    return Envelope(
        value,
        value if shown is _NOTHING_YET else shown,
        failed,
        status,
        is_json=unread is None and (parsing or not isinstance(value, str)),
        is_whole=unread is not Unparsed.TOO_LONG,
    )


_NOTHING_YET: Final = object()


def _text_layer(value: str) -> _Layer | Unparsed:
    found = parse(value)
    return found if isinstance(found, Unparsed) else _Layer(found)


def _is_document(value: object) -> bool:
    """Whether a payload is JSON that is text, so that no pointer could lead into it from outside."""
    return isinstance(value, str) and value.lstrip()[:1] in ("{", "[")


def _layer(value: object) -> _Layer | None:
    if isinstance(value, dict):
        return _mapping_layer(cast("Fields", value))
    if isinstance(value, list | tuple) and not is_named(value):
        return _blocks_layer(cast("Sequence[object]", value))
    if value is None or isinstance(value, bool | int | float | str | BaseException):
        return None
    if isinstance(value, bytes | bytearray):
        return _bytes_layer(value)
    return _object_layer(value)


def _bytes_layer(value: bytes | bytearray) -> _Layer | None:
    try:
        return _Layer(value.decode())
    except UnicodeDecodeError:
        return None


# --- mappings

_STRUCTURED: Final = ("structuredContent", "structured_content")
_FLAGS: Final = ("isError", "is_error")
_MESSAGE_IDS: Final = ("tool_call_id", "tool_use_id", "toolUseId", "call_id")
_MESSAGE_KEYS: Final = frozenset(
    ["tool_call_id", "tool_use_id", "toolUseId", "call_id", "isError", "is_error", "content", "output", "type", "role", "name", "id", "status", "artifact", "additional_kwargs", "response_metadata", "tool_name", "cache_control"]
)
_STATUS_KEYS: Final = ("status_code", "statusCode", "StatusCode", "status")
_BODY_KEYS: Final = ("body", "Payload", "json", "text", "content", "data", "response")
_PAYLOAD_KEYS: Final = ("return_value", "output", "result", "response")
_BESIDE_PAYLOAD: Final = frozenset(
    ["success", "ok", "status", "message", "msg", "error", "errors", "code", "meta", "metadata", "timestamp", "request_id", "requestId", "duration", "duration_ms", "warnings", "tool", "tool_name"]
)
_FINE: Final = frozenset(["ok", "success", "succeeded", "successful", "complete", "completed", "done"])
OPENERS: Final = frozenset(
    {*_STRUCTURED, *_FLAGS, *_MESSAGE_IDS, *_STATUS_KEYS[:3], *_PAYLOAD_KEYS}
    | set(["headers", "body", "FunctionError", "toolResult", "functionResponse", "messages", "update", "role", "d"])
)


MANY: Final = 64
"""From how many fields on it is cheaper to look for the known names one by one."""


def has_any(value: Fields, names: frozenset[str]) -> bool:
    """Whether a mapping has one of the names; the cost does not grow with the mapping."""
    if len(value) <= MANY:
        return not names.isdisjoint(value)
    return any(name in value for name in names)


def http_status(value: Fields, places: Sequence[str]) -> int | None:
    """The first of these fields that can be an HTTP status."""
    for place in places:
        status = value.get(place)
        if isinstance(status, int) and 100 <= status <= 599:
            return status
    return None


def _mapping_layer(value: Fields) -> _Layer | None:
    if not has_any(value, OPENERS):
        return None
    return (
        _mcp_layer(value)
        or _message_layer(value)
        or _holder_layer(value)
        or _transport_layer(value)
        or _rpc_layer(value)
        or _payload_layer(value)
    )


def _marked(value: Fields) -> bool:
    return any(value.get(flag) is True for flag in _FLAGS)


def _mcp_layer(value: Fields) -> _Layer | None:
    """MCP 1.x and 2.x results: the structured part first, else the content blocks."""
    structured = next((found for key in _STRUCTURED if (found := value.get(key)) is not None), None)
    if structured is not None:
        inside = fields_of(structured)  # a server wraps what is no object as {"result": ...}
        return _Layer(inside["result"] if inside and list(inside) == ["result"] else structured, _marked(value))
    speaks = any(isinstance(value.get(flag), bool) for flag in _FLAGS) or any(key in value for key in _STRUCTURED)
    return _Layer(_said(value["content"]), _marked(value)) if speaks and "content" in value else None


def _message_layer(value: Fields) -> _Layer | None:
    """Tool messages and tool results of chat interfaces and frameworks."""
    if not (any(key in value for key in _MESSAGE_IDS) or value.get("role") in ("tool", "function")):
        return None
    place = "content" if "content" in value else "output"
    if place not in value or not value.keys() <= _MESSAGE_KEYS:
        return None
    return _Layer(_said(value[place]), value.get("status") == "error" or _marked(value))


def _holder_layer(value: Fields) -> _Layer | None:
    """What holds one message: a block of a conversation, an update of a graph's state."""
    if "update" in value and "goto" in value:
        return _Layer(value["update"])
    if len(value) != 1:
        return None
    [(name, held)] = value.items()
    if name in ("toolResult", "functionResponse", "d"):
        return _Layer(held, own_data=name == "d")
    if name == "messages" and isinstance(held, list) and held:
        last = cast("list[object]", held)[-1]
        return _Layer(last) if "tool_call_id" in (fields_of(last) or ()) else None
    return None


def _transport_layer(value: Fields) -> _Layer | None:
    """HTTP responses and function invocations as mappings: a status, and a body."""
    failed = bool(value.get("FunctionError"))
    status = http_status(value, _STATUS_KEYS if "headers" in value or "body" in value else _STATUS_KEYS[:3])
    place = next((key for key in _BODY_KEYS if key in value), None)
    if place is None or (status is None and not failed):
        return None
    return _Layer(value[place], failed, status if status and status >= 400 else None)


def _rpc_layer(value: Fields) -> _Layer | None:
    if "jsonrpc" not in value or "result" not in value or is_failure(value.get("error")):
        return None
    return _Layer(value["result"])


def _payload_layer(value: Fields) -> _Layer | None:
    """Wrappers that say that all went well, or nothing, around one payload."""
    place = next((key for key in _PAYLOAD_KEYS if key in value), None)
    if place is None or not all(key == place or key in _BESIDE_PAYLOAD or key == "kind" for key in value):
        return None
    if not _is_fine(value) or (len(value) > 1 and is_failure_word(value[place])):
        return None
    return _Layer(value[place], own_data=True)


def _is_fine(value: Fields) -> bool:
    status = value.get("status")
    return (
        (
            status is None
            or (isinstance(status, str) and status.lower() in _FINE)
            or http_status(value, ("status",)) in (200, 201)
        )
        and value.get("success") is not False
        and value.get("ok") is not False
        and not is_failure(value.get("error"))
        and not is_failure(value.get("errors"))
    )


# --- content blocks

_BLOCK_KEYS: Final = frozenset(["type", "text", "annotations", "meta", "_meta", "id", "index", "extras", "cache_control", "citations"])
_MOST_BLOCKS: Final = 10_000


def _blocks_layer(value: Sequence[object]) -> _Layer | None:
    """A list that is nothing but text blocks, or one message."""
    if not value or isinstance(value[0], str | int | float | list | None):
        return None
    first = fields_of(value[0]) or {}
    if len(value) == 1 and "tool_call_id" in first:
        return _Layer(value[0])
    if first.get("type") != "text" or not all(_is_text_block(block) for block in value[:_MOST_BLOCKS]):
        return None
    return _Layer(_said(value))


def _is_text_block(block: object) -> bool:
    found = fields_of(block)
    return found is not None and isinstance(found.get("text"), str) and found.keys() <= _BLOCK_KEYS


def _said(content: object) -> object:
    """What content blocks say: nothing, one answer, a list of answers, or one text."""
    if not isinstance(content, list | tuple):
        return content
    blocks = cast("Sequence[object]", content)
    parts = [part for block in blocks[:_MOST_BLOCKS] if (part := _part(block)) is not None]
    if len(parts) < 2:
        return parts[0] if parts else (list(blocks) or None)
    answers = [parse(part) if isinstance(part, str) else part for part in parts]
    if all(isinstance(answer, dict | list) for answer in answers):
        return answers
    return "\n".join(part if isinstance(part, str) else repr(type(part)) for part in parts)


def _part(block: object) -> object:
    """The text of a block, the value of a JSON block, the text of an embedded resource; None for a picture."""
    if isinstance(block, str):
        return block
    found = fields_of(block) or {}
    if isinstance(found.get("text"), str):
        return found["text"]
    return (
        found.get("json") if found.keys() <= {"json", "type"} else (fields_of(found.get("resource")) or {}).get("text")
    )


# --- objects

_BODIES: Final = ("_content", "_body")
_UNREAD: Final = frozenset({*_BODIES, "stream", "raw", "fp", "_fp"})


def _object_layer(value: object) -> _Layer | None:
    if peek(type(value), "__pydantic_root_model__") is True:
        return _Layer(peek(value, "root"))
    own = peek(value, "__dict__")
    names = cast("Fields", own) if isinstance(own, dict) else {}
    found = fields_of(value)
    if found is None:
        return None
    status = http_status(found, ("status_code", "status"))
    if status is not None and (any(name in names for name in _BODIES) or callable(peek(value, "json"))):
        return _Layer(_body(value, names), status=status if status >= 400 else None)
    return _Layer(found)


def _body(response: object, names: Fields) -> object:
    """The body of an HTTP response if it has been read; a stream is left alone."""
    read = next((body for name in _BODIES if isinstance(body := names.get(name), bytes | str)), None)
    if read is not None:
        return read
    if not _UNREAD.isdisjoint(names) or inspect.iscoroutinefunction(peek(response, "json")):
        return _NOTHING_YET
    try:
        return cast("Callable[[], object]", peek(response, "json"))()
    except Exception:  # noqa: BLE001  # a body that is no JSON raises one of many errors: then the text is the body
        return peek(response, "text") or _NOTHING_YET
