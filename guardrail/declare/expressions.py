"""Expressions in CEL: compiled and checked when a configuration is loaded, evaluated before a call.

An evaluation that fails is an `ExpressionError`, never false. Money does not enter CEL, whose numbers are
floats: a `Decimal` is refused. What the variables hold is bounded, so that no evaluation takes long.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from functools import cache
from importlib import import_module
from itertools import islice
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final, cast
from uuid import UUID

from pydantic import BaseModel

from guardrail.declare.faults import suggestion
from guardrail.errors import ExpressionError

if TYPE_CHECKING:
    from cel import Program

LONGEST: Final = 1_000
"""The longest expression; the engine's parser recurses, and a longer one could exhaust a thread's stack."""
MOST_ITEMS: Final = (10_000, 10_000, 300)
"""How many items of lists and mappings the variables may hold, by how deep macros (`all`, `map`) are nested."""
MOST_TEXT: Final = 100_000
"""How many characters the variables may hold."""
DEEPEST: Final = 20
"""How deep the variables may be nested."""

_ON_TEXTS: Final = frozenset({"size", "contains", "startsWith", "endsWith", "matches"})
_CONVERSIONS: Final = frozenset({"string", "bytes", "int", "uint", "double", "dyn", "type", "duration", "timestamp"})
_OF_DATES: Final = frozenset({"getFullYear", "getMonth", "getDate", "getDayOfMonth", "getDayOfWeek", "getDayOfYear"})
_OF_TIMES: Final = frozenset({"getHours", "getMinutes", "getSeconds", "getMilliseconds"})
FUNCTIONS: Final = _ON_TEXTS | _CONVERSIONS | _OF_DATES | _OF_TIMES
"""The functions that expressions may call; operators and macros aside."""

_TYPES: Final = frozenset({"int", "uint", "double", "bool", "string", "bytes", "list", "map", "null_type", "type"})
_COMMAND_LINE: Final = "cel.cli"


@dataclass(frozen=True, slots=True)
class Expression:
    """A compiled expression. `references` are what it reads: `args.name` for one part, `args` for all of it."""

    text: str
    references: frozenset[str]
    most_items: int
    program: Program

    def evaluate(self, variables: Mapping[str, Mapping[str, object]]) -> bool:
        """Whether the expression holds for these variables, of which only what it refers to is read.

        Raises ExpressionError when the evaluation fails, when it gives anything but true or false, and when
        a value that it refers to cannot enter CEL.
        """
        given = _given(self.references, variables, self.most_items)
        try:
            result: object = self.program.execute(given)
        except (ArithmeticError, LookupError, RuntimeError, TypeError, ValueError) as error:
            raise ExpressionError(f"`{self.text}` could not be evaluated: {_reason(error)}") from error
        if isinstance(result, bool):
            return result
        raise ExpressionError(f"`{self.text}` gives a {type(result).__name__}, and must give true or false")


def compile_expression(text: str, names: Collection[str]) -> Expression:
    """Compile an expression that may read the variables `names`.

    A name with a dot (`inputs.amount`) closes its variable: of `inputs`, only the parts that are named may
    be read. Raises ExpressionError, which says what is wrong and where.
    """
    if len(text) > LONGEST:
        raise ExpressionError(f"is longer than {LONGEST:,} characters; write several, or use SQL")
    program = _compiled(text)
    source = _Source.of(text)
    for function in sorted(set(program.functions()) - FUNCTIONS):
        if function.isidentifier():
            raise ExpressionError(f"there is no function `{function}`{_hint(function, FUNCTIONS)}")
    references = source.references(program.variables())
    for reference in sorted(references):
        _check_name(reference, names)
    if source.nesting >= len(MOST_ITEMS):
        raise ExpressionError(f"nests macros (`all`, `map`, …) more than {len(MOST_ITEMS) - 1} deep; use SQL")
    return Expression(text, references, MOST_ITEMS[source.nesting], program)


def _compiled(text: str) -> Program:
    try:
        return cast("Program", _engine().compile(text))
    except ValueError as error:
        raise ExpressionError(f"is not CEL: {_complaint(str(error))}") from error


@cache
def _engine() -> Any:
    """The engine, imported with the first expression.

    Its package imports its command line, with a terminal toolkit: nine tenths of the time, and of no use
    here. So an empty module stands in for that while the package is imported, and is taken away again.
    """
    if "cel" in sys.modules:
        return sys.modules["cel"]
    sys.modules[_COMMAND_LINE] = ModuleType(_COMMAND_LINE)
    try:
        engine = import_module("cel")
        vars(engine).pop("cli", None)
    finally:
        del sys.modules[_COMMAND_LINE]
    return engine


def _complaint(message: str) -> str:
    """The parser's first complaint: what, and where."""
    found = re.search(r"<input>:(\d+):(\d+): (?:Syntax error: )?([^\n]*)", message)
    if found is None:
        return message[:200]
    return f"{found[3].partition(' expecting ')[0][:160]} (line {found[1]}, column {found[2]})"


def _reason(error: Exception) -> str:
    if isinstance(error, KeyError):
        return f"there is no `{error.args[0]}`; ask has() first where it may be missing"
    return str(error).partition(". CEL does not")[0].partition(". Check ")[0][:200]


def _check_name(reference: str, names: Collection[str]) -> None:
    variable, _, part = reference.partition(".")
    parts = {name for name in names if name.startswith(f"{variable}.")}
    if variable not in names and not parts:
        known = {name.partition(".")[0] for name in names}
        raise ExpressionError(f"there is no variable `{variable}`{_hint(variable, known)}")
    if part and parts and reference not in parts:
        raise ExpressionError(f"there is no `{reference}`{_hint(reference, parts)}")


def _hint(name: str, known: Collection[str]) -> str:
    found = suggestion(name, known, "there are")
    return f"; {found}" if found else ""


_TEXTS: Final = re.compile(
    r"""//[^\n]*
    | (?<!\w)(?:[rR][bB]?|[bB][rR]) (?: \"{3}[\s\S]*?\"{3} | '{3}[\s\S]*?'{3} | \"[^\"\n]*\" | '[^'\n]*' )
    | (?: (?<!\w)[bB] )? (?: \"{3}(?:\\.|[^\\])*?\"{3} | '{3}(?:\\.|[^\\])*?'{3}
                          | \"(?:\\.|[^\"\\\n])*\" | '(?:\\.|[^'\\\n])*' )""",
    re.VERBOSE | re.DOTALL,
)
_WORD: Final = re.compile(r"(?<!\w)([A-Za-z_]\w*)")
_MEMBER: Final = re.compile(r"\s*\.\s*([A-Za-z_]\w*)\b(?!\s*\()")
_MACRO: Final = re.compile(r"\.\s*(?:all|exists|exists_one|map|filter)\s*\(\s*([A-Za-z_]\w*)\s*,")


@dataclass(frozen=True, slots=True)
class _Source:
    """An expression's text with its texts and comments blanked out, and where macros bind which name."""

    code: str
    bound: tuple[tuple[str, int, int], ...]

    @classmethod
    def of(cls, text: str) -> _Source:
        code = _TEXTS.sub(lambda found: '"' * len(found[0]), text)
        bound = ((found[1], found.start(), _closing(code, found.start())) for found in _MACRO.finditer(code))
        return cls(code, tuple(bound))

    @property
    def nesting(self) -> int:
        """How deep macros stand inside each other."""
        return max((sum(begin <= at < end for _, begin, end in self.bound) for _, at, _ in self.bound), default=0)

    def references(self, variables: Collection[str]) -> frozenset[str]:
        """What the expression reads, given all names that the parser took for variables."""
        return frozenset(self._references(set(variables) - _TYPES))

    def _references(self, variables: Collection[str]) -> Iterator[str]:
        for word in _WORD.finditer(self.code):
            if word[1] in variables and not self._is_part(word.start()) and not self._is_bound(word[1], word.start()):
                member = _MEMBER.match(self.code, word.end())
                yield f"{word[1]}.{member[1]}" if member else word[1]

    def _is_part(self, at: int) -> bool:
        return self.code[:at].rstrip().endswith(".")

    def _is_bound(self, name: str, at: int) -> bool:
        return any(name == bound and begin <= at < end for bound, begin, end in self.bound)


def _closing(code: str, start: int) -> int:
    """Where the first parenthesis that opens from `start` on is closed."""
    depth = 0
    for at in range(start, len(code)):
        depth += {"(": 1, ")": -1}.get(code[at], 0)
        if depth == 0 and code[at] == ")":
            return at
    return len(code)


def _given(
    references: Collection[str], variables: Mapping[str, Mapping[str, object]], most_items: int
) -> dict[str, object]:
    """The variables as CEL takes them: of each, the parts that are referred to, or all."""
    intake = _Intake(most_items)
    given: dict[str, dict[str, object]] = {}
    for reference in references:
        variable, _, part = reference.partition(".")
        value = variables.get(variable, {})
        parts = given.setdefault(variable, {})
        for name in [part] if part else value:
            if name in value and name not in parts:
                parts[name] = intake.value(value[name], f"{variable}.{name}", 1)
    return cast("dict[str, object]", given)


class _Intake:
    """Turns Python values into what CEL takes, within bounds."""

    def __init__(self, most_items: int) -> None:
        self._most_items = most_items
        self._items = 0
        self._text = 0

    def value(self, value: object, name: str, depth: int) -> object:
        """The value for CEL. Raises ExpressionError where it has none, or goes beyond the bounds."""
        if depth > DEEPEST:
            raise ExpressionError(f"`{name}` is nested more than {DEEPEST} deep")
        if isinstance(value, str) and not isinstance(value, Enum):
            return self._bounded(str.__str__(value), name)
        if value is None or isinstance(value, (bool, float, bytes, timedelta)):
            return value
        if isinstance(value, Mapping):
            return self._mapping(cast("Mapping[object, object]", value), name, depth)
        if isinstance(value, (list, tuple, set, frozenset)):
            self._count(len(cast("Collection[object]", value)), name)
            return [self.value(item, f"{name}[]", depth + 1) for item in cast("Collection[object]", value)]
        return self._other(value, name, depth)

    def _other(self, value: object, name: str, depth: int) -> object:
        match value:
            case Enum():
                return self.value(value.value, name, depth + 1)
            case int() if -(2**63) <= (number := int.__index__(value)) < 2**63:
                return number  # the plain number of a subclass, whose own methods may do anything
            case Decimal():
                raise ExpressionError(
                    f"`{name}` is a decimal, and CEL would make a float of it: compare money by a matcher "
                    "(`args: {amount: {type: decimal, above: 0}}`) or in SQL"
                )
            case datetime() if value.tzinfo is not None:
                return value
            case date() if not isinstance(value, datetime):
                return datetime(value.year, value.month, value.day, tzinfo=UTC)
            case UUID() | time():
                return str(value)
            case BaseModel():
                return self._mapping(dict(value), name, depth)
            case _ if is_dataclass(value) and not isinstance(value, type):
                return self._mapping({f.name: getattr(value, f.name) for f in fields(value)}, name, depth)
            case _:
                raise ExpressionError(f"`{name}` is {_unfit(value)}, which cannot enter CEL")

    def _mapping(self, value: Mapping[Any, object], name: str, depth: int) -> dict[str, object]:
        items = list(islice(value.items(), self._most_items + 1))  # a mapping that loads lazily may have no end
        self._count(len(items), name)
        if not all(isinstance(key, str) for key, _ in items):
            raise ExpressionError(f"`{name}` has a key that is no text, which cannot enter CEL")
        return {
            self._bounded(str.__str__(key), name): self.value(item, f"{name}.{key}", depth + 1) for key, item in items
        }

    def _count(self, items: int, name: str) -> None:
        self._items += items
        if self._items > self._most_items:
            raise ExpressionError(f"`{name}` makes more than {self._most_items:,} items, the most for this expression")

    def _bounded(self, text: str, name: str) -> str:
        self._text += len(text)
        if self._text > MOST_TEXT:
            raise ExpressionError(f"`{name}` makes more than {MOST_TEXT:,} characters, the most for an expression")
        return text


def _unfit(value: object) -> str:
    if isinstance(value, int):
        return "a whole number beyond 64 bits"
    return "a time without a zone" if isinstance(value, datetime) else f"a {type(value).__name__}"
