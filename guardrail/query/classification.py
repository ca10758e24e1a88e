"""The classification of what a tool is given to execute as SQL (rule 17 of the design tells a read)."""

from __future__ import annotations

from functools import lru_cache

from guardrail.query.classified import Classification, Statement, Trait
from guardrail.query.proved import LONGEST, Dialect

__all__ = ["Classification", "Statement", "Trait", "classify"]


def classify(text: str, dialect: Dialect) -> Classification:
    """What the statements of `text` do. Nothing is executed; never raises, whatever the text holds.

    What cannot be told counts as a write. What a view, a trigger, an operator or a function of the user's own does is
    not in the text. Answers are kept by text and dialect.
    """
    if len(text) > LONGEST:
        because = f"it has {len(text)} characters; at most {LONGEST} are read"
        return Classification((Statement("write", legible=False, because=because),))
    return _classified(text, dialect)


@lru_cache(maxsize=512)
def _classified(text: str, dialect: Dialect) -> Classification:
    # The parser is imported with the first text: it is the heaviest import of the library.
    from guardrail.query.statements import statements

    return Classification(statements(text, dialect))
