"""What tests of MariaDB stores ask, and read from the answers."""

from __future__ import annotations

from typing import Any

from guardrail.pictures import Answer, Picture, Rows, Unanswered
from guardrail.query.proof import prove
from guardrail.stores.store import Ask, Photograph, Store


def ask(sql: str, functions: frozenset[str] = frozenset(), **values: object) -> Ask:
    """A query with its values."""
    return Ask(prove(sql, "mysql", functions=functions), values)


def value(store: Store, sql: str, **values: object) -> object:
    """The one value that a query answers."""
    [answer] = store.look([Ask(prove(sql, "mysql"), values)])
    return only(answer)


def only(answer: Answer) -> object:
    """The one value of an answer."""
    assert isinstance(answer, Rows), answer
    [[found]] = answer.rows
    return found


def why(answer: Answer) -> str:
    """Why there is no answer."""
    assert isinstance(answer, Unanswered), answer
    return answer.why


def picture(store: Store, table: str = "t", **asked: Any) -> Picture:
    """A picture of a table."""
    [answer] = store.look([Photograph(f"shop.{table}", table, **asked)])
    assert isinstance(answer, Picture), answer
    return answer


def refusal(store: Store, table: str = "t", **asked: Any) -> str:
    """Why there is no picture of a table."""
    [answer] = store.look([Photograph(f"shop.{table}", table, **asked)])
    place, reason = why(answer).split(" could not be looked at: ")
    assert place == f"shop.{table}"
    return reason
