"""Imports point downwards only."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parents[1]
FLOORS: tuple[frozenset[str], ...] = (
    frozenset({"calls", "errors", "attributes", "meta", "pictures", "digests", "pointers", "threads", "continuations"}),
    frozenset({"query"}),
    frozenset({"declare", "stores", "ledger", "telemetry"}),
    frozenset({"judge", "decide", "state"}),
    frozenset({"call"}),
    frozenset({"verification"}),
    frozenset({"run"}),
    frozenset({"guardrail"}),  # the package itself, which shows users what lies below
    frozenset({"trials", "recorded", "proxy"}),
    frozenset({"cli"}),
    frozenset({"__main__"}),
)
"""The rooms of the library from the ground up; a room imports only from lower floors."""

KEPT_APART = {room: frozenset({"stores", "ledger", "telemetry"}) for room in ("judge", "decide", "state")}
"""Rooms of lower floors that a room must not know: judging and deciding are pure."""

FOR_TYPES_ONLY = frozenset({("guardrail.errors", "guardrail.calls")})
"""Imports for type checkers that would close a circle if they were executed."""


def module_name(path: Path) -> str:
    parts = path.relative_to(CHECKOUT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_name(path): path for path in sorted((CHECKOUT / "guardrail").rglob("*.py"))}


def named_by(statement: ast.AST) -> Iterator[str]:
    """The dotted names that an import loads: `a.b.c` for `from a.b import c`."""
    match statement:
        case ast.Import(names=names):
            yield from (alias.name for alias in names)
        case ast.ImportFrom(module=str(module), names=names):
            yield from (f"{module}.{alias.name}" for alias in names)
        case _:
            pass


def imports_of(name: str) -> set[str]:
    """What a module imports anywhere in its text: modules of the library by their name, other things as written."""
    statements = ast.walk(ast.parse(MODULES[name].read_text(encoding="utf-8")))
    found = {known(dotted) for statement in statements for dotted in named_by(statement)}
    return {target for target in found - {name} if (name, target) not in FOR_TYPES_ONLY}


def known(dotted: str) -> str:
    """The module of the library that the name is, or is in; any other name as it is."""
    return next((name for name in (dotted, dotted.rpartition(".")[0]) if name in MODULES), dotted)


def room(name: str) -> str:
    return name.split(".")[1] if "." in name else name


def floor(name: str) -> int:
    return next(number for number, rooms in enumerate(FLOORS) if room(name) in rooms)


def points_down(name: str, target: str) -> bool:
    on_the_ground = floor(name) == floor(target) == 0
    return room(target) == room(name) or floor(target) < floor(name) or on_the_ground


IMPORTS = {name: imports_of(name) for name in MODULES}


@pytest.mark.parametrize("name", MODULES)
def test_a_module_imports_only_from_its_own_room_and_from_lower_floors(name: str) -> None:
    assert not {target for target in IMPORTS[name] & MODULES.keys() if not points_down(name, target)}


@pytest.mark.parametrize("name", [name for name in MODULES if room(name) in KEPT_APART])
def test_what_judges_and_decides_knows_no_store_no_ledger_and_no_telemetry(name: str) -> None:
    assert not {target for target in IMPORTS[name] & MODULES.keys() if room(target) in KEPT_APART[room(name)]}


def test_no_circle_of_imports() -> None:
    graph = {name: IMPORTS[name] & MODULES.keys() for name in MODULES}
    assert len(list(TopologicalSorter(graph).static_order())) == len(MODULES)


@pytest.mark.parametrize("name", MODULES)
def test_the_library_imports_no_adapter(name: str) -> None:
    assert not {target for target in IMPORTS[name] if target.startswith("guardrail_")}


@pytest.mark.parametrize("name", MODULES)
def test_imports_are_absolute_so_that_a_reader_and_this_test_see_the_floor(name: str) -> None:
    tree = ast.parse(MODULES[name].read_text(encoding="utf-8"))
    assert not [node.lineno for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.level]


def test_every_room_has_a_floor() -> None:
    rooms = {room(name) for name in MODULES}
    assert rooms <= frozenset().union(*FLOORS), "give the new room a floor in this test and in the design"
