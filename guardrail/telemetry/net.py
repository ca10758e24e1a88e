"""The net under every call into a user's telemetry: what is raised there never reaches the run."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from types import TracebackType


class Net:
    """Catches what span processors, samplers, readers and the like raise, and counts it.

    `told` is called with every error caught (to count it as a metric), `warned` with the first one only. Cancellation,
    `KeyboardInterrupt` and `SystemExit` pass.
    """

    __slots__ = ("_told", "_warned", "caught")

    def __init__(self, told: Callable[[Exception], None], warned: Callable[[Exception], None]) -> None:
        self.caught = 0
        self._told = told
        self._warned = warned

    def __enter__(self) -> None:
        """Spread the net."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        """Hold back an error of the telemetry."""
        if error is None or not isinstance(error, Exception):
            return False
        self.caught += 1
        with suppress(Exception):  # what is broken may be the very meter or log that is told
            self._told(error)
        if self.caught == 1:
            with suppress(Exception):  # as above
                self._warned(error)
        return True
