"""A contract judges alike whatever the database: the same findings, in the same words."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from support.contracts import CASE_NAMES, Mode, Outcome, Scene, case
from support.databases import KINDS, Kind, opened


class Stage:
    """The scenes of one case, on databases of every kind; another case takes their place."""

    def __init__(self, folder: Path, server: Path) -> None:
        self._folder = folder
        self._server = server
        self._name = ""
        self._scenes: dict[Kind, Scene] = {}
        self._opening = ExitStack()
        self._texts: dict[tuple[str, str], list[str]] = {}

    def play(self, name: str, agent: str, kind: Kind, mode: Mode) -> Outcome:
        """What a run of the agent comes to."""
        if name != self._name:
            self.close()
            self._name = name
        if kind not in self._scenes:
            folder = Path(tempfile.mkdtemp(dir=self._folder))
            database = self._opening.enter_context(opened(kind, folder, self._server))
            self._scenes[kind] = self._opening.enter_context(closing(Scene(case(name), database, folder)))
        return self._scenes[kind].play(case(name).agents[agent], mode)

    def texts(self, name: str, agent: str) -> list[str]:
        """How the findings of a run on SQLite read."""
        if (name, agent) not in self._texts:
            self._texts[name, agent] = self.play(name, agent, "sqlite", "with").texts
        return self._texts[name, agent]

    def close(self) -> None:
        """Close all scenes."""
        self._scenes.clear()
        self._opening.close()


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory, postgres_folder: Path) -> Iterator[Stage]:
    with closing(Stage(tmp_path_factory.mktemp("stage"), postgres_folder)) as made:
        yield made


PLAYED = [(name, agent) for name in CASE_NAMES for agent in case(name).agents]


def as_written(text: str) -> str:
    """A finding's text without what a column's type forces upon a number: as many decimals as the type has."""
    return re.sub(r"\d+\.\d+", lambda number: number[0].rstrip("0").rstrip("."), text)


@pytest.mark.parametrize("mode", ["with", "async with"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("name", "agent"), PLAYED)
def test_a_contract_judges_alike_on_every_database(stage: Stage, name: str, agent: str, kind: Kind, mode: Mode) -> None:
    declared = case(name).agents[agent]
    if kind in declared.lacks:
        pytest.skip(declared.lacks[kind])
    outcome = stage.play(name, agent, kind, mode)
    assert outcome.findings == sorted(declared.findings)
    assert (outcome.verdict.kind, outcome.verdict.alternative) == (declared.comes_to, declared.alternative)
    assert outcome.refused == declared.refused
    assert not [secret for secret in case(name).secrets if secret in repr(outcome.verdict)]
    if kind != "sqlite" and "sqlite" not in declared.lacks:
        assert list(map(as_written, outcome.texts)) == list(map(as_written, stage.texts(name, agent)))
