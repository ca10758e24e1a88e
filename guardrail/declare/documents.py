"""The YAML reader: one document of YAML 1.2's core schema, read strictly, with the line of everything.

What YAML leaves open to surprise is refused with the advice to quote it: the booleans of YAML 1.1 (`on`,
`no`), numbers with a leading zero, hexadecimal and octal numbers, keys that are no text, tags, keys given
twice. A number with a fraction or an exponent becomes a `Decimal`, so that `19.90` is exactly that.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, cast

from guardrail.declare.faults import Fault, Place, dotted
from guardrail.declare.scalars import is_text, plain
from guardrail.errors import Mistake

MOST_BYTES: Final = 1 << 20
MOST_NODES: Final = 200_000
DEEPEST: Final = 50
"""The limits of a configuration's file: its size, its values (counting what aliases repeat), its nesting."""


@dataclass(frozen=True, slots=True)
class Limits:
    """How large a file may be: its bytes, its values (counting what aliases repeat), its nesting."""

    size: int = MOST_BYTES
    nodes: int = MOST_NODES
    depth: int = DEEPEST


_OF_A_CONFIGURATION: Final = Limits()


@dataclass(frozen=True, slots=True)
class Document:
    """A file that was read: its value, the line of each place (from 1), and what is wrong with it.

    `readable` is false when there is no telling what the file says; `value` is then None.
    """

    file: str
    value: object = None
    lines: Mapping[Place, int] = field(default_factory=dict[Place, int])
    faults: tuple[Fault, ...] = ()
    readable: bool = True

    def line(self, place: Place) -> int | None:
        """The line of a place, or of the nearest one around it that stands in the file."""
        return next((self.lines[place[:end]] for end in range(len(place), -1, -1) if place[:end] in self.lines), None)

    def mistake(self, fault: Fault) -> Mistake:
        """A fault of this document with its file and line."""
        line = self.line(fault.place) if fault.line is None else fault.line
        return Mistake(self.file, line, dotted(fault.place), fault.what, fault.advice)


class Unreadable(ValueError):
    """A file that cannot be read at all; `fault` says why."""

    def __init__(self, what: str, advice: str = "", line: int | None = None) -> None:
        self.fault = Fault((), what, advice, line)
        super().__init__(what)


def read(path: Path) -> Document:
    """Read a file; never raises for what the file is or holds: the document's `faults` say it."""
    try:
        text = text_of(path)
    except Unreadable as error:
        return Document(str(path), faults=(error.fault,), readable=False)
    return parse(text, str(path))


def text_of(path: Path, limits: Limits = _OF_A_CONFIGURATION) -> str:
    """The text of a file; raises Unreadable."""
    return _text(_bytes(path, limits))


def parse(text: str, file: str, limits: Limits = _OF_A_CONFIGURATION) -> Document:
    """Read a text as `file`; never raises for what it holds: the document's `faults` say it."""
    try:
        return _Builder(file, limits).document(text)
    except Unreadable as error:
        return Document(file, faults=(error.fault,), readable=False)


def _bytes(path: Path, limits: Limits) -> bytes:
    if path.is_dir():
        raise Unreadable("is a directory, not a file")
    if path.exists() and not path.is_file():
        # Reading a pipe or a device could wait for ever.
        raise Unreadable("is not a regular file")
    try:
        with path.open("rb") as file:
            data = file.read(limits.size + 1)
    except FileNotFoundError as error:
        raise Unreadable("there is no such file") from error
    except (OSError, ValueError) as error:  # ValueError: a path with a NUL in it.
        raise Unreadable(f"cannot be read: {getattr(error, 'strerror', None) or error}") from error
    if len(data) > limits.size:
        advice = "split it and use `include`" if limits is _OF_A_CONFIGURATION else ""
        raise Unreadable(f"is larger than {limits.size:,} bytes", advice)
    return data


def _text(data: bytes) -> str:
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise Unreadable("is UTF-16, not UTF-8", "save it as UTF-8", 1)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise Unreadable("is not UTF-8", "save it as UTF-8", data.count(b"\n", 0, error.start) + 1) from error


@dataclass(frozen=True, slots=True)
class _Anchored:
    """A value that aliases may repeat, with what each repetition costs."""

    value: object
    nodes: int
    height: int


class _Builder:
    """Builds the plain value of a document from the parser's events, and collects what is wrong on the way."""

    def __init__(self, file: str, limits: Limits) -> None:
        self._file = file
        self._limits = limits
        self._faults: list[Fault] = []
        self._lines: dict[Place, int] = {}
        self._anchors: dict[str, _Anchored] = {}
        self._nodes = 0
        self._depth = 0
        self._events: Iterator[Any] = iter(())

    def document(self, text: str) -> Document:
        """The one document of a text; raises Unreadable when there is no telling what it says."""
        self._events = _events(text)
        self._open(next(self._events))
        root = next(self._events)
        if _is(root, "Scalar") and root.value == "" and root.style is None:
            raise Unreadable("is empty", "a configuration says at least `version: 1`")
        value = self._value(root, ())
        self._close()
        return Document(self._file, value, self._lines, tuple(self._faults))

    def _open(self, _stream_start: object) -> None:
        start = next(self._events)
        if _is(start, "StreamEnd"):
            raise Unreadable("is empty", "a configuration says at least `version: 1`")
        if start.version is not None and tuple(start.version) != (1, 2):
            raise Unreadable("is declared as another version of YAML than 1.2", "leave the %YAML line out", 1)

    def _close(self) -> None:
        next(self._events)
        further = next(self._events)
        if not _is(further, "StreamEnd"):
            raise Unreadable("holds more than one document", "write one file for each", _line(further))

    def _value(self, event: Any, place: Place) -> object:
        self._lines.setdefault(place, _line(event))
        self._count(1, place, 0, event)
        if event.anchor is None or _is(event, "Alias"):
            return self._unanchored(event, place)
        nodes, depth = self._nodes, self._depth
        self._depth = len(place)
        value = self._unanchored(event, place)
        self._anchors[event.anchor] = _Anchored(value, self._nodes - nodes, self._depth - len(place))
        self._depth = max(depth, self._depth)
        return value

    def _count(self, nodes: int, place: Place, height: int, event: Any) -> None:
        self._nodes += nodes
        self._depth = max(self._depth, len(place) + height)
        if self._nodes > self._limits.nodes:
            raise Unreadable(
                f"holds more than {self._limits.nodes:,} values, those that aliases repeat included", "", _line(event)
            )
        if self._depth > self._limits.depth:
            raise Unreadable(f"is nested more than {self._limits.depth} deep", "", _line(event))

    def _unanchored(self, event: Any, place: Place) -> object:
        if _is(event, "Alias"):
            return self._alias(event, place)
        if event.ctag is not None:
            self._fault(place, event, "has a tag, and tags are not read here", "quote a value that is a text")
        if _is(event, "Scalar"):
            return self._scalar(event, place)
        return self._mapping(place) if _is(event, "MappingStart") else self._sequence(place)

    def _alias(self, event: Any, place: Place) -> object:
        anchored = self._anchors.get(event.anchor)
        if anchored is None:
            raise Unreadable(f"`*{event.anchor}` repeats what is not there, or is not complete", "", _line(event))
        self._count(anchored.nodes, place, anchored.height, event)
        return anchored.value

    def _scalar(self, event: Any, place: Place) -> object:
        if event.style is not None:
            return self._text(event, place)
        try:
            return plain(event.value)
        except ValueError as error:
            self._fault(place, event, f"`{event.value[:40]}` {error}")
            return event.value

    def _text(self, event: Any, place: Place) -> str:
        text: str = event.value
        try:
            # A pair of escapes (\ud83d\ude00) is one character, as in JSON.
            return text if text.isascii() else text.encode("utf-16-le", "surrogatepass").decode("utf-16-le")
        except UnicodeDecodeError:
            self._fault(place, event, "holds half of a character (a lone surrogate)")
            return ""

    def _sequence(self, place: Place) -> list[object]:
        items: list[object] = []
        while not _is(event := next(self._events), "SequenceEnd"):
            items.append(self._value(event, (*place, len(items))))
        return items

    def _mapping(self, place: Place) -> dict[str, object]:
        entries: dict[str, object] = {}
        while not _is(event := next(self._events), "MappingEnd"):
            if _is(event, "Scalar") and event.value == "<<" and event.style is None:
                self._merge(entries, place, event)
            else:
                self._entry(entries, place, event)
        return entries

    def _entry(self, entries: dict[str, object], place: Place, event: Any) -> None:
        key = self._key(event, place)
        inner = (*place, key)
        if key in entries:
            self._fault(inner, event, f"is given twice, first in line {self._lines[inner]}")
            inner = (*inner, "again")
        self._lines[inner] = _line(event)
        following = next(self._events)
        if following.start_mark.index == event.end_mark.index:
            self._fault(inner, event, "has no value", "write `key: value`, with a blank after the colon")
        value = self._value(following, inner)
        entries.setdefault(key, value)

    def _key(self, event: Any, place: Place) -> str:
        """The text of a key; what is none is read past, and a mistake."""
        if not _is(event, "Scalar"):
            self._fault((*place, "?"), event, "is a key that is no text")
            self._value(event, (*place, "?"))
            return "?"
        key = event.value if event.style is None else self._text(event, place)
        if event.style is None and not is_text(key):
            self._fault((*place, key), event, f"the key `{key[:40]}` is no text to every reader of YAML; quote it")
        return str(key)

    def _merge(self, entries: dict[str, object], place: Place, event: Any) -> None:
        merged = self._value(next(self._events), (*place, "<<"))
        for mapping in cast("list[object]", merged) if isinstance(merged, list) else [merged]:
            if isinstance(mapping, dict):
                self._merge_one(entries, cast("dict[str, object]", mapping), place, event)
            else:
                self._fault((*place, "<<"), event, "merges a mapping, or a list of mappings")

    def _merge_one(self, entries: dict[str, object], merged: dict[str, object], place: Place, event: Any) -> None:
        for key, value in merged.items():
            inner = (*place, key)
            if key in entries:
                self._fault(inner, event, f"is given twice, here by `<<` and first in line {self._lines[inner]}")
            else:
                self._lines[inner] = _line(event)
                entries[key] = value

    def _fault(self, place: Place, event: Any, what: str, advice: str = "") -> None:
        self._faults.append(Fault(place, what, advice, _line(event)))


def _is(event: object, kind: str) -> bool:
    return type(event).__name__ == f"{kind}Event"


def _line(event: Any) -> int:
    return int(event.start_mark.line) + 1


def _events(text: str) -> Iterator[Any]:
    """The parser's events of a text; raises Unreadable where it is not YAML."""
    from ruamel.yaml import YAML
    from ruamel.yaml.error import MarkedYAMLError
    from ruamel.yaml.reader import ReaderError

    parser: Any = YAML(typ="safe", pure=True)
    try:
        yield from parser.parse(text)
    except MarkedYAMLError as error:
        raise _no_yaml(error, text) from error
    except ReaderError as error:
        raise _control_character(error, text) from error
    except Exception as error:  # The parser lets Python's own errors out of some texts (an escape beyond Unicode).
        raise Unreadable(f"is not YAML: {error}") from error


def _control_character(error: Any, text: str) -> Unreadable:
    line = text.count("\n", 0, error.position) + 1
    return Unreadable(f"holds a control character (U+{error.character:04X})", "", line)


def _no_yaml(error: Any, text: str) -> Unreadable:
    mark = error.problem_mark or error.context_mark
    line = None if mark is None else mark.line + 1
    if "'\\t'" in str(error.problem):
        return Unreadable(
            "has a tab where only blanks may be", "indent with blanks, and quote a text that holds a tab", line
        )
    begun = f" that begins in line {error.context_mark.line + 1}" if error.context_mark else ""
    context = f" ({error.context}{begun})" if error.context else ""
    here = text.splitlines()[line - 1 : line] if line else []
    advice = "inside { } and [ ], quote a text with ${env:…}" if any("${env:" in part for part in here) else ""
    return Unreadable(f"is not YAML: {error.problem}{context}", advice, line)
