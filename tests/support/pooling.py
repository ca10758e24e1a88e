"""A PgBouncer in transaction mode before a PostgreSQL server, with one session of it for all who come."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NoReturn
from urllib.parse import urlsplit, urlunsplit

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

_CONFIGURATION = """\
[databases]
{database} = host={host} port={port} dbname={database} user={user}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {own}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = 1
ignore_startup_parameters = options
"""


@contextmanager
def pooler(server: str, folder: Path) -> Generator[str]:
    """The URL of a server by way of a pooler. Where there can be none the test is skipped, in CI only if it cannot be had."""
    program = shutil.which("pgbouncer", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")
    found = conninfo_to_dict(server)
    if program is None and os.geteuid() == 0 and shutil.which("apt-get"):
        _skip("needs pgbouncer: apt-get install pgbouncer")
    if program is None:
        pytest.skip("needs pgbouncer, which this machine does not let CI install")
    if os.geteuid() == 0 and str(found.get("host", "")).startswith("/"):
        _skip("needs a PostgreSQL that pgbouncer can reach as a user who may do little")
    with socket.create_server(("127.0.0.1", 0)) as free:
        own = free.getsockname()[1]
    names = {"host": found.get("host") or "127.0.0.1", "port": found.get("port") or 5432, "user": found["user"]}
    file = folder / "pgbouncer.ini"
    file.write_text(_CONFIGURATION.format(database=found["dbname"], own=own, **names))
    command = [program, "-q", *(["-u", "nobody"] if os.geteuid() == 0 else []), str(file)]
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    parts = urlsplit(server)
    url = urlunsplit(parts._replace(netloc=f"{found['user']}@127.0.0.1:{own}"))
    try:
        _wait_for(url, process)
        yield url
    finally:
        process.terminate()
        process.wait()


def _skip(reason: str) -> NoReturn:
    pytest.skip(reason)  # CI installs it where it can


def _wait_for(url: str, process: subprocess.Popen[bytes]) -> None:
    while process.poll() is None:
        with suppress(psycopg.OperationalError):
            psycopg.connect(url, connect_timeout=5).close()
            return
        time.sleep(0.01)
    raise AssertionError(f"pgbouncer ended with {process.returncode}")
