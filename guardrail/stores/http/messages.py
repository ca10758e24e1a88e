"""What an HTTP server answered, and the JSON document in it: bounded, and read strictly."""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Final, cast

from guardrail.errors import StoreError

MOST_BYTES: Final = 16 * 2**20
"""How large an answer may be, before and after it is decompressed."""

DEEPEST: Final = 100
"""How deep a value may be nested; what keeps and compares values is not made for more."""

MOST_DIGITS: Final = 400
"""How many digits a number may have, written out."""

_NEEDED: Final = frozenset({"content-encoding", "etag", "link", "location", "retry-after"})
_GZIP: Final = 16 + zlib.MAX_WBITS
_STRONG: Final = re.compile(r'"[\x21\x23-\x7e]*"')


@dataclass(frozen=True, slots=True)
class Message:
    """An answer: its status, those of its headers that are needed, by name in lower case, and its body as it came."""

    status: int
    headers: Mapping[str, str]
    body: bytes = b""

    @property
    def tag(self) -> str | None:
        """Its entity tag, if it is a strong one.

        A weak one does not tell all changes: many are made of a time in whole seconds, and a run is quick.
        """
        tag = self.headers.get("etag", "")
        return tag if _STRONG.fullmatch(tag) else None


class Intake:
    """Takes an answer piece by piece."""

    def __init__(self, status: int, headers: Iterable[tuple[bytes, bytes]]) -> None:
        self._status = status
        self._headers: dict[str, str] = {}
        self._body = bytearray()
        for raw, value in headers:
            name, text = raw.decode("latin-1").lower(), value.decode("latin-1")
            if name in _NEEDED:
                self._headers[name] = f"{self._headers[name]}, {text}" if name in self._headers else text

    def take(self, piece: bytes) -> bool:
        """Take a piece of the body; false when no more is needed. Raises `StoreError` when it is too large."""
        self._body += piece
        if len(self._body) > MOST_BYTES:
            raise too_large()
        return self._status == 200 or len(self._body) < 2**16

    @property
    def message(self) -> Message:
        """The whole answer."""
        return Message(self._status, self._headers, bytes(self._body) if self._status == 200 else b"")


def too_large() -> StoreError:
    """That an answer is too large."""
    return StoreError(f"it answers more than {MOST_BYTES // 2**20} MiB; narrow the request, or ask for pages")


def document(message: Message) -> object:
    """The JSON document of an answer: numbers exactly, no name twice in one object. Raises `StoreError`."""
    try:
        return cast(
            "object",
            json.loads(
                _content(message).decode("utf-8-sig"),
                parse_float=_decimal,
                parse_int=_integer,
                parse_constant=_refused,
                # Functions of Python's, between which another thread gets its turn.
                object_pairs_hook=_object,
            ),
        )
    except UnicodeDecodeError as error:
        raise StoreError("what it answers is not UTF-8") from error
    except ValueError as error:
        why = f": {error}" if isinstance(error, _Strange) else ""
        raise StoreError(f"what it answers is no JSON{why}") from error
    except RecursionError as error:
        raise StoreError("what it answers is nested too deeply") from error


def check_depth(value: object, left: int = DEEPEST) -> None:
    """Refuse a value that is nested too deeply. Raises `StoreError`."""
    if not isinstance(value, dict | list):
        return
    if left == 0:
        raise StoreError(f"what it answers is nested more than {DEEPEST} deep")
    for inner in cast("Iterable[object]", value.values() if isinstance(value, dict) else value):
        check_depth(inner, left - 1)


def _content(message: Message) -> bytes:
    encoding = message.headers.get("content-encoding", "identity").strip().lower()
    match encoding:
        case "identity" | "":
            return message.body
        case "gzip" | "x-gzip":
            return _unzipped(message.body)
        case _:
            raise StoreError("it answers in an encoding that was not asked for; only gzip is")


def _unzipped(body: bytes) -> bytes:
    unzip = zlib.decompressobj(_GZIP)
    try:
        content = unzip.decompress(body, MOST_BYTES + 1)
    except zlib.error as error:
        raise StoreError("what it answers is no gzip, though it says so") from error
    if len(content) > MOST_BYTES:
        raise too_large()
    if not unzip.eof or unzip.unused_data:
        raise StoreError("what it answers is not one whole gzip file")
    return content


class _Strange(ValueError):
    """Something that JSON readers do not agree on; the text says what, without what it is."""


def _integer(text: str) -> int:
    if len(text) > MOST_DIGITS:
        raise _Strange(f"it holds a number of more than {MOST_DIGITS} digits")
    return int(text)


def _decimal(text: str) -> Decimal:
    number = Decimal(text) if len(text) <= MOST_DIGITS else None
    if number is None or abs(number.adjusted()) > MOST_DIGITS:
        raise _Strange(f"it holds a number of more than {MOST_DIGITS} digits")
    return number


def _refused(text: str) -> object:
    raise _Strange(f"it holds {text}")


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise _Strange("it gives a name twice in one object")
    return found
