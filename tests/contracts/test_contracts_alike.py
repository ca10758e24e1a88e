"""A contract judges alike whatever the store: the same findings, and on databases in the same words.

JSON has no types that would say how a value reads.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from support.contracts import CASE_NAMES, Mode, Outcome, Place, Scene, case
from support.databases import opened


class Stage:
    """The scenes of one case, on stores of every kind; another case takes their place."""

    def __init__(self, folder: Path, server: Path) -> None:
        self._folder = folder
        self._server = server
        self._name = ""
        self._scenes: dict[Place, Scene] = {}
        self._opening = ExitStack()
        self._texts: dict[tuple[str, str], list[str]] = {}

    def play(self, name: str, agent: str, place: Place, mode: Mode) -> Outcome:
        """What a run of the agent comes to."""
        played = case(name).agents[agent]
        if name != self._name or case(name).apart or played.contract:
            self.close()
            self._name = name
        if place not in self._scenes:
            folder = Path(tempfile.mkdtemp(dir=self._folder))
            kind = "sqlite" if place == "http" else place
            database = self._opening.enter_context(opened(kind, folder, self._server))
            scene = Scene(case(name), database, folder, place, played.contract)
            self._scenes[place] = self._opening.enter_context(closing(scene))
        return self._scenes[place].play(played, mode)

    def texts(self, name: str, agent: str) -> list[str]:
        """How what is found on SQLite reads."""
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


PLAYED = [(name, agent, place) for name in CASE_NAMES for agent in case(name).agents for place in case(name).places]


def as_written(text: str) -> str:
    """A text without what a column's type forces upon a number: as many decimals as the type has."""
    return re.sub(r"\d+\.\d+", lambda number: number[0].rstrip("0").rstrip("."), text)


@pytest.mark.parametrize("mode", ["with", "async with"])
@pytest.mark.parametrize(("name", "agent", "place"), PLAYED)
def test_a_contract_judges_alike_on_every_store(stage: Stage, name: str, agent: str, place: Place, mode: Mode) -> None:
    played = case(name).agents[agent]
    if place in played.lacks:
        pytest.skip(played.lacks[place])
    ending = played.ending(place)
    outcome = stage.play(name, agent, place, mode)
    assert outcome.findings == sorted(ending.findings)
    assert (outcome.verdict.kind, outcome.verdict.alternative) == (ending.comes_to, played.alternative)
    assert outcome.refused == played.refused
    said = "\n".join(outcome.texts)
    assert [pattern for pattern in ending.says if not re.search(pattern, said)] == []
    assert not [secret for secret in case(name).secrets if secret in repr(outcome.verdict)]
    if place in ("postgres", "mariadb") and not ending.says and not {"sqlite", place} & {*played.lacks, *played.unlike}:
        assert list(map(as_written, outcome.texts)) == list(map(as_written, stage.texts(name, agent)))
