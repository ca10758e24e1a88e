"""What tests of several rooms share."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parents[1]


@pytest.fixture(scope="session")
def corpus() -> Path:
    """The folder of recorded runs: `GUARDRAIL_CORPUS`, else `../shared/corpus` beside the checkout.

    It is no part of the repository, so tests that read it skip where it is absent, but not under CI.
    """
    folder = Path(os.environ.get("GUARDRAIL_CORPUS") or CHECKOUT.parent / "shared" / "corpus")
    if folder.is_dir():
        return folder
    reason = f"no recorded runs at {folder}; set GUARDRAIL_CORPUS to their folder"
    if os.environ.get("GUARDRAIL_CI"):
        pytest.fail(reason)
    pytest.skip(reason)
