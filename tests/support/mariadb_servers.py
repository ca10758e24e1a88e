"""MariaDB servers of the tests' own, for what the shared one must not be put through: settings, replicas, a sudden end.

They need the server's programs. Where these are missing the tests skip; in CI (`GUARDRAIL_CI`) they must be there.
"""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import subprocess
import time
from collections.abc import Generator, Sequence
from contextlib import closing, contextmanager
from functools import cache
from pathlib import Path

import pymysql
import pytest

from support.ports import free_port
from support.servers import connect_mariadb

_PATH = os.pathsep.join((os.environ.get("PATH", ""), "/usr/sbin", "/usr/local/sbin"))
_DEADLINE = 60
"""Seconds after which a server is not expected to start any more, however busy the machine is."""


class Server:
    """A server with an empty database `shop`, and a user `root` without a password."""

    def __init__(self, data: Path, options: Sequence[str]) -> None:
        self.port = free_port()
        self._log = data.with_suffix(".log")
        self._command = [
            *(_program("mariadbd"), "--no-defaults", f"--datadir={data}", f"--port={self.port}", *_AS_ROOT),
            *("--bind-address=127.0.0.1", "--socket=socket", "--pid-file=pid", "--skip-name-resolve"),
            _temporary(data),
            *("--innodb-buffer-pool-size=16M", "--character-set-server=utf8mb4", *options),
        ]
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """Its URL."""
        return f"mysql://root@127.0.0.1:{self.port}/shop"

    def start(self) -> None:
        """Start it, again if need be, and wait until it answers."""
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(self._command, stdout=log, stderr=log)
        until = time.monotonic() + _DEADLINE
        while not self._answers():
            assert self._process.poll() is None, self._log.read_text()
            assert time.monotonic() < until, self._log.read_text()
            time.sleep(0.02)

    def kill(self) -> None:
        """End it without a farewell."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def freeze(self) -> None:
        """Let it hang: it goes on listening and answers nothing."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def _answers(self) -> bool:
        try:
            with closing(connect_mariadb(self.url, database=None)) as admin, admin.cursor() as cursor:
                cursor.execute("CREATE DATABASE IF NOT EXISTS shop")
        except pymysql.OperationalError:
            return False
        return True


@contextmanager
def running(folder: Path, *options: str) -> Generator[Server]:
    """A server with its data in a new folder below this one, ended and removed after."""
    data = folder / f"mariadb-{secrets.token_hex(4)}"
    shutil.copytree(_installed(folder), data)
    server = Server(data, options)
    try:
        server.start()
        yield server
    finally:
        server.kill()
        shutil.rmtree(data)


_AS_ROOT = ["--user=root"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []


@cache
def _installed(folder: Path) -> Path:
    """A folder with the data of a new server, to be copied."""
    data = folder / "mariadb-installed"
    command = [_program("mariadb-install-db"), "--no-defaults", f"--datadir={data}", "--skip-test-db", *_AS_ROOT]
    made = subprocess.run(
        [*command, _temporary(data), "--auth-root-authentication-method=normal", "--innodb-log-file-size=4M"],
        capture_output=True,
        text=True,
        timeout=_DEADLINE,
    )
    assert made.returncode == 0, made.stdout + made.stderr
    return data


def _temporary(data: Path) -> str:
    """The option for a folder of its own: a server that starts deletes all temporary tables in the folder that it has.

    Another server that had them there falls over.
    """
    folder = data.with_suffix(".tmp")
    folder.mkdir(parents=True, exist_ok=True)
    return f"--tmpdir={folder}"


def _program(name: str) -> str:
    found = shutil.which(name, path=_PATH)
    if found is None:
        reason = f"needs MariaDB's {name} for a server of its own"
        if os.environ.get("GUARDRAIL_CI"):
            pytest.fail(f"CI {reason}")
        pytest.skip(reason)
    return found
