"""The built wheel works without the checkout."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from zipfile import ZipFile

import pytest

CHECKOUT = Path(__file__).parents[1]


def output_of(command: Sequence[str | Path], folder: Path) -> str:
    """What a command prints, run in `folder` without anything of this process's Python."""
    environ = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "GUARDRAIL"))}
    ended = subprocess.run(command, cwd=folder, env=environ, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    assert ended.returncode == 0, f"{' '.join(map(str, command))}\n{ended.stdout}\n{ended.stderr}"
    return ended.stdout


def built(source: Path, target: str, folder: Path) -> Path:
    """The sdist or the wheel that hatchling makes of a source tree."""
    output_of([sys.executable, "-m", "hatchling", "build", "--target", target, "--directory", folder], source)
    (made,) = folder.iterdir()
    return made


def source_from_sdist(folder: Path) -> Path:
    with tarfile.open(built(CHECKOUT, "sdist", folder / "sdist")) as sdist:
        sdist.extraction_filter = getattr(tarfile, "data_filter", None)  # Python before 3.11.4 has none
        sdist.extractall(folder / "source")
    (source,) = (folder / "source").iterdir()
    return source


def contents(wheel: Path) -> Iterator[str]:
    with ZipFile(wheel) as archive:
        yield from archive.namelist()


def installed(wheel: Path, folder: Path) -> Path:
    """The folder of programs of a fresh environment that holds the wheel and what it declares to need."""
    programs = folder / "environment" / "bin"
    output_of([sys.executable, "-m", "venv", programs.parent], folder)
    pins = CHECKOUT / "constraints.txt"
    output_of([programs / "python", "-m", "pip", "install", "--quiet", "--constraint", pins, wheel], folder)
    return programs


WHEREABOUTS = """
import guardrail
from importlib.resources import files
from guardrail.declare import bundled

assert files("guardrail").joinpath("py.typed").is_file()
assert {"balanced", "strict", "observe"} <= set(bundled.names())
assert all(bundled.policy(name) for name in bundled.names())
assert bundled.sentences()
print(guardrail.__file__)
"""


def test_the_wheel_is_the_same_from_the_checkout_and_from_the_sdist(tmp_path: Path) -> None:
    from_checkout = built(CHECKOUT, "wheel", tmp_path / "one")
    from_sdist = built(source_from_sdist(tmp_path), "wheel", tmp_path / "two")
    assert sorted(contents(from_checkout)) == sorted(contents(from_sdist))


def test_the_wheel_holds_the_library_its_adapters_and_its_policies_and_nothing_else(tmp_path: Path) -> None:
    names = list(contents(built(CHECKOUT, "wheel", tmp_path / "wheel")))
    adapters = {folder.name for folder in (CHECKOUT / "adapters").glob("guardrail_*")}
    assert len(adapters) > 1
    expected = {"guardrail", "guardrail_runtime-0.1.0.dist-info", *adapters}
    assert {name.partition("/")[0] for name in names} == expected
    assert {f"{adapter}/py.typed" for adapter in adapters} <= set(names)
    assert {"guardrail/py.typed", "guardrail/policies/balanced.yaml"} <= set(names)
    assert any(name.endswith("licenses/LICENSE") for name in names)


@pytest.mark.timeout(600)  # it installs every dependency into a fresh environment
def test_the_installed_wheel_works_without_the_checkout(tmp_path: Path) -> None:
    programs = installed(built(source_from_sdist(tmp_path), "wheel", tmp_path / "wheel"), tmp_path)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    found = output_of([programs / "python", "-W", "error", "-c", WHEREABOUTS], elsewhere)
    assert Path(found.strip()).is_relative_to(programs.parent)
    assert "0.1.0" in output_of([programs / "guardrail", "--version"], elsewhere)
    assert "silent" in output_of([programs / "guardrail", "demo"], elsewhere)
