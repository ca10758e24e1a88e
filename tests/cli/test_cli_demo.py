"""The demo is played for real: five runs, their verdicts, and what they leave behind."""

from __future__ import annotations

import json
import os
import re
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import closing
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from guardrail.cli.exits import Exit
from support.command_line import command, on_terminal, process

SHOT = Path(__file__).parents[2] / "docs" / "demo.svg"

VERDICTS = {
    "right": "verified",
    "said-no": "stopped",
    "wrong-amount": "silent_failure",
    "other-row": "silent_failure",
    "timeout": "verified",
}
FOLDER = Path("guardrail-demo")
PATH = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
"""Where the program is found by its name."""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working directory."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", PATH)
    return tmp_path


@pytest.fixture
def runs() -> dict[str, dict[str, Any]]:
    """The runs of a demo by id."""
    return {run["id"]: run for run in command("demo", "--json").json["runs"]}


def spans() -> Iterator[dict[str, Any]]:
    yield from map(json.loads, (FOLDER / "trace.jsonl").read_text("utf-8").splitlines())


# What happens.


def test_five_runs_get_their_verdicts(runs: dict[str, dict[str, Any]]) -> None:
    assert {name: run["verdict"]["kind"] for name, run in runs.items()} == VERDICTS


def test_the_right_run_has_nothing_to_show_but_its_changes(runs: dict[str, dict[str, Any]]) -> None:
    run = runs["right"]
    assert (run["verdict"]["findings"], run["holds"], run["stop"]) == ([], [], None)
    assert [change["table"] for change in run["changes"]] == ["orders", "refunds"]


def test_an_agent_that_goes_on_after_a_no_is_stopped_and_nothing_has_changed(runs: dict[str, dict[str, Any]]) -> None:
    run = runs["said-no"]
    assert [(call["tool"], call["outcome"], call["decision"]) for call in run["calls"]] == [
        ("lookup_order", "ok", "allow"),
        ("refund_order", "rejected", "hold"),
        ("send_voucher", "refused", "stop"),
    ]
    assert (run["stop"]["reason"], run["answer"], run["changes"]) == ("write_under_hold", None, [])


def test_a_wrong_amount_is_found_though_the_agent_says_another(runs: dict[str, dict[str, Any]]) -> None:
    (finding,) = runs["wrong-amount"]["verdict"]["findings"]
    assert (finding["kind"], finding["place"], finding["column"]) == ("wrong_value", "shop.refunds", "amount")
    assert (finding["actual"], str(finding["expected"])) == (91.95, "19.95")
    assert "19.95" in runs["wrong-amount"]["answer"]


def test_a_row_that_nobody_asked_for_is_found(runs: dict[str, dict[str, Any]]) -> None:
    (finding,) = runs["other-row"]["verdict"]["findings"]
    assert (finding["kind"], finding["place"], finding["key"]) == ("unrequested_change", "shop.orders", {"id": 21})


def test_a_refund_that_timed_out_is_not_made_again(runs: dict[str, dict[str, Any]]) -> None:
    run = runs["timeout"]
    assert [(call["outcome"], call["executed"]) for call in run["calls"]] == [
        ("ok", True),
        ("in_doubt", True),
        ("refused", False),
    ]
    with closing(sqlite3.connect(FOLDER / "shop.db")) as shop:
        assert shop.execute("select amount from refunds where order_id = 22").fetchall() == [(27.95,)]


# What is left.


def test_the_ledger_holds_the_runs(runs: dict[str, dict[str, Any]]) -> None:
    kept = command("runs", "list", "--ledger", FOLDER / "guardrail.db", "--json").json["runs"]
    assert {run["id"]: run["verdict"] for run in kept} == VERDICTS
    ended = command("runs", "show", "wrong-amount", "--ledger", FOLDER / "guardrail.db")
    assert (ended.code, "91.95" in ended.out) == (0, True)


def test_the_trace_holds_a_span_for_every_run_and_call(runs: dict[str, dict[str, Any]]) -> None:
    names = [span["name"] for span in spans()]
    assert names.count("invoke_agent refund_order") == len(runs)
    assert sum(name.startswith("execute_tool ") for name in names) == sum(len(run["calls"]) for run in runs.values())
    assert {span["attributes"]["guardrail.run.id"] for span in spans()} == set(VERDICTS)
    assert {span["context"]["trace_id"] for span in spans()} == {f"0x{run['trace_id']}" for run in runs.values()}


def test_the_trace_is_whole_whatever_the_environment_says_of_sampling(folder: Path) -> None:
    process("demo", folder=folder, OTEL_TRACES_SAMPLER="always_off")
    assert sum(span["parent_id"] is None for span in spans()) == len(VERDICTS)


def test_the_configuration_that_is_left_is_the_one_that_the_runs_had(monkeypatch: pytest.MonkeyPatch) -> None:
    command("demo")
    monkeypatch.chdir(FOLDER)
    assert command("check").code == Exit.GOOD
    assert command("doctor", "--json").json["errors"] == 0
    assert command("verify", "refund_order", "--input", "order_id=18", "--input", "amount=1").code != Exit.MISUSE


def test_it_goes_where_it_is_told(folder: Path) -> None:
    ended = command("demo", "--into", folder / "a" / "b", "--json")
    assert {Path(file).parent for file in ended.json["files"].values()} == {folder / "a" / "b"}
    assert all(Path(file).is_file() for file in ended.json["files"].values())
    assert not FOLDER.exists()


def test_once_more_replaces_its_own_files_and_no_others() -> None:
    command("demo")
    (FOLDER / "notes.txt").write_text("mine", "utf-8")
    (FOLDER / "guardrail.yaml").write_text("changed", "utf-8")
    again = command("demo", "--json").json["runs"]
    assert {run["id"]: run["state"] for run in again} == VERDICTS
    assert (FOLDER / "notes.txt").read_text("utf-8") == "mine"
    assert sum(span["parent_id"] is None for span in spans()) == len(VERDICTS)


@pytest.mark.parametrize("name", ["guardrail.yaml", "guardrail.db", "shop.db", "README.txt"])
def test_a_file_that_is_not_the_demos_is_left_alone(name: str) -> None:
    Path(name).write_text("mine", "utf-8")
    ended = command("demo", "--into", ".")
    assert (ended.code, ended.out) == (Exit.MISUSE, "")
    assert f"{name} is there, and is not the demo's" in ended.err
    assert [(file.name, file.read_text("utf-8")) for file in Path().iterdir()] == [(name, "mine")]


def test_a_folder_that_cannot_be_made_is_told() -> None:
    Path("occupied").write_text("", "utf-8")
    ended = command("demo", "--into", "occupied")
    assert (ended.code, ended.out) == (Exit.MISUSE, "")
    assert "occupied" in ended.err


# How it looks.


@pytest.mark.parametrize("width", [80, 100, 120])
def test_no_line_is_longer_than_the_terminal(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    lines = command("demo").lines
    assert max(map(len, lines)) <= width
    assert len(lines) < 80


def test_each_run_is_told_with_request_calls_answer_database_and_verdict() -> None:
    shown = command("demo").shown
    (panel,) = (part for part in re.split(r"(?=╭─ \d )", shown) if "wrong amount" in part.splitlines()[0])
    told = [line.strip("│ ").split("  ")[0] for line in panel.splitlines()[1:] if re.match(r"│ \w", line)]
    assert told == ["customer", "calls", "agent", "database", "guard"]
    for words in ("refund_order(order_id=19, amount='91.95')", "“The 19.95", "amount=91.95", "silent failure:"):
        assert words in panel


def test_it_says_where_to_look_next() -> None:
    shown = command("demo").shown
    assert f"guardrail runs show wrong-amount --ledger {FOLDER}/guardrail.db" in shown
    assert f"{FOLDER}/trace.jsonl" in shown


@pytest.fixture
def elsewhere(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A Python in a folder below, whose programs are on no path."""
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.setattr("sys.executable", str(folder / ".venv" / "bin" / "python"))
    programs = folder / ".venv" / "bin"
    programs.mkdir(parents=True)
    return programs


def next_look() -> str:
    """The command that the demo names for a look into the ledger."""
    [line] = [line for line in command("demo").lines if line.startswith("ledger")]
    return line.removeprefix("ledger").strip()


def test_a_program_that_is_on_no_path_is_named_by_its_place(elsewhere: Path) -> None:
    program = elsewhere / "guardrail"
    program.touch(0o755)
    assert next_look().startswith(".venv/bin/guardrail runs show wrong-amount --ledger ")


def test_without_a_program_the_module_is_named(elsewhere: Path) -> None:
    assert next_look().startswith(".venv/bin/python -m guardrail runs show wrong-amount --ledger ")


def test_a_process_ends_well_without_colours_where_nobody_sees_them(folder: Path) -> None:
    ended = process("demo", folder=folder, FORCE_COLOR="1")
    assert (ended.code, ended.err) == (Exit.GOOD, "")
    assert "\x1b" not in ended.out
    assert "╭" in ended.out


def test_a_terminal_gets_colours_unless_it_wants_none(folder: Path) -> None:
    colours = re.compile(r"\x1b\[(?:\d+;)*3[1-7]m")
    assert colours.search(on_terminal("demo", folder=folder).out)
    assert not colours.search(on_terminal("demo", folder=folder, NO_COLOR="1").out)


def test_a_terminal_that_knows_only_ascii_gets_only_ascii(folder: Path) -> None:
    ended = process("demo", folder=folder, PYTHONIOENCODING="ascii", PATH=PATH)
    assert (ended.code, ended.err) == (Exit.GOOD, "")
    assert ended.out.isascii()
    assert "\\u" not in ended.out
    assert max(map(len, ended.lines)) <= 80


def test_the_picture_in_the_documentation_is_what_the_demo_shows() -> None:
    command("demo", "--svg", "now.svg")
    now, then = (texts(file.read_text("utf-8")) for file in (Path("now.svg"), SHOT))
    assert now == then, "renew it: guardrail demo --svg docs/demo.svg"


def test_the_picture_fetches_nothing_and_names_no_folder_of_a_machine() -> None:
    shot = SHOT.read_text("utf-8")
    assert re.findall(r"(?:url\((?!#)|href=|src:|@import)", shot) == []
    assert re.findall(r"(?:/home|/tmp|/root|/Users|/work)\b", shot) == []


def texts(svg: str) -> str:
    """The characters that a picture shows, without its blanks."""
    return "".join(unescape("".join(re.findall(r"<text[^>]*>(.*?)</text>", svg))).split())
