"""Telemetry that records in memory."""

from __future__ import annotations

import pytest

from support.recorder import Recorder


@pytest.fixture
def recorder() -> Recorder:
    """Telemetry that records in memory, with two declared tools and a task."""
    return Recorder(tools=("lookup_order", "refund_order"), tasks=("refund_order",))
