"""`guardrail mcp`: a guard between any MCP client and any MCP server."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine, Mapping
from typing import TYPE_CHECKING, Annotated

import typer

from guardrail.cli.exits import Exit, Misuse
from guardrail.cli.inputs import read_inputs
from guardrail.cli.options import Config, Inputs
from guardrail.cli.places import configuration_file, find_modules

if TYPE_CHECKING:
    from guardrail.declare.configuration import Configuration, Server
    from guardrail.proxy.runs import Runs
    from guardrail.run.guard import Guard


def mcp(
    command: Annotated[
        list[str] | None, typer.Argument(metavar="-- COMMAND ...", help="The server and its arguments, over stdio.")
    ] = None,
    url: Annotated[str | None, typer.Option("--url", help="The server's URL, over streamable HTTP.")] = None,
    listen: Annotated[
        str | None,
        typer.Option("--listen", metavar="HOST:PORT", help="Offer the server over HTTP here; needed with --url."),
    ] = None,
    server: Annotated[
        str | None,
        typer.Option("--server", metavar="NAME", help="The server's entry in the configuration; else the only one."),
    ] = None,
    task: Annotated[
        str | None, typer.Option("--task", metavar="NAME", help="The task of a session whose host names none.")
    ] = None,
    input: Inputs = None,
    idle: Annotated[
        str, typer.Option("--idle", metavar="TIME", help="A run that nothing was called in for so long is judged.")
    ] = "300s",
    token: Annotated[
        str | None,
        typer.Option("--token", envvar="GUARDRAIL_MCP_TOKEN", help="What clients must show; needed beyond loopback."),
    ] = None,
    origin: Annotated[
        list[str] | None, typer.Option("--origin", help="An origin whose pages may call, besides loopback ones.")
    ] = None,
    config: Config = None,
) -> None:
    """Guard every tool call between an MCP client and a server.

    Put it before the server's command in the client's configuration,
    or before the server's URL. stdout carries the protocol, stderr the log.
    With --listen, a command is started once for each session.
    A first SIGTERM or Ctrl-C ends the sessions and judges their runs,
    a second one waits for no judgement any more.
    Exit codes: 0 the client has gone or a signal came,
    1 the server ended by itself, 130 a second signal came.
    """
    if bool(command) == (url is not None):
        raise Misuse("give a server: a command behind --, or a --url, one of them")
    if url is not None and listen is None:
        raise Misuse("--url needs --listen HOST:PORT: the place where clients find the proxy")
    from guardrail.run.guard import Guard

    file = configuration_file(config)
    find_modules()
    _log_to_stderr()
    with Guard.load(file) as guard:
        name, declared = _declared(guard.configuration, server)
        runs = _runs(guard, idle, task, input or [])
        if listen is None:
            serving = _over_pipes(guard, runs, command or [], declared.env, name)
        else:
            serving = _over_http(runs, command or url or "", listen, name, declared, token, origin or [])
        raise typer.Exit(asyncio.run(_closing(guard, serving)))


def _runs(guard: Guard, idle: str, task: str | None, inputs: list[str]) -> Runs:
    from guardrail.declare.durations import seconds
    from guardrail.proxy.runs import Runs

    declared = guard.configuration.tasks.get(task) if task is not None else None
    if task is not None and declared is None:
        known = ", ".join(guard.configuration.tasks) or "none"
        raise Misuse(f"--task {task}: there is no such task in the configuration; its tasks are: {known}")
    if inputs and task is None:
        raise Misuse("--input is an input of a task: name it with --task")
    try:
        length = seconds(idle)
    except ValueError as error:
        raise Misuse(f"--idle {idle}: {error}") from error
    if length <= 0:
        raise Misuse("--idle must be longer than nothing")
    return Runs(guard, idle=length, task=task, inputs=read_inputs({} if declared is None else declared.inputs, inputs))


def _declared(configuration: Configuration, name: str | None) -> tuple[str, Server]:
    """The server's name and declaration; "" and an empty one where the configuration does not know it."""
    from guardrail.declare.configuration import Server

    servers = configuration.servers
    if name is None and len(servers) == 1:
        [name] = servers
    if name is None:
        if servers:
            raise Misuse(f"the configuration has several servers: say by --server which this is: {', '.join(servers)}")
        return "", Server()
    if name not in servers:
        raise Misuse(f"--server {name}: there is no such server in the configuration")
    return name, servers[name]


async def _closing(guard: Guard, serving: Coroutine[object, object, Exit]) -> Exit:
    """Serve, and close the guard while signals are still heard: none of them is to end that in the middle."""
    from guardrail.proxy.signals import GaveUp
    from guardrail.telemetry.logs import get_logger

    try:
        return await serving
    except GaveUp:
        get_logger().warning("guardrail.gave_up", why="told to end twice: what was not judged yet will not be")
        return Exit.CUT_SHORT
    finally:
        guard.close()


async def _over_pipes(guard: Guard, runs: Runs, command: list[str], env: Mapping[str, str], name: str) -> Exit:
    from guardrail.declare.durations import seconds
    from guardrail.proxy.messages import LONGEST
    from guardrail.proxy.pipes import relay

    drain = seconds(guard.configuration.drain)
    code = await relay(runs, command, env, name=name, longest=LONGEST, drain=drain)
    return Exit.GOOD if code is None else Exit.WRONG


async def _over_http(
    runs: Runs, place: str | list[str], listen: str, name: str, server: Server, token: str | None, origins: list[str]
) -> Exit:
    try:
        from guardrail.proxy.http.listening import serve
    except ModuleNotFoundError as error:
        raise Misuse(f"{error.name} is missing: pip install 'guardrail-runtime[mcp]'") from error
    await serve(runs, place, listen, name=name, env=server.env, headers=server.headers, token=token, origins=origins)
    return Exit.GOOD


def _log_to_stderr() -> None:
    """Say what happens, verdicts too, on stderr; the server's own words go there as well."""
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    log = logging.getLogger("guardrail")
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    log.propagate = False
