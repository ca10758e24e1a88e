"""Ports of this machine: one that is free, and waiting until somebody listens at one."""

from __future__ import annotations

import secrets
import socket
import subprocess
import time
from contextlib import closing, suppress


def free_port() -> int:
    """A port that nobody listens at, of those that no connection gets by chance before the server does."""
    while True:
        port = secrets.choice(range(20_000, 32_000))
        with closing(socket.socket()) as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


def until_it_listens(port: int, process: subprocess.Popen[bytes], seconds: float = 30) -> None:
    """Wait until a process listens at a port. Raises `AssertionError` where it has ended, or time is up."""
    until = time.monotonic() + seconds
    while time.monotonic() < until and process.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port)).close()
        except OSError:
            time.sleep(0.05)
        else:
            return
    raise AssertionError(f"nothing listens at {port}; the process has ended with {process.poll()}")
