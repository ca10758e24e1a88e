"""The command line, run in this process and as a process of its own."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

from guardrail.cli.main import app

TESTS = Path(__file__).parents[1]

ENVIRON: Mapping[str, str] = {
    **{name: value for name, value in os.environ.items() if name not in ("FORCE_COLOR", "GITHUB_ACTIONS", "NO_COLOR")},
    "COLUMNS": "80",
    "TZ": "UTC",
    "PYTHONPATH": os.pathsep.join([str(TESTS), str(TESTS.parent)]),
}
"""What processes are started with: a terminal of 80 columns, this checkout, and the modules of `tests/support`."""


@dataclass(frozen=True, slots=True)
class Ended:
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """What is on stdout, which must be one JSON document."""
        return json.loads(self.out)

    @property
    def lines(self) -> list[str]:
        """The lines on stdout, without the blanks that fill tables."""
        return [line.rstrip() for line in self.out.splitlines()]

    @property
    def shown(self) -> str:
        """The text on stdout, without the blanks that fill tables."""
        return "\n".join(self.lines)


def command(*args: object, input: str | bytes | None = None) -> Ended:
    """Run a command in this process; an error that no command should let out comes out here."""
    result = CliRunner().invoke(app, [str(arg) for arg in args], input=input, prog_name="guardrail")
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return Ended(result.exit_code, result.stdout, result.stderr)


def arguments(*args: object) -> list[str]:
    """The command as a process would be started."""
    return [sys.executable, "-m", "guardrail", *map(str, args)]


def process(*args: object, folder: Path, input: str | None = None, **environ: str) -> Ended:
    """Run a command as a process of its own."""
    ended = subprocess.run(
        arguments(*args),
        cwd=folder,
        env={**ENVIRON, **environ},
        input=input,
        capture_output=True,
        encoding="utf-8",
        timeout=60,
    )
    return Ended(ended.returncode, ended.stdout, ended.stderr)


def on_terminal(*args: object, folder: Path, typed: str | None = None, **environ: str) -> Ended:
    """Run a command whose stdout is a terminal; with something `typed`, its stdin and stderr are too.

    What it writes to stderr is then part of `out`, as on any terminal.
    """
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        arguments(*args),
        cwd=folder,
        env={**ENVIRON, "TERM": "xterm-256color", **environ},
        stdin=subprocess.DEVNULL if typed is None else theirs,
        stdout=theirs,
        stderr=subprocess.PIPE if typed is None else theirs,
        start_new_session=True,
    ) as running:
        os.close(theirs)
        if typed is not None:
            os.write(ours, typed.encode())
        out = b"".join(iter(lambda: _read(ours), b""))
        err = b"" if running.stderr is None else running.stderr.read()
    os.close(ours)
    return Ended(running.returncode, out.decode().replace("\r\n", "\n"), err.decode())


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65536)
    except OSError:  # how a terminal says that the other side has closed it
        return b""
