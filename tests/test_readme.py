"""What the README shows works: its code runs, its configuration loads; and the commands named on any page exist."""

from __future__ import annotations

import re
import shlex
import tomllib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from guardrail.cli.main import COMMANDS
from support.command_line import command
from support.documents import CHECKOUT, DOCS, blocks
from support.shop import Shop

README = CHECKOUT / "README.md"
PAGES = (README, *sorted(DOCS.glob("*.md")), *sorted(CHECKOUT.glob("examples/*/README.md")))
PROJECT: str = tomllib.loads((CHECKOUT / "pyproject.toml").read_text("utf-8"))["project"]["name"]
TARGETS = set(re.findall(r"^([a-z]+):", (CHECKOUT / "Makefile").read_text("utf-8"), re.MULTILINE))

on_each_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(CHECKOUT)))


def text_of(language: str) -> str:
    """The README's one block of this language."""
    [block] = blocks(README, language)
    return block.text


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with the README's configuration."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "guardrail.yaml").write_text(text_of("yaml"), "utf-8")
    return tmp_path


def test_the_readme_has_commands_code_and_a_configuration() -> None:
    assert {block.language for block in blocks(README)} == {"sh", "python", "yaml"}


@pytest.mark.usefixtures("folder")
def test_the_configuration_is_right() -> None:
    assert command("check", "--json").json["mistakes"] == []


class Agent:
    """A stub of an agent: it looks an order up and refunds it, with the tools that it is given."""

    def __init__(self, amount: str) -> None:
        self.amount = amount

    def __call__(self, tools: list[Callable[..., Any]]) -> str:
        lookup_order, refund_order = tools
        refund_order(order_id=lookup_order(order_id=17)["id"], amount=self.amount)
        return "I have refunded 19.90."


@pytest.mark.parametrize(
    ("amount", "verdict"),
    [("19.90", "verified"), ("91.90", "silent_failure: shop.refunds id=1: amount is 91.9, expected 19.90")],
)
def test_the_code_guards_an_agent(folder: Path, capsys: pytest.CaptureFixture[str], amount: str, verdict: str) -> None:
    names: dict[str, Any] = {"shop": Shop(folder / "shop.db"), "my_agent": Agent(amount)}
    exec(text_of("python"), names)
    names["guard"].close()
    assert capsys.readouterr().out == f"{verdict}\n"


# Commands, on all pages.


@cache
def help_of(*names: str) -> str:
    ended = command(*names, "--help")
    assert ended.code == 0, names
    return ended.out


def is_offered(line: str) -> bool:
    """Whether there is what a line of a shell asks for; it is not carried out."""
    match shlex.split(line, comments=True):
        case []:
            return True
        case ["make", str(target), *_]:
            return target in TARGETS
        case ["pip", "install", "."]:
            return (CHECKOUT / "pyproject.toml").is_file()
        case ["pip", "install", str(name)]:
            return name.partition("[")[0] == PROJECT
        case ["python", str(script), *_]:
            return (CHECKOUT / script).is_file()
        case ["guardrail", str(name), *rest]:
            return name in COMMANDS and has_options(name, rest)
        case _:
            return False


def has_options(name: str, rest: list[str]) -> bool:
    told = help_of(name, *(rest[:1] if name == "runs" else []))
    options = [word.partition("=")[0] for word in rest if word.startswith("--")]
    return all(f"{option} " in told for option in options)


@on_each_page
def test_commands_in_blocks_exist(page: Path) -> None:
    lines = [line for block in blocks(page, "sh") for line in block.text.splitlines()]
    assert [line for line in lines if not is_offered(line)] == []


@on_each_page
def test_commands_in_the_text_exist(page: Path) -> None:
    named = re.findall(r"`guardrail ([a-z]+)", page.read_text("utf-8"))
    assert set(named) - set(COMMANDS) == set()


def test_the_readmes_pictures_and_links_are_there() -> None:
    for page in (README, *CHECKOUT.glob("examples/*/README.md")):
        targets = re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text("utf-8"))
        assert [target for target in targets if not (page.parent / target).exists()] == []
