"""The example `examples/refunds` runs as it stands, and each of its stories gets the right verdict."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "refunds"

TOLD = {
    "right": ("I have refunded 19.95 to your card.", "verified"),
    "said-no": (None, "stopped at call 3 (send_voucher), write under hold: call 2 (refund_order) was rejected"),
    "wrong-amount": ("The 19.95 for your lamp are on their way.", "silent_failure: shop.refunds id="),
    "other-row": ("I have refunded 34.95 for order 20.", "silent_failure: shop.orders id=21: status changed"),
    "timeout": ("I am sorry, the refund did not go through.", "verified"),
}
FOUND = {"wrong-amount": "shop.refunds id=2: amount is 91.95", "other-row": "shop.orders id=21: status changed"}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A folder that holds the example where a checkout has it, so that nothing is left in the checkout."""
    leftovers = shutil.ignore_patterns("*.db*", "__pycache__")
    shutil.copytree(EXAMPLE, tmp_path / "examples" / "refunds", ignore=leftovers)
    return tmp_path


def run(folder: Path, script: str, *arguments: str) -> list[str]:
    """The lines that the script prints, when it is run in `folder`."""
    ended = subprocess.run(
        [sys.executable, "-W", "error", script, *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        encoding="utf-8",
        timeout=60,
    )
    assert (ended.returncode, ended.stderr) == (0, "")
    return ended.stdout.splitlines()


def rows(root: Path, query: str) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(root / "examples" / "refunds" / "shop.db")) as shop:
        return shop.execute(query).fetchall()


@pytest.mark.parametrize("script", ["main.py", "main_async.py"])
@pytest.mark.parametrize("story", TOLD)
def test_each_story_is_told_and_judged(root: Path, script: str, story: str) -> None:
    lines = run(root, f"examples/refunds/{script}", story)
    answer, verdict = TOLD[story]
    said = [] if answer is None else [f"agent: {answer}"]
    assert lines[: len(said)] == said
    assert lines[len(said)].startswith(f"guard: {verdict}")
    assert [line.startswith(f"  - {FOUND[story]}") for line in lines[len(said) + 1 :]] == [True] * (story in FOUND)


@pytest.mark.parametrize("script", ["main.py", "main_async.py"])
def test_it_runs_from_its_own_folder_too_and_again(root: Path, script: str) -> None:
    once, again = (run(root / "examples" / "refunds", script) for _ in range(2))
    assert once == again
    assert once[1] == "guard: silent_failure: shop.refunds id=2: amount is 91.95, expected 19.95"


def test_a_stopped_agent_has_sent_no_voucher(root: Path) -> None:
    run(root, "examples/refunds/main.py", "said-no")
    assert rows(root, "select count(*) from vouchers") == [(0,)]
    assert rows(root, "select status from orders where id = 18") == [("paid",)]


def test_a_refund_that_timed_out_was_made_once(root: Path) -> None:
    run(root, "examples/refunds/main.py", "timeout")
    assert rows(root, "select amount from refunds where order_id = 22") == [(27.95,)]


def test_every_story_is_tested_and_explained() -> None:
    assert json.loads((EXAMPLE / "stories.json").read_text("utf-8")).keys() == TOLD.keys()
    explained = (EXAMPLE / "README.md").read_text("utf-8")
    assert all(f"| `{story}` |" in explained for story in TOLD)
