"""What the ledger keeps of the state before a run besides pictures: rows and answers, in a picture's form."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from guardrail.pictures import Key, Picture, Unanswered


def as_picture(name: str, rows: Sequence[Mapping[str, object]]) -> Picture:
    """Rows in the form in which the ledger keeps pictures, numbered."""
    columns = ("#", *(rows[0] if rows else ()))
    numbered: dict[Key, Key] = {(n,): (n, *row.values()) for n, row in enumerate(rows)}
    return Picture(name, ("#",), columns, dict.fromkeys(columns, "unknown"), numbered)


def rows_of(found: Mapping[str, Picture], name: str) -> tuple[dict[str, object], ...] | Unanswered:
    """The rows that were kept under this name."""
    picture = found.get(name)
    if picture is None:
        return Unanswered("its rows were not kept when the run was opened")
    return tuple(dict(zip(picture.columns[1:], row[1:], strict=True)) for row in picture.rows.values())


def truth_of(found: Mapping[str, Picture], name: str) -> bool | Unanswered:
    """The answer that was kept under this name."""
    rows = rows_of(found, name)
    return rows if isinstance(rows, Unanswered) else bool(rows[0]["holds"])
