"""OpenAPI documents: the operations that they describe are tools, whose effect their method tells."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, cast

from guardrail.calls import Effect
from guardrail.declare.documents import Document, Limits, Unreadable, parse, text_of
from guardrail.declare.faults import Fault, Place, dotted
from guardrail.declare.patterns import is_pattern, tool_for
from guardrail.declare.tools import Tool

_EFFECTS: Final[Mapping[str, Effect]] = {
    "get": "read", "head": "read", "options": "read",
    "put": "write", "post": "write", "delete": "write", "patch": "write", "trace": "write",
}  # fmt: skip
"""What each method does; the other keys of a path are no methods."""

_VERSIONS: Final = {"openapi": ("3.0", "3.1"), "swagger": ("2.0",)}
_LIMITS: Final = Limits(size=1 << 25, nodes=2_000_000, depth=100)


@dataclass(frozen=True, slots=True)
class Operations:
    """What a document describes: the place and the effect of each operation that has an id, and what is wrong with it."""

    document: Document
    found: Mapping[str, tuple[Place, Effect]] = field(default_factory=dict[str, tuple[Place, Effect]])
    faults: tuple[Fault, ...] = ()


def operations(path: Path) -> Operations:
    """Read a document, JSON or YAML; never raises for what it is or holds, and follows no reference.

    What is wrong with its other parts, which are not looked at, is not told.
    """
    try:
        text = text_of(path, _LIMITS)
        value = _json(text)
    except Unreadable as error:
        return Operations(Document(str(path), faults=(error.fault,), readable=False), faults=(error.fault,))
    document = parse(text, str(path), _LIMITS) if value is None else Document(str(path), value)
    reading = _Reading(document.value)
    faults = [*filter(_matters, document.faults), *(reading.faults() if document.readable else ())]
    if faults and value is not None:  # read again, for the lines; and only then, as it takes its time
        document = parse(text, str(path), _LIMITS)
    return Operations(document, reading.found, tuple(faults))


def with_operations(tools: Mapping[str, Tool], effects: Mapping[str, Effect]) -> dict[str, Tool]:
    """The declared tools and, by their ids, operations; what is declared of one wins over its method."""
    added = dict(tools)
    for name, effect in effects.items():
        declared = tool_for(tools, name)
        if declared.effect is None and declared.sql is None:
            added[name] = tools.get(name, Tool()).model_copy(update={"effect": effect})
    return added


def _json(text: str) -> Any:
    """What a JSON text says; None for one that is none."""
    if not text.lstrip().startswith("{"):
        return None
    try:
        return json.loads(text)
    except ValueError:  # the YAML reader says where
        return None
    except RecursionError:
        raise Unreadable(f"is nested more than {_LIMITS.depth} deep", line=1) from None


def _matters(fault: Fault) -> bool:
    """Whether a fault is where the operations are read from."""
    match fault.place:
        case () | ("openapi" | "swagger" | "paths", *_) if len(fault.place) <= 3:
            return True
        case ("paths", _, method, "operationId", *_):
            return method in _EFFECTS
        case _:
            return False


class _Reading:
    """The reading of one document's value."""

    def __init__(self, value: object) -> None:
        self._value = value
        self.found: dict[str, tuple[Place, Effect]] = {}
        self._named = False

    def faults(self) -> Iterator[Fault]:
        """What is wrong with it; `found` is filled on the way."""
        document = _mapping(self._value) or {}
        key = next((key for key in _VERSIONS if key in document), None)
        if key is None:
            yield Fault((), "is no OpenAPI document: it has neither the key `openapi` nor `swagger`")
            return
        version = str(document[key])
        if not any(version == known or version.startswith(f"{known}.") for known in _VERSIONS[key]):
            yield Fault((key,), f"is version {version[:20]}; OpenAPI 3.0 and 3.1 and Swagger 2.0 are read")
            return
        paths = _mapping(document.get("paths", {}))
        if paths is None:
            yield Fault(("paths",), "must be a mapping")
            return
        for path, item in paths.items():
            yield from self._path_faults(("paths", path), _mapping(item))
        if not self._named:
            yield Fault(("paths",), "has no operation with an `operationId`, so there is no tool to be known by one")

    def _path_faults(self, place: Place, item: Mapping[str, Any] | None) -> Iterator[Fault]:
        if item is None:
            yield Fault(place, "must be a mapping")
            return
        for method, effect in _EFFECTS.items():
            if method in item:
                yield from self._operation_faults((*place, method), _mapping(item[method]), effect)

    def _operation_faults(self, place: Place, operation: Mapping[str, Any] | None, effect: Effect) -> Iterator[Fault]:
        if operation is None:
            yield Fault(place, "must be a mapping")
        elif "operationId" in operation:
            self._named = True
            place, name = (*place, "operationId"), operation["operationId"]
            if not isinstance(name, str) or not name or name != name.strip() or not name.isprintable():
                yield Fault(place, "is no name of a tool: it must be a text without blanks around it")
            elif is_pattern(name):
                yield Fault(place, "is no name of a tool: `*`, `?` and `[` are those of patterns")
            elif name in self.found:
                yield Fault(place, f"is already given in {dotted(self.found[name][0])}")
            else:
                self.found[name] = (place, effect)


def _mapping(value: object) -> Mapping[str, Any] | None:
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else None
