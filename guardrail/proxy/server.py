"""The process of an MCP server that speaks over its standard input and output."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Final

from guardrail.errors import GuardrailError
from guardrail.proxy.lines import CHUNK, lines
from guardrail.proxy.messages import Malformed, Message, read
from guardrail.telemetry.logs import get_logger

NEEDED: Final = (
    *("HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER", "TMPDIR", "LANG", "LC_ALL", "TZ"),
    *("APPDATA", "HOMEDRIVE", "HOMEPATH", "LOCALAPPDATA", "PATHEXT", "PROCESSOR_ARCHITECTURE", "PROGRAMFILES"),
    *("SYSTEMDRIVE", "SYSTEMROOT", "TEMP", "TMP", "USERNAME", "USERPROFILE"),
)
"""The variables that any process needs: all that a server gets without being given it."""

_KILL: Final = getattr(signal, "SIGKILL", signal.SIGTERM)

PATIENCE: Final = 2.0
"""How many seconds a server has to end after its input was closed, and once more after it was told to."""


class Server:
    """A running server. What it writes to standard error goes to ours."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._process = process
        self._input, self._output = process.stdin, process.stdout

    @classmethod
    async def start(cls, command: Sequence[str], env: Mapping[str, str]) -> Server:
        """Start a server with the variables `env` besides the needed ones; raises `GuardrailError`."""
        needed = {name: os.environ[name] for name in NEEDED if name in os.environ}
        try:
            process = await asyncio.create_subprocess_exec(
                *command,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                env={**needed, **env},
                start_new_session=True,  # a Ctrl-C is for the guard, which then ends the server in order
            )
        except (OSError, ValueError) as error:
            why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
            raise GuardrailError(f"the server cannot be started: {command[0]}: {why}") from error
        return cls(process)

    def lines(self, longest: int) -> AsyncIterator[bytes | None]:
        """What it says, line by line, until it ends; None for a line that is too long."""
        return lines(lambda: self._output.read(CHUNK), longest)

    async def messages(self, longest: int) -> AsyncIterator[Message | None]:
        """What it says, message by message, until it ends; None for one that is too long. All else is dropped."""
        async for line in self.lines(longest):
            if line is None:
                yield None
                continue
            try:
                found = read(line)
            except Malformed as error:
                get_logger().warning("guardrail.server_line_dropped", why=str(error), bytes=len(line))
                continue
            for message in found if isinstance(found, list) else [found]:
                yield message

    async def line(self, text: bytes) -> None:
        """Say something to it; raises OSError when it does not read any more."""
        self._input.write(text + b"\n")
        await self._input.drain()

    def hang_up(self) -> None:
        """Close its input: the way in which a server is asked to end."""
        with contextlib.suppress(OSError):
            self._input.close()

    def kill(self) -> None:
        """End it at once, with all processes that it has started."""
        self._signal(_KILL)

    async def end(self) -> int:
        """See that it ends: by itself, else told to, else killed, with all processes that it has started."""
        self.hang_up()
        for told in (signal.SIGTERM, _KILL):
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._process.wait(), PATIENCE)
                break
            self._signal(told)
        code = await self._process.wait()
        self.kill()  # what it has left behind
        return code

    def _signal(self, number: int) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if sys.platform == "win32":
                self._process.send_signal(number)
            else:
                os.killpg(self._process.pid, number)
