"""Every kind of mistake of a configuration, each file with what must be said at each of its lines."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from guardrail.declare.loading import load
from guardrail.errors import ConfigurationError, Mistake

FOLDER = Path(__file__).with_name("mistakes")
ENVIRONMENT = {"SHOP_URL": "sqlite:///shop.db", "SECRET": "hunter2-hunter2"}


def files() -> list[str]:
    """The main files: those of folders are included by the one called `main.yaml`."""
    found = [path.relative_to(FOLDER) for path in FOLDER.rglob("*.yaml")]
    return sorted(str(path) for path in found if len(path.parts) == 1 or path.name == "main.yaml")


def expected(path: Path) -> list[tuple[str, int, str]]:
    """What the comments `#! field: text (advice)` of a file say, with file and line.

    A comment that ends with … gives the beginning: the rest is another module's to word.
    """
    lines = path.read_text("utf-8").replace("{folder}", str(path.parent)).splitlines()
    return [(str(path), at, said) for at, line in enumerate(lines, 1) for said in re.split(r"\s+#! ", line)[1:]]


def said(mistake: Mistake) -> tuple[str, int, str]:
    advice = f" ({mistake.advice})" if mistake.advice else ""
    return mistake.file, mistake.line or 0, f"{mistake.field}: {mistake.what}{advice}"


def as_expected(found: tuple[str, int, str], wanted: list[tuple[str, int, str]]) -> tuple[str, int, str]:
    """A mistake that was found, shortened like the expected one that it begins with, if there is one."""
    file, line, text = found
    starts = [w for f, n, w in wanted if (f, n) == (file, line) and w.endswith("…") and text.startswith(w[:-1])]
    return (file, line, starts[0]) if starts else found


@pytest.mark.parametrize("name", files())
def test_each_mistake_is_named_once_at_its_line(name: str) -> None:
    path = FOLDER / name
    together = [path] if path.parent == FOLDER else sorted(path.parent.rglob("*.yaml"))

    with pytest.raises(ConfigurationError) as caught:
        load(path, ENVIRONMENT)

    wanted = [line for part in together for line in expected(part)]
    assert sorted(as_expected(said(mistake), wanted) for mistake in caught.value.mistakes) == sorted(wanted)


@pytest.mark.parametrize("name", files())
def test_no_mistake_tells_a_value_of_the_environment(name: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        load(FOLDER / name, ENVIRONMENT)

    assert not any(part in str(caught.value).lower() for part in ("hunter", "unter2", "ter2-"))
