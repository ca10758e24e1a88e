"""The command `guardrail`: what all commands have in common, and which there are."""

from __future__ import annotations

import sys
from collections.abc import Generator
from contextlib import contextmanager
from importlib import import_module
from io import TextIOWrapper
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from guardrail.cli.exits import Exit
from guardrail.cli.screen import Screen, hang_up, shown
from guardrail.errors import GuardrailError

COMMANDS = ("demo", "check", "verify", "judge", "backtest", "runs", "doctor", "mcp")
"""The commands in the order of the help; `guardrail.cli.X` holds the function, or the group, `X`."""


class Commands(TyperGroup):
    """The commands, each imported when it is asked for; what goes wrong in any of them ends here."""

    def list_commands(self, ctx: Any) -> list[str]:
        """The names, in the order of the help."""
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command of this name; None: there is none."""
        return _command(cmd_name) if cmd_name in COMMANDS else None

    def invoke(self, ctx: Any) -> Any:
        """Carry the command out."""
        with _ending():
            return super().invoke(ctx)


app = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)


def main() -> None:
    """Run the command line of this process; ends it with one of the codes of `Exit`."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        try:
            app()
        finally:
            sys.stdout.flush()
    except BrokenPipeError:
        hang_up()
        sys.exit(Exit.CUT_SHORT)


def _show_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"guardrail {version('guardrail-runtime')}")
        raise typer.Exit(Exit.GOOD)


@app.callback()
def common(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Guard an agent's tool calls: hard stops, live state checks, a durable record.

    Exit codes: 0 good, 1 what was checked is wrong,
    2 the command could not be carried out, 3 it could not be told.
    """


def _command(name: str) -> Any:
    found = getattr(import_module(f"guardrail.cli.{name}"), name)
    if not isinstance(found, typer.Typer):
        alone = typer.Typer(add_completion=False, rich_markup_mode="rich")
        alone.command(name)(found)
        found = alone
    command = typer.main.get_command(found)
    command.name = name
    return command


@contextmanager
def _ending() -> Generator[None]:
    """Turn what may end a command early into its exit code; errors on purpose are told on stderr."""
    try:
        yield
    except BrokenPipeError as error:
        hang_up()
        raise typer.Exit(Exit.CUT_SHORT) from error
    except (KeyboardInterrupt, typer.Abort) as error:
        raise typer.Exit(Exit.CUT_SHORT) from error
    except GuardrailError as error:
        _tell(str(error))
        raise typer.Exit(Exit.MISUSE) from error
    except OSError as error:
        _tell(f"{error.filename}: {error.strerror}" if error.filename else str(error))
        raise typer.Exit(Exit.MISUSE) from error


def _tell(what: str) -> None:
    Screen(stderr=True).say(shown(f"guardrail: {what}", lines=True))
