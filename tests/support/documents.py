"""The blocks of code in a Markdown document, with what a comment before them says of them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

CHECKOUT = Path(__file__).parents[2]
DOCS = CHECKOUT / "docs"

_MARK = re.compile(r"<!-- (.+?) -->")


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block: its language, its text, the line that it begins in, and its mark.

    The mark is what stands in an HTML comment in the line before, "" where there is none: `file NAME` is a file of
    this name, for other blocks to use; `whole` is a whole configuration; `wrong` is one that does not load.
    """

    language: str
    text: str
    line: int
    mark: str

    @property
    def file(self) -> str | None:
        """The name of the file that this block is, if it is one."""
        return self.mark.removeprefix("file ") if self.mark.startswith("file ") else None


def blocks(document: Path, language: str | None = None) -> list[Block]:
    """The blocks of a document in order, of one language or all."""
    found = _blocks(document.read_text("utf-8").splitlines())
    return [block for block in found if language is None or block.language == language]


def _blocks(lines: list[str]) -> Iterator[Block]:
    begin: int | None = None
    for at, line in enumerate(lines):
        if begin is None and line.startswith("```"):
            begin = at
        elif begin is not None and line == "```":
            mark = _MARK.fullmatch(lines[begin - 1]) if begin else None
            text = "".join(f"{inner}\n" for inner in lines[begin + 1 : at])
            yield Block(lines[begin][3:], text, begin + 1, mark[1] if mark else "")
            begin = None


def prose(document: Path) -> str:
    """A document without its blocks."""
    return re.sub(r"^```.*?^```$", "", document.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)


def table(document: Path, heading: str) -> list[list[str]]:
    """The rows, without the head, of the first table below a heading (a line of the document)."""
    lines = document.read_text("utf-8").splitlines()
    after = lines[lines.index(heading) + 1 :]
    start = next(at for at, line in enumerate(after) if line.startswith("| ---"))
    rows: list[list[str]] = []
    for line in after[start + 1 :]:
        if not line.startswith("|"):
            break
        rows.append([cell.strip() for cell in line.strip("|").split(" | ")])
    return rows


def quoted(text: str) -> list[str]:
    """What stands in back quotes."""
    return re.findall(r"`([^`]+)`", text)
