"""A call that was not made: a server of MCP says so, or the error of the call shows that the tool's body was not reached."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from functools import partial
from traceback import walk_tb
from types import CodeType
from typing import Any, Final

# The words of the official SDKs (Python 1 and 2, TypeScript) and of FastMCP; {0} is the tool's name. They stand at the
# very beginning, and where a tool could say the like of something else, its own name must be in them.
_WORDS: Final = (
    r"(?:MCP error -32602: )?(?:"
    r"Unknown tool: ['\"]?{0}['\"]?\Z|"
    r"Tool ['\"]?{0}['\"]? (?:not found|disabled)\Z|"
    r"Input validation error: |"
    r"Invalid arguments for tool {0}: |"
    r"(?:Error executing tool {0}: )?\d+ validation errors? for (?:{0}Arguments|call\[{0}\])\n)"
)


def says_unmade(tool: str, text: str) -> bool:
    """Whether a server says that it did not call `tool`; `text` is the text of a failed result or of an error."""
    return re.match(_WORDS.format(re.escape(tool)), text.lstrip()) is not None


def has_begun(function: Callable[..., Any], error: BaseException) -> bool:
    """Whether an error was raised in a function's body, or by what that called: no misfit of its arguments then.

    What a decorator does before the body is no part of it. Of a function that is not written in Python nobody can tell: no.
    """
    code = _body(function)
    return code is not None and any(frame.f_code is code for frame, _ in walk_tb(error.__traceback__))


def _body(function: Callable[..., Any]) -> CodeType | None:
    """The code of a function below its decorators; of an object that is called, that of its class."""
    while isinstance(function, partial):
        function = function.func
    function = inspect.unwrap(function)
    code = getattr(function, "__code__", None)
    if code is None and not isinstance(function, type):
        code = getattr(vars(type(function)).get("__call__"), "__code__", None)
    return code if isinstance(code, CodeType) else None
