"""The pages of frameworks: what stands in one is run as a reader would, in a shop, with the first hour's configuration."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from support.documents import DOCS, blocks
from support.kits.stage import asked
from support.shop import Shop

LOOK = asked("lookup_order", order_id=17)
REFUND = asked("refund_order", order_id=17, amount="19.90")
"""What a model is to ask for on a page."""


def played(name: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Run the block of a page in a folder; gives what it has defined. `lookup_order` and `refund_order` are the shop's."""
    [configuration] = [block for block in blocks(DOCS / "adopting.md", "yaml") if block.file == "guardrail.yaml"]
    [block] = blocks(DOCS / "frameworks" / f"{name}.md", "python")
    (folder / "guardrail.yaml").write_text(configuration.text)
    monkeypatch.chdir(folder)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    shop = Shop(folder / "shop.db")

    def lookup_order(order_id: int) -> dict[str, Any]:
        """Look an order up."""
        return shop.lookup_order(order_id) or {}

    def refund_order(order_id: int, amount: str) -> dict[str, Any]:
        """Refund an order."""
        return shop.refund_order(order_id, amount)

    names: dict[str, Any] = {"lookup_order": lookup_order, "refund_order": refund_order, "tools": []}
    exec(compile(block.text, f"{name}.md", "exec"), names)
    return names
