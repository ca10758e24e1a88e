"""What tests need that is no dependency of the library: servers of npm, and the older SDK, installed once into a folder.

`GUARDRAIL_TOOLS` names the folder, else `.tools` in the checkout. Where something cannot be had the test skips, but not
under CI.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parents[2]
TOOLS = Path(os.environ.get("GUARDRAIL_TOOLS") or CHECKOUT / ".tools")
NPM = CHECKOUT / "tests" / "proxy" / "npm"
OLD_SDK = "mcp==1.30.0"


def npm_servers() -> Path:
    """The folder `node_modules` with the servers of `tests/proxy/npm`."""
    place = TOOLS / "npm"

    def install() -> None:
        if shutil.which("npm") is None:
            _cannot("npm is missing")
        place.mkdir(parents=True, exist_ok=True)
        for name in ("package.json", "package-lock.json"):
            shutil.copy(NPM / name, place / name)
        _run("npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", folder=place)

    _once(place, (NPM / "package-lock.json").read_text(), install)
    return place / "node_modules"


def old_sdk() -> Path:
    """The interpreter of an environment with the SDK of the generation before."""
    place = TOOLS / "mcp1"

    def install() -> None:
        _run(sys.executable, "-m", "venv", "--clear", str(place), folder=TOOLS)
        _run(str(place / "bin" / "python"), "-m", "pip", "install", "--quiet", OLD_SDK, folder=TOOLS)

    _once(place, OLD_SDK, install)
    return place / "bin" / "python"


def _once(place: Path, version: str, install: Callable[[], None]) -> None:
    mark = place / ".installed"
    with _locked(place.with_name(f"{place.name}.lock")):
        if not mark.exists() or mark.read_text() != version:
            install()
            mark.write_text(version)


@contextmanager
def _locked(path: Path) -> Generator[None]:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _run(*command: str, folder: Path) -> None:
    ended = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if ended.returncode:
        _cannot(f"{' '.join(command[:3])} failed: {ended.stderr[-500:]}")


def _cannot(why: str) -> None:
    if os.environ.get("GUARDRAIL_CI"):
        pytest.fail(why)
    pytest.skip(why)
