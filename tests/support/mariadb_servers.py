"""MariaDB servers of the tests' own, for what the shared one must not be put through: settings, replicas, a sudden end.

They need the server's programs. Where these are missing the tests skip; in CI (`GUARDRAIL_CI`) they must be there.
"""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Generator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pymysql
import pytest

from support.servers import connect_mariadb

_PATH = os.pathsep.join((os.environ.get("PATH", ""), "/usr/sbin", "/usr/local/sbin"))
_DEADLINE = 60
"""Seconds after which a server is not expected to start any more, however busy the machine is."""


@dataclass(frozen=True)
class Server:
    """A running server with an empty database `shop`, and a user `root` without a password."""

    port: int
    process: subprocess.Popen[bytes]

    @property
    def url(self) -> str:
        """Its URL."""
        return f"mysql://root@127.0.0.1:{self.port}/shop"

    def kill(self) -> None:
        """End it without a farewell."""
        self.process.kill()
        self.process.wait()

    def freeze(self) -> None:
        """Let it hang: it goes on listening and answers nothing."""
        self.process.send_signal(signal.SIGSTOP)


@contextmanager
def running(folder: Path, *options: str) -> Generator[Server]:
    """A server with its data in a new folder below this one, stopped after."""
    data = folder / secrets.token_hex(4)
    shutil.copytree(_installed(folder), data)
    port = _free_port()
    command = [
        *(_program("mariadbd"), "--no-defaults", f"--datadir={data}", f"--port={port}", "--bind-address=127.0.0.1"),
        *("--socket=socket", "--pid-file=pid", "--skip-name-resolve", "--innodb-buffer-pool-size=16M"),
        *("--character-set-server=utf8mb4", "--collation-server=utf8mb4_general_ci", *_AS_ROOT, *options),
    ]
    with (folder / f"{data.name}.log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
    server = Server(port, process)
    try:
        _wait_for(server, Path(log.name))
        yield server
    finally:
        with suppress(ProcessLookupError):
            process.send_signal(signal.SIGCONT)
        server.kill()
        shutil.rmtree(data)


_AS_ROOT = ["--user=root"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []


@cache
def _installed(folder: Path) -> Path:
    """A folder with the data of a new server, to be copied."""
    data = folder / "installed"
    command = [_program("mariadb-install-db"), "--no-defaults", f"--datadir={data}", "--skip-test-db", *_AS_ROOT]
    made = subprocess.run(
        [*command, "--auth-root-authentication-method=normal", "--innodb-log-file-size=4M"],
        capture_output=True,
        text=True,
        timeout=_DEADLINE,
    )
    assert made.returncode == 0, made.stdout + made.stderr
    return data


def _program(name: str) -> str:
    found = shutil.which(name, path=_PATH)
    if found is None:
        reason = f"needs MariaDB's {name} for a server of its own"
        if os.environ.get("GUARDRAIL_CI"):
            pytest.fail(f"CI {reason}")
        pytest.skip(reason)
    return found


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait_for(server: Server, log: Path) -> None:
    until = time.monotonic() + _DEADLINE
    while True:
        try:
            with closing(connect_mariadb(server.url.removesuffix("/shop"))) as admin, admin.cursor() as cursor:
                cursor.execute("CREATE DATABASE shop")
            return
        except pymysql.OperationalError:
            assert server.process.poll() is None, log.read_text()
            assert time.monotonic() < until, log.read_text()
            time.sleep(0.05)
