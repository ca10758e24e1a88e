"""A project of a small shop, with a configuration file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from support.shop import Shop

CONFIGURATION = """\
version: 1
stores:
  shop: {url: "sqlite:///shop.db"}
ledger: runs/ledger.db
tools:
  lookup_order: {effect: read}
  refund_order: {effect: write, once_per: [order_id]}
  cancel_order: {effect: write}
  note_order: {effect: write}
tasks:
  refund_order:
    inputs: {order_id: integer, amount: decimal}
    watch:
      shop.orders: {key: id, ignore: [updated_at]}
      shop.refunds: {key: id}
    expect:
      - updated: shop.orders
        key: {id: $order_id}
        values: {status: refunded}
      - inserted: shop.refunds
        values: {id: {generated: true}, order_id: $order_id, amount: $amount}
  is_paid:
    inputs: {order_id: integer}
    checks:
      - {name: paid, store: shop, sql: "select status = 'paid' from orders where id = :order_id"}
"""


@dataclass(frozen=True, slots=True)
class Project:
    """A folder with `guardrail.yaml` and the shop's database; it is the working directory."""

    folder: Path
    shop: Shop

    @property
    def file(self) -> Path:
        return self.folder / "guardrail.yaml"

    @property
    def ledger(self) -> Path:
        return self.folder / "runs" / "ledger.db"

    def write(self, text: str) -> None:
        """Write another configuration."""
        self.file.write_text(text, "utf-8")

    def replace(self, old: str, new: str) -> None:
        """Change the configuration in one place."""
        text = self.file.read_text("utf-8")
        assert text.count(old) == 1
        self.write(text.replace(old, new))
