"""What telemetry costs a call: by sampling, and by what the endpoint does."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Literal

from benchmarks.guarded import guarded, sdk
from benchmarks.measuring import ROUNDS, cpu, say
from support.receiver import Conduct, endpoint


def sampling(folder: Path) -> None:
    """The read in a run that is not sampled, by what keeps it should it be flagged."""
    from opentelemetry.sdk.trace.sampling import ALWAYS_OFF, ParentBased, Sampler

    from guardrail.telemetry.sampling import KeepFlagged, KeepSummary, TailKeeper

    never = ParentBased(ALWAYS_OFF)
    cases: tuple[tuple[str, Sampler | None, Callable[[Any], Any]], ...] = (
        ("sampled", None, lambda batch: batch),
        ("not sampled", never, lambda batch: batch),
        ("not sampled, KeepSummary", KeepSummary(never), lambda batch: batch),
        ("not sampled, KeepFlagged and TailKeeper", KeepFlagged(never), TailKeeper),
    )
    providers = {name: sdk(sampler, around) for name, sampler, around in cases}
    figures: dict[str, list[float]] = {name: [] for name in providers}
    for _ in range(ROUNDS):
        for name in providers:  # one run at a time, for one inside another would be sampled as that is
            with guarded(folder, **providers[name]) as read:
                cpu(partial(read, order_id=17), 300)
                figures[name].append(cpu(partial(read, order_id=17), 1000))
    for name, found in figures.items():
        say("guarded no-op read, by sampling", case=name, us=statistics.median(found))


def endpoints(folder: Path) -> None:
    """The read, once a millisecond, while an OTLP endpoint takes spans, metrics and events, or is no good; wall."""
    figures: dict[str, list[tuple[float, float]]] = {conduct: [] for conduct in ENDPOINTS}
    for _ in range(7):
        for conduct in ENDPOINTS:
            with endpoint(conduct) as url:
                figures[conduct].append(paced(url, str(folder)))
    for name, found in figures.items():
        p50, p99 = (statistics.median(column) for column in zip(*found, strict=True))
        ratio = statistics.median(one[1] / live[1] for one, live in zip(found, figures["live"], strict=True))
        say("guarded no-op read by endpoint, wall", endpoint=name, p50_us=p50, p99_us=p99, p99_ratio=ratio)


ENDPOINTS: tuple[Conduct | Literal["dead"], ...] = ("live", "dead", "hanging", "refusing")

PACED = """
import json, logging, os, sys, time
from pathlib import Path
from benchmarks.guarded import guarded
from support.receiver import Sender

os.environ.update(OTEL_BSP_SCHEDULE_DELAY="500", OTEL_BLRP_SCHEDULE_DELAY="500")
logging.basicConfig(filename=os.devnull)
sender = Sender(sys.argv[1], every=1.0)
with guarded(Path(sys.argv[2]), **sender.providers) as read:
    for _ in range(500):
        read(order_id=17)
    took = []
    for _ in range(4_000):
        started = time.perf_counter()
        read(order_id=17)
        took.append(time.perf_counter() - started)
        time.sleep(0.001)
took.sort()
print(json.dumps([took[len(took) // 2] * 1e6, took[len(took) * 99 // 100] * 1e6]), flush=True)
os._exit(0)  # what waits for the endpoint is let go
"""


def paced(url: str, folder: str) -> tuple[float, float]:
    """The 50th and the 99th percentile of the read, in microseconds, in a process that sends to this endpoint."""
    environ = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
    asked = [sys.executable, "-c", PACED, url, folder]
    done = subprocess.run(asked, env=environ, check=True, capture_output=True, text=True)
    p50, p99 = json.loads(done.stdout)
    return p50, p99
