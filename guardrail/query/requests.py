"""A GET of an HTTP store, as its author wrote it: inputs fill single path segments and query values, and nothing else."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, time
from decimal import Decimal
from enum import Enum
from math import isfinite
from typing import Final, TypeAlias, cast
from urllib.parse import quote, unquote
from uuid import UUID

from guardrail.errors import QueryRefused, StoreError

QueryValue: TypeAlias = str | int | Decimal | float | bool
"""A value of a query; a text `:name` is an input, `::name` the text `:name`."""

LONGEST_VALUE: Final = 1_000
LONGEST_TARGET: Final = 8_000
"""How many characters an input, and path and query together, may come to when encoded."""

_PLACEHOLDER: Final = re.compile(r"::|:([A-Za-z_][A-Za-z0-9_]*)", re.ASCII)
_WHOLE: Final = re.compile(r":([A-Za-z_][A-Za-z0-9_]*)", re.ASCII)
_STRANGE: Final = re.compile(r"[^A-Za-z0-9._~!$&'()*+,;=:@%/-]")
_BAD_ESCAPE: Final = re.compile(r"%(?![0-9A-Fa-f]{2})")


@dataclass(frozen=True, slots=True)
class Parameter:
    """The place of an input."""

    name: str


Part: TypeAlias = str | Parameter
"""A piece of a request: encoded text, or the place of an input."""


@dataclass(frozen=True, slots=True)
class Request:
    """What is asked of an HTTP store.

    `text` is the path as it was written, `segments` its segments, `query` names and values, which are not in the repr:
    they may be keys of the API. `parameters` are the
    names of the inputs that it takes, each once.
    """

    text: str
    segments: tuple[tuple[Part, ...], ...]
    query: tuple[tuple[str, Part], ...] = field(default=(), repr=False)
    parameters: tuple[str, ...] = field(init=False)

    def __post_init__(self) -> None:
        """Gather the parameters."""
        object.__setattr__(self, "parameters", tuple(dict.fromkeys(self._named())))

    @property
    def template(self) -> str:
        """The path with the names of its inputs in braces."""
        return "".join(
            "/" + "".join(f"{{{part.name}}}" if isinstance(part, Parameter) else part for part in segment)
            for segment in self.segments
        )

    def target(self, values: Mapping[str, object]) -> str:
        """Path and query with the inputs filled in. Raises `StoreError` for a value that cannot stand there."""
        path = "".join("/" + _segment(parts, values) for parts in self.segments)
        pairs = [f"{name}={_encoded(part, values)}" for name, part in self.query]
        target = path + ("?" + "&".join(pairs) if pairs else "")
        if len(target) > LONGEST_TARGET:
            raise StoreError(f"the request is longer than {LONGEST_TARGET:,} characters")
        return target

    def _named(self) -> Iterator[str]:
        parts = [part for segment in self.segments for part in segment]
        parts += [part for _, part in self.query]
        return (part.name for part in parts if isinstance(part, Parameter))


def prove_request(path: str, query: Mapping[str, QueryValue | Sequence[QueryValue]] | None = None) -> Request:
    """The request that a path and a query say. Raises `QueryRefused`, which says what is wrong with the path."""
    if not path.startswith("/"):
        raise QueryRefused("the path must begin with /; it is taken from the store's URL on")
    if "?" in path or "#" in path:
        raise QueryRefused("the path holds a ? or #; write a query under `query`")
    strange = _STRANGE.search(path) or _BAD_ESCAPE.search(path)
    if strange:
        raise QueryRefused(f"the path holds {strange[0]!r}; write it percent-encoded")
    texts = path[1:].split("/")
    for text in texts:
        if unquote(text) in (".", ".."):
            raise QueryRefused("the path holds the segment . or .., which leads elsewhere")
    if "" in texts[:-1]:
        raise QueryRefused("the path holds an empty segment (//)")
    pairs = [(name, item) for name, value in (query or {}).items() for item in _items(value)]
    return Request(path, tuple(map(_parts, texts)), tuple((_quoted(name), _part(item)) for name, item in pairs))


def _items(value: QueryValue | Sequence[QueryValue]) -> Sequence[QueryValue]:
    return value if isinstance(value, (list, tuple)) else [cast("QueryValue", value)]


def _parts(segment: str) -> tuple[Part, ...]:
    parts: list[Part] = []
    begin = 0
    for found in _PLACEHOLDER.finditer(segment):
        parts += [segment[begin : found.start()], Parameter(found[1]) if found[1] else ":"]
        begin = found.end()
    return tuple(part for part in (*parts, segment[begin:]) if part)


def _part(value: QueryValue) -> Part:
    """A value of a query; an input only where it is the whole value, so that nothing is put into a search's syntax."""
    if isinstance(value, str):
        found = _WHOLE.fullmatch(value)
        return Parameter(found[1]) if found else _quoted(value.replace("::", ":", 1) if value[:2] == "::" else value)
    return _quoted(_text(value))


def _segment(parts: Sequence[Part], values: Mapping[str, object]) -> str:
    segment = "".join(_encoded(part, values, in_path=True) for part in parts)
    if segment == "." or segment.startswith(".."):
        raise StoreError("an input makes a segment of the path begin with .., or be ., which leads elsewhere")
    return segment


def _encoded(part: Part, values: Mapping[str, object], *, in_path: bool = False) -> str:
    if isinstance(part, str):
        return part
    if part.name not in values or values[part.name] is None:
        raise StoreError(f"the parameter :{part.name} has no value")
    try:
        text = _text(values[part.name])
        encoded = _quoted(text)
    except ValueError as error:  # a lone surrogate, too, has no UTF-8
        raise StoreError(f"the parameter :{part.name} cannot stand in a URL") from error
    if not text or len(encoded) > LONGEST_VALUE:
        raise StoreError(f"the parameter :{part.name} is empty, or longer than {LONGEST_VALUE:,} characters")
    if in_path and (_leaves(text) or _leaves(unquote(text))):
        # Servers are known to decode a path before they take it apart, and proxies to decode it once more.
        raise StoreError(
            f"the parameter :{part.name} holds / or \\, .. or a control character, and is one path segment"
        )
    return encoded


def _leaves(text: str) -> bool:
    return "/" in text or "\\" in text or text.startswith("..") or not text.isprintable()


def _quoted(text: str) -> str:
    return quote(text, safe="")


def _text(value: object) -> str:
    """A value as it stands in a URL. Raises ValueError for one that has no such form."""
    match value:
        case Enum():
            return _text(value.value)
        case bool():
            return "true" if value else "false"
        case str():
            return value
        case int():
            return str(value)
        case float() if isfinite(value):
            return repr(value)
        case Decimal() if value.is_finite():
            return format(value, "f")
        case datetime() | date() | time():
            return value.isoformat()
        case UUID():
            return str(value)
        case _:
            raise ValueError(f"{type(value).__name__} has no form in a URL")
