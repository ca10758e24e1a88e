"""Which process a run belongs to, and whether it still lives."""

from __future__ import annotations

import os
import secrets
import socket
from functools import cache
from pathlib import Path

_SLACK = 60.0  # seconds by which clocks may disagree before a process counts as younger than the run


@cache
def this_host() -> str:
    """The name of this machine, as runs record it."""
    return socket.gethostname()


@cache
def this_process() -> int:
    """A number that no other process has had or will have, on whichever host."""
    return secrets.randbits(63)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=this_process.cache_clear)


def is_alive(pid: int, host: str, since: float, present: bool | None) -> bool | None:
    """Whether the process that opened a run at `since` still lives; None when that cannot be known from here.

    `present` is what the ledger's database knows of it: True, the process is connected; False, it was and is not
    any more, so if it lives it has lost its connection; None, nothing. Of a process on this host, the host has the
    last word on that.

    A process that began after `since` only got the number of the one that is gone: after a restart of a
    machine or a container that is the rule rather than the exception.
    """
    if present or host != this_host() or os.name != "posix":
        return present
    if not _exists(pid):
        return False
    began = _beginning(pid)
    return began is None or began <= since + _SLACK


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except PermissionError:
        return True
    except (ProcessLookupError, OverflowError):
        return False
    return True


def _beginning(pid: int) -> float | None:
    """When a process began, in seconds since the epoch; infinity for one that only waits to be buried.

    From /proc, where there is one (proc(5): the fields after the command's name in parentheses are the
    state and, as the twentieth, the start in ticks after boot); else None.
    """
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        boot = next(line for line in Path("/proc/stat").read_text().splitlines() if line.startswith("btime "))
    except (OSError, StopIteration):
        return None
    if fields[0] in "ZX":
        return float("inf")
    return float(boot.split()[1]) + float(fields[19]) / os.sysconf("SC_CLK_TCK")
