"""The canonical form of values, by which two calls are told to be the same."""

from __future__ import annotations

import hashlib
import hmac
import json
import re
from contextlib import suppress
from decimal import Decimal
from typing import Final, cast

from guardrail.telemetry.members import Members, exact, members, printed, type_name

_quoted = json.encoder.encode_basestring_ascii
_DECIMAL: Final = re.compile(r"-?(?:0|[1-9][0-9]{0,99})(?:\.[0-9]{1,100})?")
_LONGEST: Final = 512
"""A part of more characters is named by its hash, so that shared parts do not multiply."""


def canonical(value: object) -> str:
    """The canonical text of a value: equal for values that say the same.

    Keys are sorted, and a number is written in one form, whether it came as an integer, a float, a decimal or a
    text that is a plain decimal: 40, 40.0, Decimal("40.00") and "40.00" are the same; "007", "+40" and "4e1" stay
    texts. Tuples and lists are the same, a set is not a list. Dates, ids and paths count by their text,
    enumerations by their value, dataclasses and models by their fields, bytes by content, anything else (a client,
    a file, a generator) by its class alone; it is not touched. Long parts stand there as their SHA-256. The
    whole value counts, whatever its size and depth (of a mapping that is no dictionary, the first 100,000 members);
    cycles are told. It holds what the value holds, secrets
    too: keep only its `digest`. Never raises.
    """
    return _plain(value) or _walk(value)


def digest(name: str, args: object, key: bytes | None = None) -> str:
    """A digest that tells two calls of a tool to be the same: its name, and the canonical form of all its arguments.

    With `key` it is a keyed one ("hmac-sha256:..."), from which short secrets among the arguments cannot be guessed:
    give one for whatever is stored. Without, it is "sha256:...". Never raises.
    """
    text = f"{_quoted(name)}{canonical(args)}"
    if key is None:
        return f"sha256:{_hash(text)}"
    return f"hmac-sha256:{hmac.digest(key, _bytes(text), 'sha256').hex()}"


def _plain(value: object) -> str | None:
    """The canonical text of anything but a container; None for a container."""
    with suppress(Exception):  # a number or a date of a class of the user's may raise anything
        return _written(exact(value))
    return type_name(value)


def _written(value: object) -> str | None:
    # By the type, not by isinstance: an object may claim to be of any class.
    kind = type(value)
    if kind is str:
        text = cast("str", value)
        return _number(text) if _DECIMAL.fullmatch(text) else _short(_quoted(text))
    if value is None or kind is bool:
        return {None: "null", True: "true", False: "false"}[cast("bool | None", value)]
    if kind is int:
        # Python refuses to write out integers of more than 4,300 digits.
        number = cast("int", value)
        return _short(str(number) if number.bit_length() < 4096 else hex(number))
    if kind is float:
        return _decimal(Decimal(repr(value)))
    if issubclass(kind, Decimal):
        return _decimal(cast("Decimal", value))
    if issubclass(kind, (bytes, bytearray)):
        return f"bytes {hashlib.sha256(cast('bytes', value)).hexdigest()}"
    shown = printed(value)
    return None if shown is None else _short(_quoted(shown))


def _number(text: str) -> str:
    if "." in text:
        text = text.rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


def _decimal(number: Decimal) -> str:
    if not number.is_finite():
        return str(number)
    if abs(number.adjusted()) < 400:
        return _number(f"{number:f}")
    sign, digits, exponent = number.as_tuple()
    shown = "".join(map(str, digits)).rstrip("0")
    return f"{'-' if sign else ''}{shown}e{cast('int', exponent) + len(digits) - len(shown)}" if shown else "0"


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else f"#{_hash(text)}"


def _hash(text: str) -> str:
    return hashlib.sha256(_bytes(text)).hexdigest()


def _bytes(text: str) -> bytes:
    # Texts are written in ASCII; only a class can have a name that UTF-8 does not know.
    return text.encode("utf-8", "backslashreplace")


class _Frame:
    """One container on the way, with the texts of the members that are done."""

    __slots__ = ("done", "opened", "value")

    def __init__(self, value: object, opened: Members) -> None:
        self.value = value
        self.opened = opened
        self.done: list[str] = []

    def text(self) -> str:
        """The container's own text, once all members are done."""
        if self.opened.names is not None:
            pairs = zip(map(_name, self.opened.names), self.done, strict=True)
            return _short(f"{{{','.join(sorted(f'{name}:{text}' for name, text in pairs))}}}")
        return _short(f"set[{','.join(sorted(self.done))}]" if self.opened.unordered else f"[{','.join(self.done)}]")


def _name(name: object) -> str:
    return _quoted(name) if type(name) is str else _quoted(canonical(name))


def _walk(value: object) -> str:
    """The text of a container, without recursion: arguments may be deeper than Python's stack."""
    # A known text is kept with its value, so that the value's identity is not given to another meanwhile.
    known: dict[int, tuple[str, object]] = {}
    stack: list[_Frame] = []
    depth: dict[int, int] = {}
    text = _enter(value, stack, depth, known)
    while stack:
        frame = stack[-1]
        if text is not None:
            frame.done.append(text)
        if len(frame.done) < len(frame.opened.values):
            text = _enter(frame.opened.values[len(frame.done)], stack, depth, known)
        else:
            stack.pop()
            del depth[id(frame.value)]
            text = frame.text()
            known[id(frame.value)] = (text, frame.value)
    return text or type_name(value)


def _enter(
    value: object, stack: list[_Frame], depth: dict[int, int], known: dict[int, tuple[str, object]]
) -> str | None:
    """The text of a value, or None when it is a container that now lies on the stack."""
    plain = _plain(value)
    if plain is not None:
        return plain
    value = exact(value)
    if id(value) in depth:
        return f"cycle {len(stack) - depth[id(value)]}"
    if id(value) in known:
        return known[id(value)][0]
    opened = members(value)
    if opened is None:
        return type_name(value)
    depth[id(value)] = len(stack)
    stack.append(_Frame(value, opened))
    return None
