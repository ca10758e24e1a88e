"""Redacted pictures of values for records and traces: bounded, plain, taken without touching the value.

A snapshot is taken before a call and only the snapshot is used afterwards, so what a tool does to its
arguments cannot reach a record. Nothing here imports OpenTelemetry, and nothing here raises.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from contextlib import suppress
from functools import lru_cache
from math import isfinite
from typing import Final, TypeAlias, cast

from guardrail.telemetry.canonical import canonical, digest
from guardrail.telemetry.members import Members, exact, members, printed, type_name
from guardrail.telemetry.secrecy import LONGEST, NO_NAMES, REDACTED, cut, error_text, is_secret, redact_text, sound

__all__ = [
    "LONGEST",
    "REDACTED",
    "Plain",
    "canonical",
    "digest",
    "error_text",
    "hidden_values",
    "is_secret",
    "printable",
    "redact_text",
    "snapshot",
    "snapshot_text",
]

Plain: TypeAlias = "bool | int | float | str | list[Plain] | dict[str, Plain] | None"
"""A value that is JSON as it stands: finite numbers, integers of 64 bits, texts without lone surrogates."""

DEEPEST: Final = 12
LONGEST_PART: Final = 1024
"""How many characters a text inside a container keeps."""

_LARGEST: Final = 2**63
_TRUNCATED: Final = "[truncated]"
_quoted = json.encoder.encode_basestring
_encode = json.JSONEncoder(ensure_ascii=False, check_circular=False).encode


def snapshot(value: object, redact: Collection[str] = NO_NAMES) -> Plain:
    """A bounded, redacted copy of a value in JSON's own types.

    `redact` lists field names, at any depth, whose values become "[redacted]"; so do those of fields whose names
    look like secrets, unless they are null or boolean. Texts are redacted as by `redact_text`. Containers,
    dataclasses and models are copied field by field; what is anything else (a file, a lock, a generator) becomes
    its class name, as in "<TextIOWrapper>", and is not touched. About 4 KiB of text are kept in all, 1 KiB of one
    text inside a container, and 12 levels; what was cut is marked. Never raises.
    """
    flat = _flat(value, redact)
    if flat is not None:
        return flat
    with suppress(Exception):  # whatever a value of the user's can still raise, such as MemoryError
        return _Copy(redact).of(value, (), LONGEST)
    return "[unreadable]"


def snapshot_text(value: object, redact: Collection[str] = NO_NAMES) -> str:
    """The snapshot of a value as JSON text."""
    return _encode(snapshot(value, redact))


def _flat(value: object, redact: Collection[str]) -> Plain:
    """The copy of an ordinary small dictionary of short plain values; None when it is anything else."""
    if type(value) is not dict or len(cast("dict[object, object]", value)) > 16:
        return None
    copy: dict[str, Plain] = {}
    for name, item in list(cast("dict[object, object]", value).items()):
        if type(name) is not str or len(name) > 64 or not _ordinary_name(name) or name in redact:
            return None
        if item is not None and not _ordinary(item):
            return None
        copy[name] = cast("Plain", item)
    return copy


@lru_cache(maxsize=4096)
def _ordinary_name(name: str) -> bool:
    return name.isidentifier() and name.isascii() and not is_secret(name) and redact_text(name) == name


def _ordinary(item: object) -> bool:
    """Whether a value can be copied as it stands: a number, a boolean, a short word."""
    kind = type(item)
    if kind is str:
        text = cast("str", item)
        return len(text) < 16 and text.isalnum() and text.isascii()
    return (kind is int and -_LARGEST <= cast("int", item) < _LARGEST) or kind is bool


class _Copy:
    """One snapshot in the making: what may still be written of the 4 KiB."""

    __slots__ = ("_left", "_redact")

    def __init__(self, redact: Collection[str]) -> None:
        self._redact = redact
        self._left = LONGEST

    def of(self, value: object, path: tuple[int, ...], longest: int) -> Plain:
        """The copy of one value; `path` holds the identities of the containers around it."""
        # By the type, not by isinstance: an object may claim to be of any class.
        value = exact(value)
        kind = type(value)
        if kind is str:
            return self._text(cast("str", value), longest)
        if value is None or kind is bool:
            self._left -= 5
            return cast("bool | None", value)
        if kind is int or kind is float:
            return self._number(cast("float", value))
        opened = members(value, max(self._left, 0) // 2 + 1)
        return self._text(self._closed(value), longest) if opened is None else self._container(value, opened, path)

    def _closed(self, value: object) -> str:
        kind = type(value)
        if issubclass(kind, (bytes, bytearray)):
            return f"[{len(cast('bytes', value))} bytes]"
        if issubclass(kind, BaseException):
            return error_text(cast("BaseException", value), self._redact)
        return printed(value) or type_name(value)

    def _number(self, value: float) -> Plain:
        if isinstance(value, float):
            self._left -= 20
            return value if isfinite(value) else {"inf": "Infinity", "-inf": "-Infinity"}.get(str(value), "NaN")
        if -_LARGEST <= value < _LARGEST:
            self._left -= len(str(value)) + 2
            return value
        # Python refuses to write out integers of more than 4,300 digits.
        return self._text(
            str(value) if value.bit_length() < 4096 else f"[integer of {value.bit_length()} bits]", LONGEST
        )

    def _text(self, text: str, longest: int) -> str:
        room = self._left if self._left > 0 else 0
        shown = sound(redact_text(text, self._redact, longest=longest if longest < room else room))
        size = len(_quoted(shown))
        if size > room + 32:
            # Escapes take up to six characters for one.
            shown = cut(shown, room // 6)
            size = len(_quoted(shown))
        self._left -= size + 2
        return shown

    def _container(self, value: object, opened: Members, path: tuple[int, ...]) -> Plain:
        if id(value) in path:
            return self._text("[cycle]", LONGEST)
        if len(path) >= DEEPEST:
            return self._text("[too deep]", LONGEST)
        self._left -= 2
        path = (*path, id(value))
        return self._sequence(opened, path) if opened.names is None else self._mapping(opened, path)

    def _sequence(self, opened: Members, path: tuple[int, ...]) -> Plain:
        items = sorted(opened.values, key=canonical) if opened.unordered else opened.values
        copy: list[Plain] = []
        for item in items:
            if self._left <= 0:
                break
            copy.append(self.of(item, path, LONGEST_PART))
        if len(copy) < opened.size:
            copy.append(f"[truncated: {opened.size - len(copy)} more]")
        return copy

    def _mapping(self, opened: Members, path: tuple[int, ...]) -> Plain:
        copy: dict[str, Plain] = {}
        taken = 0
        for name, item in zip(opened.names or (), opened.values, strict=False):
            if self._left <= 0:
                break
            taken += 1
            field = self._field(name)
            hidden = self._hides(field, item, opened.hidden)
            copy[field] = self._text(REDACTED, LONGEST) if hidden else self.of(item, path, LONGEST_PART)
        if taken < opened.size:
            copy[_TRUNCATED] = f"{opened.size - taken} more"
        return copy

    def _field(self, name: object) -> str:
        if type(name) is str and len(name) <= 64 and _ordinary_name(name):
            self._left -= len(name) + 4
            return name
        name = exact(name)
        if type(name) is bytes:
            name = name.decode("utf-8", "backslashreplace")
        return self._text(name if type(name) is str else canonical(name), 200)

    def _hides(self, field: str, item: object, hidden: frozenset[str]) -> bool:
        if field in self._redact or field in hidden:
            return True
        return item is not None and type(item) is not bool and is_secret(field)


def hidden_values(value: object, redact: Collection[str] = NO_NAMES) -> tuple[str, ...]:
    """The texts and numbers that a snapshot would redact by their names, for masking them where else they turn up.

    An error message of the tool may repeat a declared argument without its name: `redact_text` takes these as
    `values`. Values of fewer than four characters are left out, for they would mask innocent text.
    """
    return tuple({text for text in _hidden(value, redact, 0) if len(text) > 3})


def _hidden(value: object, redact: Collection[str], depth: int) -> Iterator[str]:
    opened = members(value, 256) if depth <= DEEPEST else None
    if opened is None:
        return
    for name, item in zip(opened.names or [""] * len(opened.values), opened.values, strict=False):
        if type(name) is str and (name in redact or name in opened.hidden or is_secret(name)):
            yield from _texts(item, depth)
        else:
            yield from _hidden(item, redact, depth + 1)


def _texts(value: object, depth: int) -> Iterator[str]:
    value = exact(value)
    kind = type(value)
    if kind is str:
        yield cast("str", value)
    elif kind is int or kind is float:
        yield canonical(value)
    elif depth <= DEEPEST and (opened := members(value, 256)) is not None:
        for item in opened.values:
            yield from _texts(item, depth + 1)
    elif (text := printed(value)) is not None:
        yield text


def printable(text: str, *, lines: bool = False) -> str:
    r"""The text with everything visible that a terminal would act on or hide.

    Control characters and escape sequences, marks of text direction, zero-width characters and lone surrogates
    become escapes such as `\x1b` and `\u202e`. With `lines`, line breaks and tabs stay.
    """
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() or (lines and char in "\n\t") else _visible(char) for char in text)


def _visible(char: str) -> str:
    return char.encode("unicode_escape").decode("ascii")
