"""A shop with a guard before its MCP server."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from guardrail.ledger.ledger import Ledger
from guardrail.ledger.records import RunHistory
from support.mcp_peers import Peer, proxied
from support.project import CONFIGURATION, Project
from support.shop import Shop

TOOLS = """
  fail: {effect: write}
  need_input: {effect: write}
  begin_task: {effect: write}
servers:
  shop:
    env: {SHOP_KEY: "${env:SHOP_KEY}"}
"""
READS = ("die", "show_env", "long_answer", "mutter", "ask_client", "report", "answer_twice")


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """A folder with the shop and its configuration."""
    made = Project(tmp_path, Shop(tmp_path / "shop.db"))
    declared = "".join(f"\n  {name}: {{effect: read}}" for name in READS)
    made.write(CONFIGURATION.replace("\ntasks:", declared + TOOLS + "tasks:"))
    return made


Start = Callable[..., Peer]


@pytest.fixture
def start(project: Project) -> Iterator[Start]:
    """Starts a proxy before the shop's server, and begins a session."""
    with ExitStack() as stack:

        def started(*options: object, **environ: str) -> Peer:
            peer = proxied(project.folder, *options, SHOP_KEY="s3cret-key", **environ)
            return stack.enter_context(peer).begin()

        yield started


@pytest.fixture
def runs(project: Project) -> Callable[[], list[RunHistory]]:
    """What the ledger knows of the runs, the first one first."""

    def known() -> list[RunHistory]:
        ledger = Ledger(project.ledger)
        try:
            found = [ledger.load_run(summary.run.id) for summary in ledger.runs()]
        finally:
            ledger.close()
        return sorted((run for run in found if run is not None), key=lambda run: run.run.started)

    return known
