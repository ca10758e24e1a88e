"""What a package exports is what it says it exports."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parents[1]
PACKAGES = {
    ".".join(path.parent.relative_to(CHECKOUT).parts): path
    for path in sorted((CHECKOUT / "guardrail").rglob("__init__.py"))
}


def bound_by(statement: ast.stmt) -> Iterator[str]:
    """The names that a statement of a package's `__init__` gives it, in its branches too."""
    match statement:
        case ast.ImportFrom(module="__future__"):
            pass
        case ast.Import(names=names) | ast.ImportFrom(names=names):
            yield from (alias.asname or alias.name.partition(".")[0] for alias in names)
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            yield name
        case ast.Assign(targets=targets):
            yield from (target.id for target in targets if isinstance(target, ast.Name))
        case ast.AnnAssign(target=ast.Name(id=name)):
            yield name
        case ast.If(body=body, orelse=orelse):
            yield from (name for inner in (*body, *orelse) for name in bound_by(inner))
        case _:
            pass


def public_names(package: str) -> set[str]:
    statements = ast.parse(PACKAGES[package].read_text(encoding="utf-8")).body
    return {name for statement in statements for name in bound_by(statement) if not name.startswith("_")}


def exported(package: str) -> list[str]:
    return list(getattr(import_module(package), "__all__", ()))


@pytest.mark.parametrize("package", PACKAGES)
def test_a_package_exports_what_is_public_in_it(package: str) -> None:
    assert {name for name in exported(package) if not name.startswith("_")} == public_names(package) - {"TYPE_CHECKING"}


def by_kind(name: str) -> tuple[bool, bool, str]:
    """Constants, classes, then functions: the order that ruff keeps."""
    return not name.isupper(), name[:1].islower(), name


@pytest.mark.parametrize("package", PACKAGES)
def test_the_exported_names_are_sorted_and_named_once(package: str) -> None:
    assert exported(package) == sorted(set(exported(package)), key=by_kind)


@pytest.mark.parametrize("package", PACKAGES)
def test_every_exported_name_can_be_had(package: str) -> None:
    module = import_module(package)
    assert [name for name in exported(package) if not hasattr(module, name)] == []
