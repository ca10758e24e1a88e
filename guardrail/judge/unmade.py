"""Answers by which a server of MCP says that it did not call a tool: it has none of that name, or the arguments do not fit."""

from __future__ import annotations

import re
from typing import Final

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
