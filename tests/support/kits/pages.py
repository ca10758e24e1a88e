"""The pages of the frameworks: their code is run as it stands, in a folder with the configuration of the first hour."""

from __future__ import annotations

import ast
import asyncio
import inspect
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, cast

import pytest

from support.documents import DOCS, blocks
from support.kits.stage import asked
from support.shop import Shop

LOOK = asked("lookup_order", order_id=17)
REFUND = asked("refund_order", order_id=17, amount="19.90")
"""What a model is to ask for on a page."""


def shop_of_the_page(folder: Path) -> Shop:
    """The shop that the configuration of `docs/adopting.md` speaks of, with that configuration, in a folder."""
    [configuration] = [block for block in blocks(DOCS / "adopting.md") if block.file == "guardrail.yaml"]
    (folder / "guardrail.yaml").write_text(configuration.text, "utf-8")
    return Shop(folder / "shop.db")


def run_page(name: str, **names: Any) -> dict[str, Any]:
    """Run a page's code, which may await at the top, with these names; gives them with what it has defined."""
    document = DOCS / "frameworks" / f"{name}.md"
    text = "\n".join(block.text for block in blocks(document, "python"))
    waiting = eval(compile(text, str(document), "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT), names)
    if inspect.iscoroutine(waiting):
        asyncio.run(cast("Coroutine[Any, Any, None]", waiting))
    return names


def played(name: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Run a page's code in a folder; gives what it has defined. `lookup_order` and `refund_order` are the shop's."""
    monkeypatch.chdir(folder)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    shop = shop_of_the_page(folder)

    def lookup_order(order_id: int) -> dict[str, Any]:
        """Look an order up."""
        return shop.lookup_order(order_id) or {}

    def refund_order(order_id: int, amount: str) -> dict[str, Any]:
        """Refund an order."""
        return shop.refund_order(order_id, amount)

    return run_page(name, lookup_order=lookup_order, refund_order=refund_order, tools=[])
