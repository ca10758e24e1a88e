"""Errors of tools that a graph makes messages of (`handle_tool_errors`), noted before that, so that they can be judged."""

from __future__ import annotations

import functools
from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Union

from langchain_core.messages import ToolMessage
from langgraph.prebuilt.tool_node import TOOL_CALL_ERROR_TEMPLATE


class Failure:
    """What went wrong in one call, and the message that the graph has made of it."""

    __slots__ = ("error", "message")

    def __init__(self) -> None:
        self.error: Exception | None = None
        self.message: Any = None

    @contextmanager
    def awaited(self) -> Generator[None]:
        """Errors that are handled here are this call's."""
        token = _HERE.set(self)
        try:
            yield
        finally:
            _HERE.reset(token)

    @contextmanager
    def told(self) -> Generator[None]:
        """The error that was judged ends here: the model is told the message."""
        try:
            yield
        except Exception as error:
            if error is not self.error or not isinstance(self.message, ToolMessage):
                raise


_HERE: ContextVar[Failure | None] = ContextVar("guardrail.langchain.failure", default=None)


def noting(option: Any) -> Any:
    """The option `handle_tool_errors` of a `ToolNode`, as a function that does the same and notes the error before."""
    if option is False:
        return False
    if not isinstance(option, type) and callable(option):

        @functools.wraps(option)  # the graph reads off it which errors it handles
        def handle(*args: Any) -> Any:
            _note(args[-1])
            return option(*args)

        return handle
    types = option if isinstance(option, tuple) else (option,) if isinstance(option, type) else (Exception,)
    return _handler(types, lambda error: option if isinstance(option, str) else _words(error))


def _handler(types: tuple[Any, ...], words: Callable[[Exception], str]) -> Callable[[Any], str]:
    def handle(error: Any) -> str:
        _note(error)
        return words(error)

    handle.__annotations__ = {"error": Union[types], "return": str}  # noqa: UP007 - of types that are known only now
    return handle


def _words(error: Exception) -> str:
    return TOOL_CALL_ERROR_TEMPLATE.format(error=repr(error))


def _note(error: Exception) -> None:
    failure = _HERE.get()
    if failure is not None:
        failure.error = error
