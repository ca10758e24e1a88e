"""Where a command finds its configuration and its ledger."""

from __future__ import annotations

import os
import sys
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from guardrail.cli.exits import Misuse

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from guardrail.declare.configuration import Configuration
    from guardrail.ledger.ledger import Ledger
    from guardrail.run.live import Live

DEFAULT = Path("guardrail.yaml")


def configuration_file(file: Path | None, named_by: str = "--config FILE") -> Path:
    """The named configuration, else the default one; raises `Misuse` where there is none, and says how to name it."""
    named = file or DEFAULT
    if named.is_file():
        return named
    raise Misuse(f"there is no configuration {named}: name it with {named_by}, or go to where it lies")


def chosen_file(file: Path | None) -> Path | None:
    """The configuration of a command that can do without: the named one, else the default one if it is there."""
    return configuration_file(file) if file is not None or DEFAULT.is_file() else None


def configuration(file: Path | None) -> Configuration:
    """The configuration of a file, or one that declares nothing. Raises `ConfigurationError`."""
    from guardrail.declare.configuration import Configuration
    from guardrail.declare.loading import load

    return Configuration() if file is None else load(file)


def live(file: Path | None) -> AbstractContextManager[Live]:
    """The configuration made live, to be closed. Raises `ConfigurationError` and `StoreError`."""
    from guardrail.run.live import Live

    find_modules()
    return closing(Live(configuration(file), {}, None if file is None else file.parent))


def find_modules() -> None:
    """Let `module:function` of a contract be found in the working directory, as `python -m` does."""
    if os.getcwd() not in sys.path and "" not in sys.path:
        sys.path.insert(0, os.getcwd())


def opened_ledger(ledger: str | None, config: Path | None) -> AbstractContextManager[Ledger]:
    """The ledger that is named, else the configuration's, to be closed.

    Raises `Misuse` where there is no such file, and `LedgerError`.
    """
    from guardrail.ledger.ledger import Ledger
    from guardrail.ledger.opening import is_url

    place = ledger if ledger is not None else _declared_ledger(chosen_file(config))
    if not is_url(place) and not Path(place).is_file():
        raise Misuse(
            f"there is no ledger {place}: name it with --ledger PLACE, or its configuration with --config FILE"
        )
    return closing(Ledger(place))


def _declared_ledger(file: Path | None) -> str:
    from guardrail.run.live import ledger_place

    place = ledger_place(configuration(file), None if file is None else file.parent)
    if place == "memory":
        raise Misuse(f"{file} keeps its ledger in memory: nothing of it is left once the process has ended")
    return place
