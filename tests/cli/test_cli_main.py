"""What all commands have in common: exit codes, streams, colours, interruptions."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from guardrail.cli.exits import Exit
from guardrail.cli.main import COMMANDS
from support.command_line import ENVIRON, arguments, command, on_terminal, process
from support.project import Project

CHECKOUT = Path(__file__).parents[2]

FAILURE = '{"error": "no"}'


def test_the_version_is_told(project: Project) -> None:
    ended = process("--version", folder=project.folder)
    assert (ended.code, ended.out, ended.err) == (0, "guardrail 0.1.0\n", "")


def test_the_program_is_installed_under_its_name(project: Project) -> None:
    program = Path(sys.executable).with_name("guardrail")
    ended = subprocess.run([program, "check", "--json"], cwd=project.folder, env=ENVIRON, capture_output=True)
    assert (ended.returncode, ended.stderr) == (0, b"")


def test_the_help_names_every_command_and_the_exit_codes() -> None:
    ended = command("--help")
    assert ended.code == 0
    assert all(re.search(rf"^│ {name} ", ended.out, re.MULTILINE) for name in COMMANDS)
    assert "Exit codes" in ended.out


@pytest.mark.parametrize("name", [*COMMANDS, "runs list", "runs show", "runs delete"])
def test_every_command_has_help_and_json(name: str) -> None:
    ended = command(*name.split(), "--help")
    assert ended.code == 0
    assert "--json" in ended.out or name in ("runs", "mcp")


@pytest.mark.parametrize("names", [(), ("check",), ("runs",), ("runs", "list")])
def test_help_has_its_short_name(names: tuple[str, ...]) -> None:
    assert command(*names, "-h") == command(*names, "--help")


@pytest.mark.parametrize("how", ["--version", "--help"])
def test_what_is_heavy_is_not_imported_to_say_what_there_is(how: str, project: Project) -> None:
    script = f"""
import sys
sys.argv = ["guardrail", "{how}"]
from guardrail.cli.main import main
try:
    main()
finally:
    heavy = ("sqlglot", "cel", "ruamel", "structlog", "opentelemetry.sdk", "multiprocessing", "httpcore", "anyio")
    heavy += ("guardrail.recorded.backtest",)
    sys.stderr.write(" ".join(name for name in heavy if name in sys.modules))
"""
    ended = subprocess.run(
        [sys.executable, "-c", script], cwd=project.folder, env=ENVIRON, capture_output=True, encoding="utf-8"
    )
    assert (ended.returncode, ended.stderr) == (0, "")


def test_exit_codes_are_documented_in_one_place() -> None:
    text = (CHECKOUT / "docs" / "cli.md").read_text("utf-8")
    documented = re.findall(r"^\| (\d+) \|", text, re.MULTILINE)
    assert [int(code) for code in documented] == [code.value for code in Exit]


@pytest.mark.parametrize(
    ("arguments", "input", "code"),
    [
        (("check",), None, Exit.GOOD),
        (("judge",), '{"id": 1}', Exit.GOOD),
        (("judge",), FAILURE, Exit.WRONG),
        (("verify", "is_paid", "--input", "order_id=18"), None, Exit.GOOD),
        (("verify", "is_paid", "--input", "order_id=99"), None, Exit.WRONG),
        (("verify", "refund_order", "--input", "order_id=99"), None, Exit.MISUSE),
        (("verify", "nothing"), None, Exit.MISUSE),
        (("runs", "list"), None, Exit.MISUSE),
        (("backtest", "nowhere"), None, Exit.MISUSE),
        (("doctor", "--config", "nowhere"), None, Exit.MISUSE),
        (("frobnicate",), None, Exit.MISUSE),
        (("check", "--frobnicate"), None, Exit.MISUSE),
    ],
)
def test_processes_end_with_the_documented_codes(
    project: Project, arguments: tuple[str, ...], input: str | None, code: Exit
) -> None:
    ended = process(*arguments, folder=project.folder, input=input)
    assert ended.code == code
    assert "Traceback" not in ended.err
    assert (ended.err != "") is (code == Exit.MISUSE)


def test_without_a_command_the_help_is_shown(project: Project) -> None:
    ended = process(folder=project.folder)
    assert ended.code == Exit.MISUSE
    assert "Commands" in ended.out


# Colours.


def test_colours_are_for_terminals_only(project: Project) -> None:
    assert "\x1b[" in on_terminal("check", folder=project.folder).out
    assert "\x1b[" not in process("check", folder=project.folder, FORCE_COLOR="1").out


def test_no_color_is_honoured(project: Project) -> None:
    ended = on_terminal("check", folder=project.folder, NO_COLOR="1")
    assert re.findall(r"\x1b\[(?:\d+;)*(?:3[0-9]|9[0-7])m", ended.out) == []


def test_json_on_a_terminal_has_no_colours(project: Project) -> None:
    ended = on_terminal("check", "--json", folder=project.folder)
    assert "\x1b" not in ended.out
    assert ended.json["ok"] is True


def test_a_terminal_of_another_encoding_gets_escapes_and_no_error(project: Project) -> None:
    ended = process("verify", "is_paid", "--input", "order_id=99", folder=project.folder, PYTHONIOENCODING="ascii")
    assert (ended.code, ended.err) == (1, "")
    assert "\\u2717 paid" in ended.out


# Interruptions.


@pytest.mark.parametrize("options", [[], ["--json"]])
def test_a_reader_that_has_gone_ends_the_command_quietly(project: Project, options: list[str]) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    ended = subprocess.run(
        arguments("check", *options), cwd=project.folder, env=ENVIRON, stdout=writing, stderr=subprocess.PIPE
    )
    os.close(writing)
    assert (ended.returncode, ended.stderr) == (Exit.CUT_SHORT, b"")


def test_ctrl_c_ends_the_command_quietly(project: Project) -> None:
    project.replace("{name: paid, store: shop,", "{name: slow, python: waiting:check}\n      - {store: shop,")
    (project.folder / "waiting.py").write_text(
        "import pathlib, time\n\n\ndef check(state):\n    pathlib.Path('waits').touch()\n    time.sleep(60)\n", "utf-8"
    )
    with subprocess.Popen(
        arguments("verify", "is_paid", "--input", "order_id=17"),
        cwd=project.folder,
        env=ENVIRON,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as running:
        while running.poll() is None and not (project.folder / "waits").exists():
            time.sleep(0.01)
        running.send_signal(signal.SIGINT)
        out, err = running.communicate(timeout=30)
    assert (running.returncode, out, err) == (Exit.CUT_SHORT, b"", b"")
