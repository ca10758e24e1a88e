"""Writes docs/frameworks.md from what the contract suite came to in each environment: `python tests/adapters/table.py`.

With `--check` it writes nothing, and fails where the page says something else.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TypeAlias

CHECKOUT = Path(__file__).parents[2]
PAGE = CHECKOUT / "docs" / "frameworks.md"
PAGES = CHECKOUT / "docs" / "frameworks"
Results: TypeAlias = Mapping[str, Mapping[str, str]]
"""What each test of each kit came to: `passed`, or `limit: ` and the reason."""

HEAD = """# Frameworks

Each adapter passes one contract suite, played with the real framework, a scripted model and real tools. This table is
written by the suite (`nox`, then `python tests/adapters/table.py`); CI fails when it is not what was found. A limit is
the framework's own: the test must fail there, so that we learn when it is lifted. Each has a page:
PAGES.

The newest versions are those of `adapters/constraints/`, the oldest those that the extras allow, of the most used.

Most frameworks make the calls of one message at the same time: a tool's no holds what begins after it, not its siblings.

AutoGen is not here: any stop makes it hang, and it is only maintained.

| framework | newest version passes | oldest | limits |
| --- | --- | --- | --- |
"""


def page(newest: Results, oldest: Results) -> str:
    """The whole page; an older version's limits are told where it has more of them."""
    rows, notes = [], list[str]()
    for kit in sorted(newest):
        old = oldest.get(kit, {})
        limits = set(_limits(newest[kit]))
        said = [f"{kit}: {limit}" for limit in sorted(limits)]
        said += [f"{kit}, oldest version: {limit}" for limit in sorted({*_limits(old)} - limits)]
        marks = [f"[{len(notes) + number}](#limits)" for number in range(1, len(said) + 1)]
        notes += said
        rows.append(f"| {kit} | {_passed(newest[kit])} | {_passed(old)} | {', '.join(marks) or 'none'} |")
    listed = "\n".join(f"{number}. {note}" for number, note in enumerate(notes, 1))
    pages = ", ".join(f"[{file.stem}](frameworks/{file.name})" for file in sorted(PAGES.glob("*.md")))
    return HEAD.replace("PAGES", pages) + "\n".join(rows) + (f"\n\n## Limits\n\n{listed}" if notes else "") + "\n"


def _passed(tests: Mapping[str, str]) -> str:
    passed = sum(outcome == "passed" for outcome in tests.values())
    return f"{passed} of {len(tests)}" if tests else ""


def _limits(tests: Mapping[str, str]) -> Iterator[str]:
    for test, outcome in tests.items():
        if outcome.startswith("limit: "):
            yield f"{_sentence(test)}: {outcome.removeprefix('limit: ')}"


def _sentence(test: str) -> str:
    """A test's name as words."""
    name = re.sub(r"^test_|\[.*", "", test)
    return f"*{name.replace('_', ' ')}*"


def found_in(files: Iterable[Path]) -> dict[str, Mapping[str, str]]:
    """The results of some environments."""
    return {kit: tests for file in sorted(files) for kit, tests in json.loads(file.read_text()).items()}


def main(folder: Path, *, check: bool) -> None:
    """Write the page, or see whether it is what was found; exits with 1 where it is not."""
    oldest = set(folder.glob("lowest*.json"))
    wanted = page(found_in(set(folder.glob("*.json")) - oldest), found_in(oldest))
    if not check:
        PAGE.write_text(wanted)
    elif PAGE.read_text() != wanted:
        sys.exit(f"{PAGE.name} is not what the suite found: run nox, then python tests/adapters/table.py")


if __name__ == "__main__":
    main(CHECKOUT / ".nox" / "results", check="--check" in sys.argv)
