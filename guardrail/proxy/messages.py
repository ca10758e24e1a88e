"""Messages of JSON-RPC: the bytes as they came, and what they say."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, cast

Id: TypeAlias = str | int
"""What names a request."""

Body: TypeAlias = Mapping[str, Any]

LONGEST: Final = 64 * 1024 * 1024
"""How many bytes one message may have."""

PARSE_ERROR: Final = -32700
INVALID_REQUEST: Final = -32600
METHOD_NOT_FOUND: Final = -32601
INVALID_PARAMS: Final = -32602
INTERNAL_ERROR: Final = -32603
CONNECTION_LOST: Final = -32000
"""The code that the official clients use themselves when a server has gone."""

GUARD_FAILED: Final = "the guard itself failed, and let nothing through; its log says why"

_VERSION: Final = "io.modelcontextprotocol/protocolVersion"
_NOT_EXECUTED: Final = frozenset({PARSE_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND, INVALID_PARAMS})


class Malformed(Exception):
    """A message that cannot be passed on. `code` is one of JSON-RPC's, `id` the request's where it is known."""

    def __init__(self, code: int, text: str, id: Id | None = None) -> None:
        self.code = code
        self.id = id
        super().__init__(text)


class TurnedDown(ValueError):
    """The server has answered a call with an error of the protocol that says that it was not carried out."""


class ServerError(Exception):
    """The server has answered a call with any other error: it is not known how far the call came."""


@dataclass(frozen=True, slots=True)
class Message:
    """One message. `raw` is its JSON text without a line break, `body` what it says."""

    raw: bytes
    body: Body

    @property
    def method(self) -> str | None:
        """The method of a request or a notification; None for an answer."""
        return self.body.get("method")

    @property
    def id(self) -> Id | None:
        """What names the request, or the request that is answered; None for a notification."""
        return self.body.get("id")

    @property
    def key(self) -> str:
        """The id as a key: 1 and "1" are two."""
        return repr(self.id)

    @property
    def is_request(self) -> bool:
        """Whether it wants an answer."""
        return self.method is not None and "id" in self.body

    @property
    def is_answer(self) -> bool:
        """Whether it answers a request."""
        return self.method is None and self.id is not None

    @property
    def is_stateless(self) -> bool:
        """Whether it is of a protocol without sessions (2026-07-28 and later), in which each request says its version."""
        return _VERSION in self.meta

    @property
    def params(self) -> Body:
        """The parameters; none are an empty mapping."""
        return mapping(self.body.get("params"))

    @property
    def meta(self) -> Body:
        """What `_meta` of the parameters says."""
        return mapping(self.params.get("_meta"))

    @property
    def result(self) -> Body:
        """The result of an answer; an error has none."""
        return mapping(self.body.get("result"))

    @property
    def failure(self) -> str:
        """What an answer says went wrong: the text of an error, or of a failed result; "" where all went well."""
        if "error" in self.body:
            return str(mapping(self.body["error"]).get("message") or "")
        content = self.result.get("content")
        if self.result.get("isError") is not True or not isinstance(content, list) or not content:
            return ""
        return str(mapping(cast("list[object]", content)[0]).get("text") or "")

    @property
    def error(self) -> TurnedDown | ServerError | None:
        """The error of an answer as an exception, by what its code says of the call."""
        error = self.body.get("error")
        if error is None:
            return None
        found = mapping(error)
        kind = TurnedDown if found.get("code") in _NOT_EXECUTED else ServerError
        return kind(str(found.get("message") or error))


def read(raw: bytes) -> Message | list[Message]:
    """A message of the server's, or several in a batch; raises `Malformed`."""
    try:
        found = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise Malformed(PARSE_ERROR, f"this is not JSON: {error}") from error
    if isinstance(found, list):
        return [write(_object(part)) for part in cast("list[object]", found)]
    return Message(raw, _object(found))


def read_strictly(raw: bytes) -> Message:
    """A message of the client's; raises `Malformed` for all that two readers may understand differently.

    The server reads the same bytes: what it takes for a call must not have been something else here.
    """
    try:
        found = json.loads(raw.decode(), object_pairs_hook=_unique, parse_constant=_refused)
    except (ValueError, RecursionError) as error:
        raise Malformed(PARSE_ERROR, f"this is not JSON: {error}") from error
    if isinstance(found, list):
        raise Malformed(INVALID_REQUEST, "batches are not part of MCP any more: send the messages one by one")
    message = Message(raw, _object(found))
    id = message.body.get("id")
    if "id" in message.body and (not isinstance(id, str | int) or isinstance(id, bool)):
        raise Malformed(INVALID_REQUEST, "the id must be a text or an integer")
    if message.method is None and not ("id" in message.body and message.body.keys() & {"result", "error"}):
        raise Malformed(INVALID_REQUEST, "this is neither a request, nor a notification, nor an answer", id)
    if message.method is not None and not isinstance(cast("object", message.method), str):
        raise Malformed(INVALID_REQUEST, "the method must be a text", id)
    if message.method == "tools/call" and not message.is_request:  # which some servers carry out all the same
        raise Malformed(INVALID_REQUEST, "a call wants an answer: give it an id")
    return message


def write(body: Body) -> Message:
    """The message that says this."""
    return Message(json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass"), body)


def answer(id: Id | None, result: Body) -> Message:
    """The answer to a request."""
    return write({"jsonrpc": "2.0", "id": id, "result": result})


def failure(id: Id | None, code: int, text: str) -> Message:
    """The answer to a request that failed; without an id, to what could not be read."""
    return write({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": text}})


def tool_failure(request: Message, text: str, meta: Body) -> Message:
    """The answer to a call that was not carried out, or whose result is withheld: a result that the model reads."""
    kind = {"resultType": "complete"} if request.is_stateless else {}  # since 2026-07-28, each result says its kind
    content = [{"type": "text", "text": text}]
    return answer(request.id, {**kind, "content": content, "isError": True, "_meta": meta})


def _object(found: object) -> Body:
    if isinstance(found, dict):
        return cast("Body", found)
    raise Malformed(INVALID_REQUEST, "a message is an object")


def mapping(value: object) -> Body:
    """A value that is an object; an empty one for any other."""
    return cast("Body", value) if isinstance(value, dict) else {}


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name stands twice in one object")
    return found


def _refused(constant: str) -> object:
    raise ValueError(f"{constant} is no number of JSON")
