"""The pages of the frameworks: their code is run as it stands, in a folder with the configuration of the first hour."""

from __future__ import annotations

import ast
import asyncio
import inspect
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, cast

from support.documents import DOCS, blocks
from support.shop import Shop


def shop_of_the_page(folder: Path) -> Shop:
    """The shop that the configuration of `docs/adopting.md` speaks of, with that configuration, in a folder."""
    [configuration] = [block for block in blocks(DOCS / "adopting.md") if block.file == "guardrail.yaml"]
    (folder / "guardrail.yaml").write_text(configuration.text, "utf-8")
    return Shop(folder / "shop.db")


def run_page(name: str, **names: Any) -> None:
    """Run a page's code, which may await at the top, with these names."""
    document = DOCS / "frameworks" / f"{name}.md"
    text = "\n".join(block.text for block in blocks(document, "python"))
    waiting = eval(compile(text, str(document), "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT), names)
    if inspect.iscoroutine(waiting):
        asyncio.run(cast("Coroutine[Any, Any, None]", waiting))
