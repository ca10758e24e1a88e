"""Measuring: medians of CPU time, all threads of the process, in rounds beside a plain form of the same."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

ROUNDS = 15


def cpu(work: Callable[[], object], times: int) -> float:
    """Microseconds of CPU time that one piece of work takes, over so many."""
    started = time.process_time()
    for _ in range(times):
        work()
    return (time.process_time() - started) / times * 1e6


def wall(work: Callable[[], object], times: int) -> float:
    """Microseconds of wall time that one piece of work takes, over so many."""
    started = time.perf_counter()
    for _ in range(times):
        work()
    return (time.perf_counter() - started) / times * 1e6


def beside(
    work: Callable[[], object],
    plain: Callable[[], object],
    times: int,
    clock: Callable[[Callable[[], object], int], float] = cpu,
    rounds: int = ROUNDS,
) -> tuple[float, float, float]:
    """Medians of the work and of its plain form, taken in turn, and of their ratio round by round."""
    work()
    plain()
    pairs = [(clock(work, times), clock(plain, times)) for _ in range(rounds)]
    ratios = [one / max(other, 1e-9) for one, other in pairs]
    return statistics.median(p[0] for p in pairs), statistics.median(p[1] for p in pairs), statistics.median(ratios)


def in_fresh_process(code: str, rounds: int = 7) -> float:
    """The median of what a fresh interpreter prints as a number, its bytecode compiled before."""
    run = [sys.executable, "-c", code]
    subprocess.run(run, check=True, capture_output=True)
    return statistics.median(
        float(subprocess.run(run, check=True, capture_output=True, text=True).stdout) for _ in range(rounds)
    )


def say(what: str, **figures: object) -> None:
    """Print one line of JSON."""
    rounded = {name: round(value, 2) if isinstance(value, float) else value for name, value in figures.items()}
    print(json.dumps({"what": what, **rounded}), flush=True)


def compiled() -> None:
    """Compile the library's bytecode, so that no import pays for it."""
    import compileall

    import guardrail

    compileall.compile_dir(Path(guardrail.__file__).parent, quiet=1)
