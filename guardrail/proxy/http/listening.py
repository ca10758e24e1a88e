"""Listening for clients over HTTP, until this process is told to end."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import socket
from collections.abc import Generator, Mapping, Sequence
from typing import Final

import uvicorn

from guardrail.errors import GuardrailError
from guardrail.proxy.http.access import Access, address_of, is_loopback
from guardrail.proxy.http.front import Front
from guardrail.proxy.http.processes import Processes
from guardrail.proxy.messages import LONGEST
from guardrail.proxy.runs import Runs
from guardrail.proxy.signals import GaveUp, Signals
from guardrail.telemetry.logs import get_logger

_PIPED: Final = "http://localhost/mcp"
"""Where clients find a server over pipes, and what its URL is called inside, where no network knows it."""


async def serve(
    runs: Runs,
    server: str | Sequence[str],
    listen: str,
    *,
    name: str,
    env: Mapping[str, str],
    headers: Mapping[str, str],
    token: str | None,
    origins: Sequence[str],
) -> None:
    """Listen until this process is told to end, then judge what is open.

    `server` is the URL of one, which gets `headers`, or the command of one over pipes, whose processes get `env`.
    Raises `GuardrailError` for an address beyond this machine without a token, for a URL that is none, and for a
    command that cannot be found; and `GaveUp`.
    """
    url, transport = (server, None) if isinstance(server, str) else (_PIPED, _processes(server, env))
    host, port = address_of(listen)
    if not url.startswith(("http://", "https://")):
        raise GuardrailError(f"--url {url}: the server's URL begins with http:// or https://")
    local = is_loopback(host)
    if not local and not token:
        raise GuardrailError(f"--listen {listen}: others can reach this address: demand a --token of them")
    listening = _bound(host, port)
    front = Front(runs, url, Access(local, token or None, origins), name=name, headers=headers, transport=transport)
    config = uvicorn.Config(
        front.app,
        log_config=None,
        log_level="critical",  # the guard tells of its failures itself, and a stream that ends with it is none
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=2,
        lifespan="off",
    )
    get_logger().info("guardrail.listening", host=host, port=listening.getsockname()[1])
    listener = _Listener(config)
    serving = asyncio.create_task(listener.serve([listening]))
    signals = Signals()

    async def ended() -> None:
        listener.should_exit = True
        try:
            await asyncio.shield(serving)
        finally:
            await front.close()

    try:
        await asyncio.wait({serving, signals.end}, return_when=asyncio.FIRST_COMPLETED)
        await signals.wait(ended())
    except GaveUp:
        listener.force_exit = True
        runs.abort()
        if transport is not None:
            transport.kill()
            await transport.aclose()
        await asyncio.gather(serving, front.close())
        raise


def _processes(command: Sequence[str], env: Mapping[str, str]) -> Processes:
    if shutil.which(command[0]) is None:
        raise GuardrailError(f"the server cannot be started: {command[0]}: there is no such command")
    return Processes(command, env, LONGEST)


class _Listener(uvicorn.Server):
    """A listener that leaves signals alone: what comes after it, the verdicts, is not to be cut off by them."""

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None]:
        """Capture none."""
        yield


def _bound(host: str, port: int) -> socket.socket:
    try:
        bound = socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    except OSError as error:
        raise GuardrailError(f"--listen {host}:{port}: {error.strerror or error}") from error
    # Its protocol is said, because asyncio sets TCP_NODELAY on connections only where it is: without that, an answer in
    # two parts waits 40 ms for its client's delayed acknowledgement.
    return socket.socket(fileno=bound.detach(), proto=socket.IPPROTO_TCP)
