"""Looks: questions put to the stores of a run, all that concern one store in one snapshot, and told to telemetry."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Generator, Mapping
from typing import TypeAlias, cast

from guardrail.call.needs import Look, Need
from guardrail.pictures import Answer, Picture, Rows, Tables, Unanswered
from guardrail.stores.store import Ask, Fetch, Photograph, Question, Store, Survey
from guardrail.telemetry.looks import CheckOutcome, Looker

Label: TypeAlias = tuple[str, str]
"""What a question is about: ("let" | "when" | "picture" | "check", its name)."""

Asked: TypeAlias = Mapping[Label, tuple[str, Question]]
"""Questions by label, each with the store it is for."""

Answers: TypeAlias = Mapping[Label, Answer]


def look(asked: Asked, stores: Mapping[str, Store], trace: Looker) -> Generator[Need, object, Answers]:
    """Put all questions; what cannot be answered is `Unanswered`."""
    by_store: dict[str, list[tuple[Label, Question]]] = defaultdict(list)
    for label, (store, question) in asked.items():
        by_store[store].append((label, question))
    answers: dict[Label, Answer] = {}
    for name, questions in by_store.items():
        started = time.time_ns()
        given = cast("list[Answer]", (yield Look(stores[name], [question for _, question in questions], trace)))
        for (label, question), answer in zip(questions, given, strict=True):
            answers[label] = answer
            _tell(trace, stores[name], label, question, answer, started)
    return answers


def _tell(trace: Looker, store: Store, label: Label, question: Question, answer: Answer, started: int) -> None:
    """A span for a question; checks are told where they are judged."""
    if label[0] != "check":
        outcome: CheckOutcome | None = "error" if isinstance(answer, Unanswered) else None
        size = answer.size if isinstance(answer, Picture) else len(answer.rows) if isinstance(answer, Rows) else None
        tell(trace, label[1], store, question, answer, outcome, started, rows=size)


def tell(
    trace: Looker,
    name: str,
    store: Store,
    question: Question,
    answer: Answer,
    outcome: CheckOutcome | None,
    started: int,
    *,
    rows: int | None = None,
) -> None:
    """Tell of a question that was put to a store, and what came of it; `started` is in nanoseconds since the epoch."""
    tables, text = _asked(question)
    exchange = None if isinstance(answer, Tables) else answer.exchange
    trace.check(
        name,
        store.dialect or "",
        f"SELECT {' '.join(tables)}".strip() if store.dialect else "",
        text,
        outcome,
        table=tables[0] if len(tables) == 1 else "",
        store=store.name,
        rows=rows,
        started=started,
        ended=time.time_ns(),
        exchange=exchange,
    )


def _asked(question: Question) -> tuple[tuple[str, ...], str]:
    """The tables that a question is about, and the query, where it is one."""
    match question:
        case Ask(query):
            return query.tables, query.rendered
        case Photograph(table=table):
            return (table,), ""
        case Fetch() | Survey():
            return (), ""
