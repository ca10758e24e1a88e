"""A small shop in a database, and guards around its tools."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from guardrail import Configuration, Guard
from support.databases import Database, SqliteDatabase

SCHEMA = """
create table orders (id {serial}, status {text} not null, amount {money} not null, note {text}, updated_at {instant});
create table refunds (id {serial}, order_id {integer} not null, amount {money} not null);
create table audit (id {serial}, what {text} not null);
insert into orders values (17, 'paid', '19.90', null, '2026-01-01 10:00:00');
insert into orders values (18, 'paid', '5.00', null, '2026-01-01 10:00:00');
"""


class Shop:
    """The shop's database, and tools that really write to it. `calls` counts how often a tool's body ran.

    A shop is made in an empty database, or in a SQLite file; that of a file that is there already is opened.
    """

    def __init__(self, where: Database | Path) -> None:
        self.database = SqliteDatabase(where) if isinstance(where, Path) else where
        self.calls: list[str] = []
        if not (isinstance(where, Path) and where.exists()):
            self.database.script(SCHEMA)

    @property
    def path(self) -> Path:
        """The SQLite file."""
        assert isinstance(self.database, SqliteDatabase)
        return self.database.path

    @property
    def url(self) -> str:
        return self.database.url

    def execute(self, sql: str, *values: object) -> list[tuple[Any, ...]]:
        return self.database.execute(sql, *values)

    def lookup_order(self, order_id: int) -> dict[str, object] | None:
        """Look an order up."""
        self.calls.append("lookup_order")
        rows = self.execute("select id, status, amount from orders where id = ?", order_id)
        return dict(zip(("id", "status", "amount"), rows[0], strict=True)) if rows else None

    def refund_order(self, order_id: int, amount: str) -> dict[str, object]:
        """Refund an order."""
        self.calls.append("refund_order")
        self.execute("update orders set status = 'refunded' where id = ?", order_id)
        self.execute("insert into refunds (order_id, amount) values (?, ?)", order_id, amount)
        return {"refunded": order_id}

    def cancel_order(self, order_id: int) -> dict[str, object]:
        """Cancel an order; the shop says no when it is not open."""
        self.calls.append("cancel_order")
        return {"error": "only an open order can be cancelled"}

    def note_order(self, order_id: int, note: str) -> dict[str, object]:
        """Write a note on an order."""
        self.calls.append("note_order")
        self.execute("update orders set note = ? where id = ?", note, order_id)
        return {"noted": order_id}


CONFIGURATION: dict[str, Any] = {
    "tools": {
        "lookup_order": {"effect": "read"},
        "refund_order": {"effect": "write", "once_per": ["order_id"]},
        "cancel_order": {"effect": "write"},
        "note_order": {"effect": "write"},
    },
    "tasks": {
        "refund_order": {
            "inputs": {"order_id": "integer", "amount": "decimal"},
            "watch": {
                "shop.orders": {"key": "id", "ignore": ["updated_at"]},
                "shop.refunds": {"key": "id"},
            },
            "expect": [
                {"updated": "shop.orders", "key": {"id": "$order_id"}, "values": {"status": "refunded"}},
                {
                    "inserted": "shop.refunds",
                    "values": {"id": {"generated": True}, "order_id": "$order_id", "amount": "$amount"},
                },
            ],
        },
        "look_only": {"watch": {"shop.orders": {"key": "id"}, "shop.refunds": {"key": "id"}}, "expect": "nothing"},
    },
}


class Guards:
    """Makes guards around one shop, and closes them in the end."""

    def __init__(self, shop: Shop, folder: Path) -> None:
        self.shop = shop
        self.ledger = folder / "ledger.db"
        self._made: list[Guard] = []

    def __call__(self, **parts: Any) -> Guard:
        """A guard; keywords replace parts of the configuration, tools and tasks are added to it."""
        names = ("tracer_provider", "meter_provider", "logger_provider")
        providers = {name: parts.pop(name) for name in names if name in parts}
        whole = {
            "stores": {"shop": {"url": self.shop.url}},
            "ledger": str(self.ledger),
            **parts,
            "tools": {**CONFIGURATION["tools"], **parts.get("tools", {})},
            "tasks": {**CONFIGURATION["tasks"], **parts.get("tasks", {})},
        }
        guard = Guard(Configuration.model_validate(whole), **providers)
        self._made.append(guard)
        return guard

    def close(self) -> None:
        for guard in self._made:
            guard.close()
