"""The envelope of a result, opened once: what the tool said, and what its wrapping says about it.

No framework is imported: shapes are known by their fields. A value is opened layer by layer (an MCP
result holds a text, which is JSON, which is a wrapper around the answer), up to a bounded number of layers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from guardrail.judge.blocks import said, text_of_blocks
from guardrail.judge.fields import Fields, fields_of, has_any, http_status, is_list, is_mapping, listed, peek
from guardrail.judge.meanings import FINE, is_failure, is_failure_word
from guardrail.judge.responses import body_of, is_response
from guardrail.judge.texts import Unparsed, parse

_MOST_LAYERS: Final = 12
_MOST_MESSAGES: Final = 100


class Envelope(NamedTuple):
    """An opened result.

    `value` is the answer that is judged. `shown` is what pointers are read from: the answer as the tool's
    author sees it, without the transport's envelopes, with a wrapper that is part of the tool's own data.
    `failed` says that an envelope is marked as failed (`isError`, `status: "error"` of a message,
    `FunctionError`), `status` is the transport's HTTP status if it tells of a failure. `is_json` is false for a
    text that is no JSON, `is_whole` for one that is too long to be read; `is_plain` is true for what was read
    from JSON and so holds nothing but plain values.
    """

    value: object
    shown: object
    failed: bool = False
    status: int | None = None
    is_json: bool = True
    is_whole: bool = True
    is_plain: bool = False


class _Layer(NamedTuple):
    """One layer taken off: what was inside, and what the layer said."""

    inside: object
    failed: bool = False
    status: int | None = None
    own_data: bool = False
    parsed: bool = False


def open_envelope(value: object, *, parsing: bool = True) -> Envelope:
    """Take off every layer around a tool's answer; with `parsing` off, texts stay texts.

    Consumes nothing: generators, streams and bodies that were not read stay as they are. Raises only what
    a foreign value's own methods raise.
    """
    failed, was_parsed, is_plain = False, False, False
    status: int | None = None
    shown: list[object] = []
    unread: Unparsed | None = None
    for _ in range(_MOST_LAYERS):
        layer = _text_layer(value) if parsing and isinstance(value, str) else _layer(value)
        if not isinstance(layer, _Layer):
            unread = layer
            break
        if (layer.own_data and not _is_document(layer.inside)) or (layer.parsed and _is_number(layer.inside)):
            shown.append(value)
        failed = failed or layer.failed
        status = status or layer.status
        value, was_parsed = layer.inside, layer.parsed
        is_plain = is_plain or layer.parsed
    is_json = unread is not Unparsed.NOT_JSON or was_parsed
    seen = shown[0] if shown else value
    return Envelope(value, seen, failed, status, is_json, unread is not Unparsed.TOO_LONG, is_plain and not shown)


def _text_layer(value: str) -> _Layer | Unparsed:
    found = parse(value)
    return found if isinstance(found, Unparsed) else _Layer(found, parsed=True)


def _is_document(value: object) -> bool:
    """Whether a payload is JSON that is text, so that no pointer could lead into it from outside."""
    return isinstance(value, str) and value.lstrip()[:1] in ("{", "[")


def _is_number(value: object) -> bool:
    """Whether a text was read as a number; as it may be an identifier, it is shown as the text that it was."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def _layer(value: object) -> _Layer | None:
    if is_mapping(value):
        return _mapping_layer(value)
    if is_list(value):
        return _list_layer(value)
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


def _object_layer(value: object) -> _Layer | None:
    if peek(type(value), "__pydantic_root_model__") is True:
        return _Layer(peek(value, "root"))
    found = fields_of(value)
    if found is None:
        return None
    status = http_status(found, ("status_code", "status"))
    if status is None or not is_response(value):
        return _Layer(found)
    return _Layer(body_of(value), status=status if status >= 400 else None)


def _list_layer(value: Sequence[object]) -> _Layer | None:
    """A list that is nothing but text blocks, or messages, or updates of a graph's state."""
    if value and all(_is_message(item) for item in value[:_MOST_MESSAGES]):
        opened = [open_envelope(item) for item in value[:_MOST_MESSAGES]]
        if len(opened) == 1:
            return _Layer(value[0])
        return _Layer([one.value for one in opened], failed=any(one.failed for one in opened))
    text = text_of_blocks(value)
    return None if text is None else _Layer(text)


def _is_message(item: object) -> bool:
    found = fields_of(item) or ()
    return "tool_call_id" in found or ("update" in found and "goto" in found)


# --- mappings

_STRUCTURED: Final = ("structuredContent", "structured_content")
_FLAGS: Final = ("isError", "is_error")
_MESSAGE_IDS: Final = ("tool_call_id", "tool_use_id", "toolUseId", "call_id")
_MESSAGE_KEYS: Final = frozenset(
    listed(
        "tool_call_id tool_use_id toolUseId call_id isError is_error content output type role name id status artifact "
        "additional_kwargs response_metadata tool_name cache_control"
    )
)
_STATUSES: Final = ("status_code", "statusCode", "StatusCode")
_BODIES: Final = ("body", "Payload", "json", "text", "content", "data", "response")
_PAYLOADS: Final = ("return_value", "output", "result", "response")
_BESIDE_PAYLOAD: Final = frozenset(
    listed(
        "success ok status message msg error errors code meta metadata timestamp request_id requestId duration "
        "duration_ms warnings tool tool_name"
    )
)
_BESIDE_RETURN_VALUE: Final = _BESIDE_PAYLOAD | {"content", "kind", "tools"}

_OTHERS: Final = listed("headers body FunctionError toolResult functionResponse messages update role d text content")
OPENERS: Final = frozenset((*_STRUCTURED, *_FLAGS, *_MESSAGE_IDS, *_STATUSES, *_PAYLOADS, *_OTHERS))
"""The fields of which every mapping that is an envelope has one."""


def _mapping_layer(value: Fields) -> _Layer | None:
    if not has_any(value, OPENERS):
        return None
    return (
        _block_layer(value)
        or _mcp_layer(value)
        or _message_layer(value)
        or _holder_layer(value)
        or _transport_layer(value)
        or _rpc_layer(value)
        or _payload_layer(value)
    )


def _block_layer(value: Fields) -> _Layer | None:
    """One text block, without a list around it, or a list of them with nothing beside."""
    text = text_of_blocks([value] if "text" in value else held if is_list(held := value.get("content")) else ())
    return None if text is None or not ("text" in value or len(value) == 1) else _Layer(text)


def _is_marked(value: Fields) -> bool:
    return any(value.get(flag) is True for flag in _FLAGS)


def _mcp_layer(value: Fields) -> _Layer | None:
    """MCP 1.x and 2.x results: the structured part first, else the content blocks."""
    structured = next((found for name in _STRUCTURED if (found := value.get(name)) is not None), None)
    if structured is not None:
        return _Layer(_unwrapped(structured), _is_marked(value))
    speaks = any(isinstance(value.get(flag), bool) for flag in _FLAGS) or any(name in value for name in _STRUCTURED)
    return _Layer(said(value["content"]), _is_marked(value)) if speaks and "content" in value else None


def _unwrapped(structured: object) -> object:
    """Structured content without the {"result": ...} that servers put around what is no object."""
    if is_mapping(structured) and list(structured) == ["result"] and not is_mapping(structured["result"]):
        return structured["result"]
    return structured


def _message_layer(value: Fields) -> _Layer | None:
    """Tool messages and tool results of chat interfaces and frameworks."""
    if not (any(name in value for name in _MESSAGE_IDS) or value.get("role") in ("tool", "function")):
        return None
    place = "content" if "content" in value else "output"
    if place not in value or not value.keys() <= _MESSAGE_KEYS:
        return None
    return _Layer(said(value[place]), value.get("status") == "error" or _is_marked(value))


def _holder_layer(value: Fields) -> _Layer | None:
    """What holds one message or answer: a block of a conversation, an update of a graph's state."""
    if "update" in value and "goto" in value:
        return _Layer(value["update"])
    if len(value) != 1:
        return None
    [(name, held)] = value.items()
    if name in ("toolResult", "functionResponse", "d"):
        return _Layer(held, own_data=name == "d")
    if name == "messages" and is_list(held) and held and "tool_call_id" in (fields_of(held[-1]) or ()):
        return _Layer(held[-1])
    return None


def _transport_layer(value: Fields) -> _Layer | None:
    """HTTP responses and function invocations as mappings: a status, and a body."""
    if value.get("FunctionError"):
        return _Layer(value.get("Payload"), failed=True)
    place = next((name for name in _BODIES if name in value), None)
    is_http = "headers" in value or "body" in value
    status = http_status(value, (*_STATUSES, "status") if is_http else _STATUSES)
    if place is None or status is None:
        return None
    return _Layer(value[place], status=status if status >= 400 else None)


def _rpc_layer(value: Fields) -> _Layer | None:
    if "jsonrpc" not in value or "result" not in value or is_failure(value.get("error")):
        return None
    return _Layer(value["result"])


def _payload_layer(value: Fields) -> _Layer | None:
    """Wrappers that say that all went well, or nothing, around one payload."""
    place = next((name for name in _PAYLOADS if name in value), None)
    beside = _BESIDE_RETURN_VALUE if place == "return_value" else _BESIDE_PAYLOAD
    if place is None or not value.keys() - {place} <= beside or not _is_fine(value):
        return None
    is_status = len(value) > 1 and is_failure_word(value[place])
    return None if is_status else _Layer(value[place], own_data=True)


def _is_fine(value: Fields) -> bool:
    status = value.get("status")
    is_good = status is None or status in (200, 201) or (isinstance(status, str) and status.lower() in FINE)
    denied = value.get("success") is False or value.get("ok") is False
    return is_good and not denied and not is_failure(value.get("error")) and not is_failure(value.get("errors"))
