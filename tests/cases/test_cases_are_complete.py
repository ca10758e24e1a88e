"""Every variant of every reported case is a test, or stands in `later.yaml` with the reason why not."""

from __future__ import annotations

import ast
import json
import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Literal, TypeAlias

import pytest
from pydantic import BaseModel, ConfigDict, TypeAdapter
from ruamel.yaml import YAML

HERE = Path(__file__).parent
CHECKOUT = HERE.parents[1]

Variant: TypeAlias = tuple[str, str]


class Later(BaseModel):
    """A variant that needs what a later issue builds; the file explains the fields."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    case: str
    variant: str
    needs: Literal["resolve", "attribution"]
    because: str
    shown: str = ""


@pytest.fixture(scope="module")
def reported() -> list[Variant]:
    """The variants in the cases file: `GUARDRAIL_CASES`, else `../shared/cases/reported.jsonl` beside the checkout.

    It is no part of the repository, so the tests that read it skip where it is absent, but not under CI.
    """
    file = Path(os.environ.get("GUARDRAIL_CASES") or CHECKOUT.parent / "shared" / "cases" / "reported.jsonl")
    if not file.is_file():
        reason = f"no reported cases at {file}; set GUARDRAIL_CASES to their file"
        pytest.fail(reason) if os.environ.get("GUARDRAIL_CI") else pytest.skip(reason)
    cases = [json.loads(line) for line in file.read_text("utf-8").splitlines()]
    return [(case["id"], variant["name"]) for case in cases for variant in case["variants"]]


def decorators(module: ast.Module) -> Iterator[ast.expr]:
    """What is written above the tests of a module."""
    for item in module.body:
        if isinstance(item, ast.FunctionDef | ast.AsyncFunctionDef) and item.name.startswith("test_"):
            yield from item.decorator_list


def named(decorator: ast.expr) -> Iterator[Variant]:
    """The variants that a decorator names: by `pytest.mark.case(id, name)` or as a parameter `variant(id, name, ...)`."""
    for call in ast.walk(decorator):
        if not isinstance(call, ast.Call):
            continue
        match call.func, call.args:
            case (
                ast.Attribute(attr="case") | ast.Name(id="variant"),
                [ast.Constant(value=str(case)), ast.Constant(value=str(name)), *_],
            ):
                yield case, name
            case _:
                pass


def variants() -> Counter[Variant]:
    """The variants that tests name, and how many tests do."""
    modules = [ast.parse(path.read_text("utf-8")) for path in HERE.glob("test_case_*.py")]
    return Counter(name for module in modules for decorator in decorators(module) for name in named(decorator))


def later() -> list[Later]:
    entries: object = YAML(typ="safe").load(HERE / "later.yaml")  # pyright: ignore[reportUnknownMemberType]
    return TypeAdapter(list[Later]).validate_python(entries)


def test_every_variant_is_tested_or_named_for_later(reported: list[Variant]) -> None:
    left = {(entry.case, entry.variant) for entry in later()}
    assert set(reported) - set(variants()) - left == set()


def test_nothing_is_tested_or_left_for_later_that_was_not_reported(reported: list[Variant]) -> None:
    assert set(variants()) - set(reported) == set()
    assert {(entry.case, entry.variant) for entry in later()} - set(reported) == set()


def test_a_variant_that_is_left_for_later_is_tested_only_as_far_as_its_entry_says() -> None:
    entries = {(entry.case, entry.variant): entry for entry in later()}
    assert len(entries) == len(later())
    assert {name for name, entry in entries.items() if entry.shown} == set(variants()) & set(entries)


def test_each_variant_is_named_by_one_test_in_the_module_of_its_case() -> None:
    assert [name for name, count in variants().items() if count > 1] == []
    for path in HERE.glob("test_case_*.py"):
        cases = {case for d in decorators(ast.parse(path.read_text("utf-8"))) for case, _ in named(d)}
        assert cases == {path.stem.removeprefix("test_case_").upper()}
