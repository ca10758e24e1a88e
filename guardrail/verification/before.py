"""The state before a run: seen when it opens, kept in the ledger, and taken from there when it is taken up again."""

from __future__ import annotations

from collections.abc import Collection, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TypeAlias, cast

from guardrail.call.needs import Look, Need
from guardrail.declare.contracts import Watch
from guardrail.pictures import Answer, Key, Picture, Rows, Unanswered
from guardrail.state.expectations import keys_wanted
from guardrail.stores.store import Store, Survey, surveyed
from guardrail.telemetry.looks import Looker
from guardrail.verification.contracts import LiveContract, LiveWatch
from guardrail.verification.looks import Answers, Asked, look

Found: TypeAlias = tuple[dict[str, object], ...]


@dataclass(frozen=True, slots=True)
class Before:
    """What was seen when the run opened, or when its last input was bound; `at` None: nothing was."""

    at: datetime | None
    watched: tuple[LiveWatch, ...]
    lets: Mapping[str, Found | Unanswered]
    whens: Mapping[str, bool | Unanswered]
    pictures: Mapping[str, Picture | Unanswered]

    def to_keep(self) -> Iterator[Picture]:
        """Everything that was seen, in the form of pictures, for the ledger."""
        yield from (picture for picture in self.pictures.values() if isinstance(picture, Picture))
        for name, rows in self.lets.items():
            if not isinstance(rows, Unanswered):
                yield _as_picture(f"let {name}", rows)
        for branch, holds in self.whens.items():
            if not isinstance(holds, Unanswered):
                yield _as_picture(f"when {branch}", ({"holds": holds},))


def taken(
    contract: LiveContract, inputs: Mapping[str, object], stores: Mapping[str, Store], trace: Looker, at: datetime
) -> Generator[Need, object, Before]:
    """Look at the state now. Raises `StoreError` where the tables are not named and a store is away."""
    watched = yield from tables(contract, stores)
    answers = yield from look(_asked(contract, watched, inputs, {}), stores, trace)
    wanted = _wanted(contract, inputs, answers)
    if wanted:
        # Some tables are too big for whole rows: once more, with the rows that the contract speaks of.
        answers = yield from look(_asked(contract, watched, inputs, wanted), stores, trace)
    return Before(
        at,
        watched,
        {name: _rows(answers["let", name]) for name in contract.lets},
        {branch: _truth(answers["when", branch]) for branch in contract.whens},
        {watch.place: _picture(answers["picture", watch.place]) for watch in watched},
    )


def restored(contract: LiveContract, kept: Iterable[Picture], at: datetime) -> Before | None:
    """The state before as the ledger kept it; None when it kept nothing."""
    found = {picture.table: picture for picture in kept}
    if not found:
        return None
    watched = contract.watched if contract.watched is not None else _named_in(found, contract)
    missing = Unanswered("the before-picture was not kept when the run was opened")
    return Before(
        at,
        watched,
        {name: _kept_rows(found, f"let {name}") for name in contract.lets},
        {branch: _kept_truth(found, f"when {branch}") for branch in contract.whens},
        {watch.place: found.get(watch.place, missing) for watch in watched},
    )


def unknown(contract: LiveContract, stores: Mapping[str, Store], why: str) -> Generator[Need, object, Before]:
    """The state before where nothing is known of it. Raises `StoreError` as `taken` does."""
    watched = yield from tables(contract, stores)
    unseen = Unanswered(why)
    return Before(
        None,
        watched,
        dict.fromkeys(contract.lets, unseen),
        dict.fromkeys(contract.whens, unseen),
        {watch.place: unseen for watch in watched},
    )


def tables(contract: LiveContract, stores: Mapping[str, Store]) -> Generator[Need, object, tuple[LiveWatch, ...]]:
    """The watched tables: the declared ones, or every table of the task's stores."""
    if contract.watched is not None or not contract.looks:
        return contract.watched or ()
    watched: list[LiveWatch] = []
    for store in contract.stores:
        [answer] = cast("list[Answer]", (yield Look(stores[store], [Survey()])))
        found = surveyed(answer)
        watched += [contract.watch(store, table.name, _whole(contract)) for table in found]
    return tuple(watched)


def _asked(
    contract: LiveContract,
    watched: tuple[LiveWatch, ...],
    inputs: Mapping[str, object],
    pinned: Mapping[str, Collection[Key]],
) -> Asked:
    return {
        **{("let", name): query.ask(inputs) for name, query in contract.lets.items()},
        **{("when", branch): query.ask(inputs) for branch, query in contract.whens.items()},
        **{("picture", w.place): w.photograph(inputs, tuple(pinned.get(w.place, ())), None) for w in watched},
    }


def _wanted(contract: LiveContract, inputs: Mapping[str, object], answers: Answers) -> Mapping[str, Collection[Key]]:
    """The keys that the contract speaks of in tables of which only hashes were seen."""
    pictures = [answer for answer in answers.values() if isinstance(answer, Picture)]
    hashed = {picture.table for picture in pictures if picture.hashes is not None}
    if not hashed:
        return {}
    lets = {name: _rows(answers["let", name]) for name in contract.lets}
    keys = {picture.table: picture.key for picture in pictures}
    wanted = keys_wanted(contract.contract, inputs, lets, keys)
    return {table: named for table, named in wanted.items() if table in hashed and named}


def _whole(contract: LiveContract) -> Watch:
    return Watch(whole_rows=contract.task.most_rows, most_rows=contract.task.most_rows)


def _named_in(found: Mapping[str, Picture], contract: LiveContract) -> tuple[LiveWatch, ...]:
    """The tables that were watched when the run was opened, where the task names none."""
    places = [place.partition(".") for place in found if "." in place]
    return tuple(
        contract.watch(store, table, _whole(contract)) for store, _, table in places if store in contract.stores
    )


def _rows(answer: Answer) -> Found | Unanswered:
    return answer.mappings() if isinstance(answer, Rows) else cast("Unanswered", answer)


def _truth(answer: Answer) -> bool | Unanswered:
    return answer.is_true if isinstance(answer, Rows) else cast("Unanswered", answer)


def _picture(answer: Answer) -> Picture | Unanswered:
    return cast("Picture | Unanswered", answer)


def _as_picture(name: str, rows: Sequence[Mapping[str, object]]) -> Picture:
    """Rows in the form in which the ledger keeps pictures, numbered."""
    columns = ("#", *(rows[0] if rows else ()))
    numbered: dict[Key, Key] = {(n,): (n, *row.values()) for n, row in enumerate(rows)}
    return Picture(name, ("#",), columns, dict.fromkeys(columns, "unknown"), numbered)


def _kept_rows(found: Mapping[str, Picture], name: str) -> Found | Unanswered:
    picture = found.get(name)
    if picture is None:
        return Unanswered("its rows were not kept when the run was opened")
    return tuple(dict(zip(picture.columns[1:], row[1:], strict=True)) for row in picture.rows.values())


def _kept_truth(found: Mapping[str, Picture], name: str) -> bool | Unanswered:
    rows = _kept_rows(found, name)
    return rows if isinstance(rows, Unanswered) else bool(rows[0]["holds"])
