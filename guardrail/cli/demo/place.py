"""The folder that the demo leaves behind."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from guardrail.cli.demo.example import CONFIGURATION
from guardrail.cli.exits import Misuse

_MARK: Final = "Left by `guardrail demo`, which replaces these files when it runs again."
_README: Final = f"""{_MARK}

guardrail.yaml  the configuration: what the tools do, what a refund must have done
shop.db         the shop after the five runs
guardrail.db    the ledger: every run, call, hold and finding
trace.jsonl     the trace: one OpenTelemetry span a line

In this folder `guardrail runs list` and `guardrail runs show wrong-amount` read the ledger.
"""


@dataclass(frozen=True, slots=True)
class Place:
    """A folder and the demo's own files in it."""

    folder: Path

    @property
    def configuration(self) -> Path:
        """The example's configuration."""
        return self.folder / "guardrail.yaml"

    @property
    def shop(self) -> Path:
        """The shop's database."""
        return self.folder / "shop.db"

    @property
    def ledger(self) -> Path:
        """The ledger, where the configuration puts it when it says nothing."""
        return self.folder / "guardrail.db"

    @property
    def trace(self) -> Path:
        """The spans, one a line."""
        return self.folder / "trace.jsonl"

    @property
    def _mark(self) -> Path:
        return self.folder / "README.txt"

    def prepare(self) -> None:
        """Make the folder, without what an earlier demo left. Raises `Misuse` when a file is not the demo's."""
        there = [file for file in self._own() if file.exists()]
        if there and not self._is_ours():
            raise Misuse(f"{there[0]} is there, and is not the demo's: name another folder with --into DIR")
        self.folder.mkdir(parents=True, exist_ok=True)
        for file in there:
            file.unlink()
        self._mark.write_text(_README, "utf-8")
        shutil.copyfile(CONFIGURATION, self.configuration)

    def _own(self) -> Iterator[Path]:
        yield from (self._mark, self.configuration, self.trace)
        for database in (self.shop, self.ledger):
            yield from (database.with_name(f"{database.name}{ending}") for ending in ("", "-journal", "-wal", "-shm"))

    def _is_ours(self) -> bool:
        return self._mark.is_file() and self._mark.read_text("utf-8", "replace").startswith(_MARK)
