"""Operations of OpenAPI documents as tools."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from guardrail import Configuration, ConfigurationError, Guard
from guardrail.declare.loading import load
from guardrail.declare.tools import EffectByArgument


def get_orders(how: str) -> dict[str, object]:
    return {"id": 1, "how": how}


METHODS = {
    "get": "read", "head": "read", "options": "read",
    "post": "write", "put": "write", "patch": "write", "delete": "write", "trace": "write",
}  # fmt: skip
PATHS: dict[str, Any] = {
    "/orders": {method: {"operationId": f"{method}_orders"} for method in METHODS},
    "/silent": {"get": {"responses": {"200": {"description": "no id, no tool"}}}},
    "/elsewhere": {"$ref": "https://nowhere.invalid/paths.yaml"},
}
YAML_TEXT = """
openapi: 3.1.0
info: {title: Shop, version: 1.10, x-old: 012, x-on: on}
paths:
  /orders:
    parameters: [{name: id, in: query}]
    get:
      operationId: get_orders
      responses: {200: {description: what other readers make of this key is not asked here}}
"""


def loaded(folder: Path, tools: dict[str, Any] | None = None, **specs: str) -> Configuration:
    """A configuration beside documents."""
    for name, text in specs.items():
        (folder / f"{name}.spec").write_text(text)
    file = folder / "guardrail.yaml"
    file.write_text(
        json.dumps({"ledger": "memory", "openapi": [f"{name}.spec" for name in specs], "tools": tools or {}})
    )
    return load(file)


@pytest.mark.parametrize("version", [{"openapi": "3.0.3"}, {"openapi": "3.1.0"}, {"swagger": "2.0"}, {"swagger": 2.0}])
def test_the_method_tells_what_an_operation_does(tmp_path: Path, version: dict[str, object]) -> None:
    found = loaded(tmp_path, shop=json.dumps({**version, "paths": PATHS}))
    assert {name: tool.effect for name, tool in found.tools.items()} == {f"{m}_orders": e for m, e in METHODS.items()}
    assert found.openapi == ()


def test_a_document_in_yaml_is_read_whatever_else_is_in_it(tmp_path: Path) -> None:
    assert loaded(tmp_path, shop=YAML_TEXT).tools["get_orders"].effect == "read"


@pytest.mark.parametrize(
    ("declared", "effect"),
    [
        ({"get_orders": {"empty": "hold"}}, "read"),
        ({"get_*": {"empty": "hold"}}, "read"),
        ({"get_orders": {"effect": "write"}}, "write"),
        ({"get_*": {"effect": "write"}}, "write"),
        ({"get_*": {"effect": "write"}, "get_orders": {"retries": 1}}, "write"),
        ({"get_orders": {"effect": "unknown"}}, "unknown"),
        ({"get_orders": {"effect": {"by": "args.how", "read": ["r"]}}}, EffectByArgument(by="args.how", read=("r",))),
    ],
)
def test_what_is_declared_of_an_operation_wins(tmp_path: Path, declared: dict[str, Any], effect: object) -> None:
    configuration = loaded(tmp_path, declared, shop=YAML_TEXT)
    with Guard(configuration, base=tmp_path) as guard, guard.run() as run:
        run.call("get_orders", {"how": "r"}, get_orders)
        [call] = guard.ledger.load_run(run.id).calls  # type: ignore[union-attr]
    assert call.call.effect == (effect if isinstance(effect, str) else "read")


def test_other_declarations_know_an_operation_by_its_name(tmp_path: Path) -> None:
    tools = {"refund": {"effect": "write", "requires": [{"earlier": "get_orders"}]}}
    assert loaded(tmp_path, tools, shop=YAML_TEXT).tools["refund"].requires


def test_no_warning_is_given_of_an_operation(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with Guard(loaded(tmp_path, shop=YAML_TEXT), base=tmp_path) as guard, guard.run() as run:
        run.call("get_orders", {}, dict)
    assert not [record for record in caplog.records if "tool_not_declared" in record.getMessage()]


def test_documents_of_included_files_lie_beside_those(tmp_path: Path) -> None:
    (tmp_path / "apis").mkdir()
    (tmp_path / "apis" / "shop.yaml").write_text(YAML_TEXT)
    (tmp_path / "apis" / "part.yaml").write_text("openapi: [shop.yaml]\n")
    (tmp_path / "guardrail.yaml").write_text("include: [apis/part.yaml]\nopenapi: [apis/shop.yaml]\n")
    assert list(load(tmp_path / "guardrail.yaml").tools) == ["get_orders"]


@pytest.mark.parametrize(
    ("text", "line", "what"),
    [
        ('{"openapi": "3.0.0",\n "paths": {"/a": {\n  "get": {"operationId": 1}}}}', 3, "is no name of a tool"),
        ('{"openapi": "3.0.0",\n "paths": ', 2, "is not YAML"),
        ('{"openapi": "2.9", "paths": {}}', 1, "is version 2.9"),
        ('{"a": ' * 20_000, 1, "is nested more than 100 deep"),
        ("", None, "is empty"),
    ],
)
def test_a_mistake_of_a_document_in_json_has_its_line(tmp_path: Path, text: str, line: int | None, what: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        loaded(tmp_path, shop=text)
    [mistake] = caught.value.mistakes
    assert (Path(mistake.file).name, mistake.line) == ("shop.spec" if line else "guardrail.yaml", line or 1)
    assert what in mistake.what


def test_a_large_document_in_json_is_read(tmp_path: Path) -> None:
    paths = {f"/p{n}": {"get": {"operationId": f"get_{n}", "description": "x" * 1000}} for n in range(3_000)}
    assert len(loaded(tmp_path, shop=json.dumps({"openapi": "3.0.1", "paths": paths})).tools) == 3_000


def test_a_configuration_in_python_names_no_documents() -> None:
    with pytest.raises(ConfigurationError, match="openapi: is read with a file"):
        Guard(Configuration(openapi=("shop.yaml",), ledger="memory"))
