"""Each test of the contract is run for every kit of this environment, in each of its modes."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from support.kits.registry import FRAMEWORKS, WANTED, kits
from support.kits.stage import Kit, Mode
from support.kits.theatre import Theatre

os.environ.update(  # they would call home
    CREWAI_DISABLE_TELEMETRY="true",
    CREWAI_DISABLE_VERSION_CHECK="true",
    CREWAI_TESTING="true",
    HAYSTACK_TELEMETRY_ENABLED="False",
    LITELLM_LOCAL_MODEL_COST_MAP="True",
)
if "crewai" in WANTED:  # which keeps things in one's home
    HOME = TemporaryDirectory()
    os.environ.update(HOME=HOME.name, XDG_DATA_HOME=HOME.name)
KITS = kits()


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """A framework's own tests are those of the environments that have it; without any framework, nothing is tested here."""
    if not collection_path.name.startswith("test_"):
        return None
    named = [name for name in FRAMEWORKS if collection_path.name.startswith(f"test_{name}_")]
    return True if not WANTED or (named and max(named, key=len) not in WANTED) else None


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "theatre" not in metafunc.fixturenames:
        return
    name = metafunc.function.__name__
    metafunc.parametrize(
        "theatre",
        [played(kit, mode, name) for kit in KITS for mode in kit.modes if is_for(metafunc, kit, mode)],
        indirect=True,
    )


def is_for(metafunc: pytest.Metafunc, kit: Kit, mode: Mode) -> bool:
    """Whether a test says something of a mode: it may be marked for asynchronous ones, or for kits that nest agents."""
    marks = {mark.name for mark in metafunc.definition.iter_markers()}
    return not ("asynchronous" in marks and not mode.startswith("async")) and not ("nested" in marks and not kit.nests)


def played(kit: Kit, mode: Mode, test: str) -> object:
    """A kit in a mode; where the framework does not let a test be, it must fail, and the reason is told."""
    limit = kit.limits.get(f"{test} ({mode})", kit.limits.get(test))
    # Strict: a limit that a framework has lifted fails here, and is taken out of the kit and the table.
    marks = [] if limit is None else [pytest.mark.xfail(reason=limit, strict=True)]
    return pytest.param((kit, mode), id=f"{kit.name}, {mode}", marks=marks)


@pytest.fixture
def theatre(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Theatre]:
    kit, mode = request.param
    with Theatre(kit, mode, tmp_path) as made:
        yield made


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if item.path.is_relative_to(here):
            # Frameworks warn of their own doings; only what the library does must raise no warning.
            item.add_marker(pytest.mark.filterwarnings("ignore"), append=False)
            item.add_marker(pytest.mark.timeout(60))


class Results:
    """What became of each test, for the table in the docs: written by the process that starts the others."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._found: dict[str, dict[str, str]] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        test, _, rest = report.nodeid.rpartition("::")[2].partition("[")
        kit = rest.partition(",")[0]
        if report.when == "call" and kit in {kit.name for kit in KITS}:
            limit = getattr(report, "wasxfail", None)
            self._found.setdefault(kit, {})[f"{test}[{rest}"] = report.outcome if limit is None else f"limit: {limit}"

    def pytest_sessionfinish(self) -> None:
        self._file.write_text(json.dumps(self._found, indent=1, sort_keys=True))


def pytest_configure(config: pytest.Config) -> None:
    file = os.environ.get("GUARDRAIL_ADAPTER_RESULTS")
    if file and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Results(Path(file)))


def pytest_report_header() -> str:
    return f"frameworks: {', '.join(WANTED) or 'none; nox runs them, each in an environment of its own'}"
