"""The five runs: the example's agent and shop under a real guard."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from guardrail.cli.demo.changes import Change, changes, rows
from guardrail.cli.demo.example import TASK, Story, module, stories
from guardrail.cli.demo.place import Place
from guardrail.cli.demo.tracing import traced
from guardrail.errors import RunStopped

if TYPE_CHECKING:
    from guardrail.ledger.records import RunHistory
    from guardrail.run.guard import Guard


@dataclass(frozen=True, slots=True)
class Played:
    """A story, what the ledger says of its run, what changed in the shop, and what the agent told the customer.

    `answer` is None when the run was stopped before the agent could say anything.
    """

    story: Story
    history: RunHistory
    changes: tuple[Change, ...]
    answer: str | None


def play(place: Place) -> tuple[Played, ...]:
    """Play all stories in one new shop, and leave ledger and trace. Raises `Misuse` for a folder of others' files."""
    from guardrail.run.guard import Guard

    place.prepare()
    shop = module("shop").Shop(place.shop)
    stores = {"shop": place.shop}
    with (
        traced(place.trace) as provider,
        Guard.load(place.configuration, stores=stores, tracer_provider=provider) as guard,
    ):
        return tuple(_played(guard, shop, story) for story in stories())


def _played(guard: Guard, shop: Any, story: Story) -> Played:
    before, answer = rows(shop.path), None
    model = module("model").scripted(story.script)
    run = guard.run(TASK, inputs=story.inputs, id=story.id)
    with suppress(RunStopped), run:
        answer = module("agent").answer(story.request, model, shop.tools, run)
    history = guard.ledger.load_run(run.id)
    assert history is not None
    return Played(story, history, changes(before, rows(shop.path)), answer)
