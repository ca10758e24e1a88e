"""Wrapping: a guarded function that looks like the tool itself."""

from __future__ import annotations

import functools
import inspect
from collections.abc import AsyncGenerator, Callable, Generator, Mapping
from typing import Any, TypeVar, cast

from guardrail.call.drivers import adrive, drive
from guardrail.call.flow import Conduct, guarded
from guardrail.call.tools import call_of
from guardrail.calls import ToolCall

F = TypeVar("F", bound=Callable[..., Any])
Finder = Callable[[], Conduct]


def name_of(tool: Callable[..., Any]) -> str:
    """The name a tool is known by: its own, or that of the function behind a partial or a callable object."""
    while isinstance(tool, functools.partial):
        tool = tool.func
    name = getattr(tool, "__name__", None)
    return name if isinstance(name, str) else type(tool).__name__


def bare(tool: F) -> F:
    """The tool itself, where it is guarded already: it is not guarded twice."""
    return cast("F", getattr(tool, _TOOL, tool))


def wrap(tool: F, run: Finder, name: str | None = None) -> F:
    """A guarded function in the place of `tool`: same name, doc and signature, same kind (sync, async, stream).

    `run` finds the run that a call belongs to, at each call.
    """
    tool = bare(tool)
    if not callable(tool):
        given = type(cast("object", tool)).__name__
        raise TypeError(f"{given} is no tool: give functions one by one, wrap(*tools), or a mapping of them by name")
    named = name or name_of(tool)
    arguments = _arguments(tool)

    def call(args: tuple[object, ...], kwargs: dict[str, object]) -> ToolCall:
        return call_of(named, arguments(args, kwargs))

    guard = functools.update_wrapper(_kind(tool)(tool, run, call), tool)
    guard.__name__ = named
    setattr(guard, _TOOL, tool)
    return cast("F", guard)


_TOOL = "__guardrail_tool__"
"""The attribute in which a guarded function keeps the tool itself."""

Caller = Callable[[tuple[object, ...], dict[str, object]], ToolCall]


def _kind(tool: Callable[..., Any]) -> Callable[[Callable[..., Any], Finder, Caller], Callable[..., Any]]:
    """How to wrap, by what the tool is declared to be; a plain function is told by what it returns."""
    bare = tool
    while isinstance(bare, functools.partial):
        bare = bare.func
    inner = bare if inspect.isroutine(bare) else getattr(bare, "__call__", bare)  # noqa: B004 - the method itself is asked about
    if inspect.iscoroutinefunction(inner):
        return _asynchronous
    if inspect.isasyncgenfunction(inner):
        return _astreaming
    if inspect.isgeneratorfunction(inner):
        return _streaming
    return _plain


def _plain(tool: Callable[..., Any], run: Finder, call: Caller) -> Callable[..., Any]:
    def guard(*args: Any, **kwargs: Any) -> Any:
        return drive(guarded(run(), call(args, kwargs)), functools.partial(tool, *args, **kwargs))

    return guard


def _asynchronous(tool: Callable[..., Any], run: Finder, call: Caller) -> Callable[..., Any]:
    async def guard(*args: Any, **kwargs: Any) -> Any:
        return await adrive(guarded(run(), call(args, kwargs)), functools.partial(tool, *args, **kwargs))

    return guard


def _streaming(tool: Callable[..., Any], run: Finder, call: Caller) -> Callable[..., Any]:
    def guard(*args: Any, **kwargs: Any) -> Generator[object, object, object]:
        stream = drive(guarded(run(), call(args, kwargs)), functools.partial(tool, *args, **kwargs))
        return (yield from cast("Generator[object, object, object]", stream))

    return guard


def _astreaming(tool: Callable[..., Any], run: Finder, call: Caller) -> Callable[..., Any]:
    async def guard(*args: Any, **kwargs: Any) -> AsyncGenerator[object, None]:
        flow = guarded(run(), call(args, kwargs))
        stream = cast("AsyncGenerator[object, None]", await adrive(flow, functools.partial(tool, *args, **kwargs)))
        try:
            async for item in stream:
                yield item
        finally:
            await stream.aclose()

    return guard


def _arguments(tool: Callable[..., Any]) -> Callable[[tuple[object, ...], dict[str, object]], Mapping[str, object]]:
    """How to name a call's arguments: by the tool's parameters, as the model would name them."""
    names, rest, defaults = _parameters(tool)

    def named(args: tuple[object, ...], kwargs: dict[str, object]) -> Mapping[str, object]:
        if not args:
            return {**defaults, **kwargs} if defaults else kwargs
        found: dict[str, object] = dict(zip(names, args, strict=False))
        if len(args) > len(names):
            found[rest] = args[len(names) :]
        return {**found, **defaults, **kwargs, **found}  # first in the order of the signature

    return named


def _parameters(tool: Callable[..., Any]) -> tuple[tuple[str, ...], str, dict[str, object]]:
    """The names of the positional parameters, of the one that takes the rest of them, and the defaults by name."""
    try:
        parameters = inspect.signature(tool).parameters.values()
    except (TypeError, ValueError):  # some built-in functions have no signature
        return (), "args", {}
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    names = tuple(p.name for p in parameters if p.kind in positional)
    rest = next((p.name for p in parameters if p.kind is inspect.Parameter.VAR_POSITIONAL), "args")
    return names, rest, {p.name: p.default for p in parameters if p.default is not inspect.Parameter.empty}


def completed(tool: Callable[..., Any], args: Mapping[str, object]) -> Mapping[str, object]:
    """The arguments with the tool's defaults for those that are left out: a default may decide what a call does.

    Raises `TypeError` for arguments that are not by name, such as the text that a model writes.
    """
    if not isinstance(cast("object", args), Mapping):
        given = type(args).__name__
        raise TypeError(f"the arguments of {name_of(tool)} are {given}: give a mapping by name (json.loads of a text)")
    return {**_parameters(tool)[2], **args}


def is_awaiting(tool: Callable[..., Any]) -> bool:
    """Whether a tool is declared asynchronous, so that the guard's own work can run off the loop."""
    return _kind(tool) is _asynchronous
