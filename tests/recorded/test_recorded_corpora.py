"""The recorded runs of real agents, replayed: the judges of this library."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from guardrail.recorded.backtest import BacktestReport, backtest

FOLDERS = ("airline", "workbench", "thinkingbox_retail", "thinkingbox_booking")


@pytest.fixture(scope="session", params=FOLDERS)
def report(request: pytest.FixtureRequest, corpus: Path) -> BacktestReport:
    return backtest(corpus / request.param, "balanced")


def share(counted: list[int]) -> float:
    return counted[0] / counted[1] if counted[1] else 0.0


def test_every_wrong_state_is_found_and_no_right_one_is_flagged(report: BacktestReport) -> None:
    state = report.state
    assert (state["false_positive"], state["false_negative"], state["unverified"]) == (0, 0, 0)
    assert state["true_positive"] > 0
    assert state["true_negative"] > 0


MOST_STOPPED = {"airline": 0.0, "workbench": 0.01}


def test_balanced_hardly_stops_a_run_that_passes(report: BacktestReport) -> None:
    stops = report.as_json()["stops"]
    if report.name in MOST_STOPPED:
        assert share(stops["passed"]) <= MOST_STOPPED[report.name]
        return
    by_fault: dict[str, list[int]] = stops["by_fault"]
    for fault, most in (("f_golden", 0.005), ("k_extra_empty_read", 0.005)):
        assert share(by_fault[fault]) <= most
    for fault in ("e_read_fails_then_retried", "g2_write_fails_then_retried"):
        assert by_fault[fault][0] == 0


def test_balanced_stops_or_holds_the_runs_in_which_a_write_failed(report: BacktestReport) -> None:
    told: dict[str, Any] = report.as_json()
    stops, holds = told["stops"], told["open_holds"]
    if report.name == "workbench":
        assert share(stops["failed"]) >= 0.055
    if report.name.startswith("thinkingbox"):
        fault = "g_write_fails"
        total = stops["by_fault"][fault][1]
        assert (stops["by_fault"][fault][0] + holds["by_fault"][fault][0]) / total >= 0.98
