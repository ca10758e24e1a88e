"""What telemetry costs a call: by sampling, and by what the endpoint does."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager
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


ENDPOINTS: tuple[tuple[Conduct | Literal["dead"], str], ...] = (
    *((conduct, "") for conduct in ("live", "dead", "hanging", "refusing")),
    *((conduct, ", SDK's warnings off") for conduct in ("live", "hanging")),
)
"""The endpoints; where a queue is full, the SDK makes a log record of each span that it drops, unless told not to."""

TURNS, WARM = 14, 4
"""How often each endpoint has its turn, and how many turns pass before it counts: by then a queue is full."""


def endpoints(folder: Path) -> None:
    """The read, once a millisecond, while an OTLP endpoint takes spans, metrics and events, or is no good.

    One process for each endpoint; they take turns, so that what else the machine does is spread evenly. In wall time,
    and in CPU time of the calling thread.
    """
    took: dict[str, list[tuple[float, float]]] = {conduct + off: [] for conduct, off in ENDPOINTS}
    with ExitStack() as stack:
        processes = {
            conduct + off: stack.enter_context(_calling(conduct, str(folder), off)) for conduct, off in ENDPOINTS
        }
        for turn in range(TURNS):
            for name, process in processes.items():
                assert process.stdin is not None
                assert process.stdout is not None
                process.stdin.write("go\n")
                process.stdin.flush()
                taken = json.loads(process.stdout.readline())
                if turn >= WARM:
                    took[name] += taken
    figures = {name: _percentiles(found) for name, found in took.items()}
    for name, found in figures.items():
        ratio = found["p99_wall_us"] / figures["live"]["p99_wall_us"]
        say("guarded no-op read by endpoint", endpoint=name, calls=len(took[name]), **found, p99_wall_ratio=ratio)


CALLING = """
import json, logging, os, sys, time
from pathlib import Path
from benchmarks.guarded import guarded
from support.receiver import Sender

os.environ.update(OTEL_BSP_SCHEDULE_DELAY="200", OTEL_BLRP_SCHEDULE_DELAY="200")
logging.basicConfig(filename=os.devnull)
if sys.argv[3]:
    logging.getLogger("opentelemetry.sdk._shared_internal").setLevel(logging.ERROR)
sender = Sender(sys.argv[1], every=1.0)
with guarded(Path(sys.argv[2]), **sender.providers) as read:
    for line in sys.stdin:
        took = []
        for _ in range(1_000):
            started, worked = time.perf_counter(), time.thread_time()
            read(order_id=17)
            took.append((time.perf_counter() - started, time.thread_time() - worked))
            time.sleep(0.001)
        print(json.dumps(took), flush=True)
    os._exit(0)  # what waits for the endpoint is let go
"""


@contextmanager
def _calling(conduct: Conduct | Literal["dead"], folder: str, off: str) -> Generator[subprocess.Popen[str]]:
    """A process that makes a thousand calls for each line it is sent, and tells how long each took, in seconds."""
    environ = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
    with endpoint(conduct) as url:
        asked = [sys.executable, "-c", CALLING, url, folder, off]
        with subprocess.Popen(asked, env=environ, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
            yield process


def _percentiles(took: list[tuple[float, float]]) -> dict[str, float]:
    wall, cpu_time = (sorted(column) for column in zip(*took, strict=True))
    return {
        "p50_wall_us": wall[len(wall) // 2] * 1e6,
        "p99_wall_us": wall[len(wall) * 99 // 100] * 1e6,
        "p50_cpu_us": cpu_time[len(wall) // 2] * 1e6,
        "p99_cpu_us": cpu_time[len(wall) * 99 // 100] * 1e6,
    }
