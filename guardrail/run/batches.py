"""Loops written by hand: the tool calls of one message of the model's, made one after another, each of them answered."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias, cast

from guardrail.calls import ToolCall, Unmade
from guardrail.errors import GuardrailError, RunHalted, RunNotOpen
from guardrail.judge.unmade import has_begun
from guardrail.run.adapter import Adapter, Runs
from guardrail.run.wrapping import bare, completed


@dataclass(frozen=True, slots=True)
class Asked:
    """A tool call that the model asks for; `args` is the text that it wrote where that is no JSON object."""

    id: str
    name: str
    args: Mapping[str, object] | str


Tell: TypeAlias = Callable[[Asked, Any, bool], None]
"""Takes what the model is told of a call: its content, and whether the call failed."""


class AsynchronousTool(GuardrailError):
    """A tool is asynchronous, and its batch is not awaited."""


class Batches(Adapter[Asked]):
    """Makes calls by the names of their tools. A tool may be asynchronous if its batch is awaited.

    Raises `TypeError` where `tools` are no functions by their names. `content` makes what the model is told out of a tool's result. Of a tool's error it is told the text, of a call
    that was not carried out why.
    """

    def __init__(self, runs: Runs, tools: Mapping[str, Callable[..., Any]], content: Callable[[Any], Any]) -> None:
        super().__init__(runs)
        if not _are_named(tools):
            raise TypeError(
                f"tools are functions by their names, {{'lookup_order': lookup_order}}, and not {tools!r:.60}"
            )
        self._tools = {name: bare(tool) for name, tool in tools.items()}
        self._defaults = {name: completed(tool, {}) for name, tool in tools.items()}
        self._content = content

    def describe(self, native: Asked) -> ToolCall:
        """The call, with the tool's defaults for arguments that were left out: one of them may decide what it does."""
        if isinstance(native.args, str):
            return ToolCall(native.name, {"arguments": native.args}, native.id)
        return ToolCall(native.name, {**self._defaults.get(native.name, {}), **native.args}, native.id)

    def make(self, batch: Sequence[Asked], tell: Tell) -> None:
        """Make the calls in their order. Whatever ends the batch early, `tell` is called for each of them.

        Raises `RunHalted`, `RunNotOpen`, and `AsynchronousTool`.
        """
        with self._answered(batch, tell) as answer:
            for asked in batch:
                try:
                    result = self.call(asked, partial(self._execute, asked))
                except RunNotOpen:
                    raise
                except Exception as error:  # noqa: BLE001 - the tool's own, or why it was not called: the model is told
                    result = error
                if isinstance(result, AsynchronousTool):
                    raise result
                answer(result)

    async def amake(self, batch: Sequence[Asked], tell: Tell) -> None:
        """The same by awaiting; the tools may be asynchronous or not."""
        with self._answered(batch, tell) as answer:
            for asked in batch:
                try:
                    result = await self.acall(asked, partial(self._aexecute, asked))
                except RunNotOpen:
                    raise
                except Exception as error:  # noqa: BLE001 - the tool's own, or why it was not called: the model is told
                    result = error
                answer(result)

    @contextmanager
    def _answered(self, batch: Sequence[Asked], tell: Tell) -> Generator[Callable[[object], None]]:
        """Tell of one call after another; when something ends the batch early, of those that are left, too.

        A caller who goes on all the same then has a conversation that the API takes: each call in it has a result.
        """
        left = list(batch)

        def answer(result: object) -> None:
            failed = isinstance(result, Exception)
            content = f"Error: {_words(result)}" if failed else self._content(result)
            tell(left.pop(0), content, failed)

        try:
            yield answer
        except BaseException as error:
            content = str(error) if isinstance(error, RunHalted) else "Error: the call was cut off."
            for asked in left:
                tell(asked, content, True)
            raise

    def _execute(self, asked: Asked) -> object:
        tool = self._callable(asked)
        if isinstance(tool, Unmade):
            return tool
        try:
            result = tool()
        except TypeError as error:
            return self._misfit(asked, error)
        if not inspect.isawaitable(result):
            return result
        why = AsynchronousTool(f"{asked.name} is asynchronous: use `amake` instead of `make`, awaited")
        if inspect.iscoroutine(result):  # nothing of it has run
            result.close()
            return Unmade(why)
        raise why

    async def _aexecute(self, asked: Asked) -> object:
        tool = self._callable(asked)
        if isinstance(tool, Unmade):
            return tool
        try:
            result = tool()
            return await result if inspect.isawaitable(result) else result
        except TypeError as error:
            return self._misfit(asked, error)

    def _callable(self, asked: Asked) -> Callable[[], Any] | Unmade:
        tool = self._tools.get(asked.name)
        if tool is None:
            return Unmade(LookupError(f"there is no tool {asked.name}"))
        if isinstance(asked.args, str):
            return Unmade(ValueError(f"the arguments of {asked.name} are no JSON object"))
        return partial(tool, **asked.args)

    def _misfit(self, asked: Asked, error: TypeError) -> Unmade:
        """That the arguments do not fit the tool; an error for any other reason is the tool's own, and raised again."""
        args, tool = cast("Mapping[str, Any]", asked.args), self._tools[asked.name]
        if has_begun(tool, error):
            raise error
        try:
            inspect.signature(tool).bind(**args)
        except TypeError:
            return Unmade(error)
        except ValueError:  # some built-in functions have no signature
            pass
        raise error


def _are_named(tools: object) -> bool:
    """Whether these are functions by their names; a program may be without types."""
    return isinstance(tools, Mapping) and all(map(callable, cast("Mapping[object, object]", tools).values()))


def as_text(result: Any) -> str:
    """A text as it is, anything else as JSON; what JSON does not know as `str` writes it. Never raises."""
    if isinstance(result, str):
        return result
    try:
        return json.dumps(result, default=_words)
    except (TypeError, ValueError, RecursionError):  # keys that are no texts, a circle
        return _words(result)


def _words(value: object) -> str:
    try:
        return str(value)
    except Exception:  # noqa: BLE001 - a class of the tool's own may raise anything; that it came is still told
        return f"a {type(value).__name__} without words"


def arguments(text: str) -> Mapping[str, object] | str:
    """The arguments that a model wrote as JSON; the text itself if that is no object."""
    try:
        found = json.loads(text or "{}")
    except (ValueError, RecursionError):
        return text
    return cast("Mapping[str, object]", found) if isinstance(found, dict) else text
