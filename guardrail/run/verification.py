"""Verification: the live state before and after a run, held against the task's contract."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import TypeAlias, cast

from guardrail.call.needs import Need, Pause, Work
from guardrail.calls import Finding
from guardrail.declare.contracts import Watch
from guardrail.digests import Digest, digested_like
from guardrail.errors import LedgerError, StoreError
from guardrail.ledger.ledger import Ledger
from guardrail.pictures import Answer, Key, Picture, Rows, Unanswered
from guardrail.run.checks import State, answered, asked_of, finding, outcome_of
from guardrail.run.contracts import LiveCheck, LiveContract, LiveWatch, StoredQuery
from guardrail.run.inputs import Inputs
from guardrail.run.kept import as_picture, rows_of, truth_of
from guardrail.state.differences import unseen
from guardrail.state.evidence import Evidence
from guardrail.state.expectations import Verified, keys_wanted, unsettled, verify
from guardrail.state.matching import Window
from guardrail.state.scope import Scope
from guardrail.stores.store import Ask, Photograph, Question, Store
from guardrail.telemetry.looks import VerifyTrace
from guardrail.telemetry.secrecy import is_secret
from guardrail.telemetry.traces import RunTrace

Label: TypeAlias = tuple[str, str]
"""What a question is about: ("let" | "when" | "picture" | "check", its name)."""

Answers: TypeAlias = Mapping[Label, Answer]

FIRST_PAUSE, LONGEST_PAUSE = 0.05, 1.0
"""How many seconds lie between two looks while the state settles: at first, and at most."""

MOST_ASKED_FOR = 1_000
"""How many new and changed rows of one big table are asked for, to tell what stands in them."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What the state came to: the findings, which alternative was judged, how often it was looked at.

    `because` says why nothing could be judged; it is empty when the contract was. `note` says why this
    alternative was judged, where no single one applies.
    """

    findings: tuple[Finding, ...] = ()
    alternative: str | None = None
    looks: int = 0
    because: str = ""
    note: str = ""


Judging: TypeAlias = Generator[Need, object, Outcome]


@dataclass(slots=True)
class _Before:
    """What was seen when the run opened, or when its last input was bound; `at` None: nothing was."""

    at: datetime | None
    lets: Mapping[str, tuple[dict[str, object], ...] | Unanswered]
    whens: Mapping[str, bool | Unanswered]
    pictures: Mapping[str, Picture | Unanswered]


class Verification:
    """The verification of one run: takes the before-picture, and judges the state at the end."""

    def __init__(
        self,
        run: str,
        contract: LiveContract | None,
        *,
        inputs: Inputs,
        stores: Mapping[str, Store],
        ledger: Ledger,
        trace: RunTrace,
        secret: frozenset[str],
        opened: datetime,
    ) -> None:
        self._run = run
        self._contract = contract
        self._inputs = inputs
        self._stores = stores
        self._ledger = ledger
        self._trace = trace
        self._secret = secret
        self._opened = opened
        self._before: _Before | None = None
        self._trouble = "no before-picture was taken"
        self._watched: tuple[LiveWatch, ...] = ()

    def before(self) -> None:
        """Take the before-picture and keep it in the ledger; what cannot be seen is noted as such.

        Never raises: a run is not broken because it cannot be verified, it is `unverified`.
        """
        if self._contract is None:
            return
        try:
            self._take(self._contract)
        except StoreError as error:
            self._trouble = str(error)
        except Exception as error:  # noqa: BLE001 - the guard's own failure, or a store's: told in the verdict
            self._trouble = f"the before-picture could not be taken: {type(error).__name__}: {error}"
            self._trace.log.error("guardrail.guard_error", error=type(error).__name__)

    def _take(self, contract: LiveContract) -> None:
        self._watched = self._tables(contract)
        answers = self._look(self._questions(contract, {}), self._trace)
        lets = {name: _rows(answers["let", name]) for name in contract.lets}
        keys = {picture.table: picture.key for picture in answers.values() if isinstance(picture, Picture)}
        wanted = keys_wanted(contract.contract, self._inputs.values, lets, keys)
        if any(isinstance(p, Picture) and p.hashes is not None and wanted.get(p.table) for p in answers.values()):
            # Some tables are too big for whole rows: once more, with the rows that the contract speaks of.
            answers = self._look(self._questions(contract, wanted), self._trace)
            lets = {name: _rows(answers["let", name]) for name in contract.lets}
        self._before = _Before(
            self._opened,
            lets,
            {branch: _truth(answers["when", branch]) for branch in contract.whens},
            {watch.place: _picture(answers["picture", watch.place]) for watch in self._watched},
        )
        self._keep(self._before)

    def restore(self, pictures: Iterable[Picture], opened: datetime) -> bool:
        """Take the before-picture that an earlier process kept when it opened the run; false when there is none."""
        found = {picture.table: picture for picture in pictures}
        contract = self._contract
        if contract is None or not found:
            return False
        self._watched = contract.watched if contract.watched is not None else _tables_in(found, contract)
        lets = {name: rows_of(found, f"let {name}") for name in contract.lets}
        whens = {branch: truth_of(found, f"when {branch}") for branch in contract.whens}
        missing = Unanswered("the before-picture was not kept when the run was opened")
        self._before = _Before(opened, lets, whens, {w.place: found.get(w.place, missing) for w in self._watched})
        return True

    def go_without(self, why: str) -> None:
        """Judge by the end alone, as nothing was seen before; `why` stands in the findings that this costs."""
        contract = self._contract
        if contract is None:
            return
        try:
            self._watched = self._tables(contract)
        except StoreError as error:
            self._trouble = str(error)
            return
        unseen = Unanswered(why)
        self._before = _Before(
            None,
            dict.fromkeys(contract.lets, unseen),
            dict.fromkeys(contract.whens, unseen),
            {watch.place: unseen for watch in self._watched},
        )

    def judge(self, *, hurried: bool = False) -> Judging:
        """Look at the state, again while it settles, and judge it. `hurried`: one look and no waiting."""
        contract = self._contract
        if contract is None:
            return Outcome(because="the run has no contract: no task is declared under its name")
        if self._before is None:
            missing = ", ".join(late.name for late in self._inputs.missing)
            return Outcome(because=f"the inputs were never bound: {missing}" if missing else self._trouble)
        started = time.monotonic()
        trace = self._trace.open_verify()
        until = started + (0.0 if hurried else contract.settle)
        looks, pause = 0, FIRST_PAUSE
        while True:
            verified = cast("Verified", (yield Work(partial(self._verify, contract, self._before, trace))))
            looks += 1
            left = until - time.monotonic()
            if left <= 0 or not unsettled(verified):
                break
            yield Pause(min(pause, left))
            pause = min(pause * 2, LONGEST_PAUSE)
        trace.close(verified.findings, looks, time.monotonic() - started)
        return Outcome(verified.findings, verified.alternative, looks, note=verified.note)

    def _verify(self, contract: LiveContract, before: _Before, trace: VerifyTrace) -> Verified:
        """One look at the state, in one snapshot of each store, and what it comes to."""
        answers, after = self._after(contract, before, {}, trace)
        unknown = _unknown(before.pictures, after)
        if unknown:
            # What stands in new and changed rows of a big table is known only by asking for them.
            answers, after = self._after(contract, before, unknown, trace)
        state = State(self._inputs.values, before.pictures, after, self._stores)
        scope = Scope(self._inputs.values, before.lets)
        evidence = Evidence(
            inputs=self._inputs.values,
            before=before.pictures,
            after=after,
            lets=before.lets,
            window=None if before.at is None else Window(before.at, datetime.now(UTC)),
            whens=before.whens,
            checks={
                branch: [f for check in checks for f in self._check(check, f"{branch}.", answers, state, scope, trace)]
                for branch, checks in contract.branch_checks.items()
            },
            secret=self._secret.union(_secret_columns(after.values())),
        )
        verified = verify(contract.contract, evidence)
        found = [f for check in contract.checks for f in self._check(check, "", answers, state, scope, trace)]
        return Verified((*verified.findings, *found), verified.alternative, verified.note)

    def _after(
        self, contract: LiveContract, before: _Before, pinned: Mapping[str, tuple[Key, ...]], trace: VerifyTrace
    ) -> tuple[Answers, dict[str, Picture | Unanswered]]:
        """The answers of one look at the end, and the pictures among them."""
        answers = self._look(self._after_questions(contract, before, pinned), trace)
        pictures = {watch.place: _picture(answers["picture", watch.place]) for watch in self._watched}
        return answers, {place: _aligned(picture, before.pictures[place]) for place, picture in pictures.items()}

    # Questions and answers.

    def _tables(self, contract: LiveContract) -> tuple[LiveWatch, ...]:
        """The watched tables: the declared ones, or every table of the task's stores."""
        if contract.watched is not None or not contract.looks:
            return contract.watched or ()
        return tuple(
            LiveWatch(store, table.name, _whole(contract), None, None)
            for store in contract.stores
            for table in self._stores[store].tables()
        )

    def _questions(
        self, contract: LiveContract, pinned: Mapping[str, Iterable[Key]]
    ) -> dict[Label, tuple[str, Question]]:
        asked: dict[Label, tuple[str, Question]] = {
            **{("let", name): self._ask(query) for name, query in contract.lets.items()},
            **{("when", branch): self._ask(query) for branch, query in contract.whens.items()},
        }
        for watch in self._watched:
            keys = tuple(pinned.get(watch.place, ()))
            asked["picture", watch.place] = watch.store, self._photograph(watch, keys, None)
        return asked

    def _after_questions(
        self, contract: LiveContract, before: _Before, pinned: Mapping[str, tuple[Key, ...]]
    ) -> dict[Label, tuple[str, Question]]:
        asked: dict[Label, tuple[str, Question]] = {}
        for watch in self._watched:
            seen = before.pictures[watch.place]
            form = seen.hashes is not None if isinstance(seen, Picture) else None
            keys = tuple(seen.rows) if isinstance(seen, Picture) and form else ()
            more = tuple(key for key in pinned.get(watch.place, ()) if key not in keys)
            asked["picture", watch.place] = watch.store, self._photograph(watch, (*keys, *more), form)
        named = [("", contract.checks), *((f"{b}.", c) for b, c in contract.branch_checks.items())]
        for prefix, checks in named:
            for check in checks:
                if check.query is not None:
                    asked["check", prefix + check.name] = self._ask(check.query)
        return asked

    def _ask(self, stored: StoredQuery) -> tuple[str, Question]:
        return stored.store, Ask(stored.query, self._inputs.values)

    def _photograph(self, watch: LiveWatch, pinned: tuple[Key, ...], form: bool | None) -> Photograph:
        return Photograph(
            name=watch.place,
            table=watch.table,
            key=watch.key,
            where=watch.where,
            values=self._inputs.values,
            ignore=frozenset(watch.declared.ignore),
            whole_rows=watch.declared.whole_rows,
            most_rows=watch.declared.most_rows,
            pinned=pinned,
            hashed=form,
        )

    def _look(self, asked: Mapping[Label, tuple[str, Question]], trace: RunTrace | VerifyTrace) -> dict[Label, Answer]:
        """Put all questions, those to one store in one snapshot."""
        by_store: dict[str, list[tuple[Label, Question]]] = defaultdict(list)
        for label, (store, question) in asked.items():
            by_store[store].append((label, question))
        answers: dict[Label, Answer] = {}
        for store, questions in by_store.items():
            started = time.time_ns()
            given = self._stores[store].look([question for _, question in questions])
            for (label, question), answer in zip(questions, given, strict=True):
                answers[label] = answer
                self._tell(trace, store, label, question, answer, started)
        return answers

    def _tell(
        self, trace: RunTrace | VerifyTrace, store: str, label: Label, question: Question, answer: Answer, started: int
    ) -> None:
        """A span for a question; checks are told where they are judged."""
        if label[0] == "check":
            return
        tables, text = (
            (question.query.tables, question.query.rendered) if isinstance(question, Ask) else ((question.table,), "")
        )
        size = answer.size if isinstance(answer, Picture) else len(answer.rows) if isinstance(answer, Rows) else None
        trace.check(
            label[1],
            self._stores[store].dialect,
            f"SELECT {' '.join(tables)}".strip(),
            text,
            "error" if isinstance(answer, Unanswered) else None,
            table=tables[0] if len(tables) == 1 else "",
            store=store,
            rows=size,
            started=started,
            ended=time.time_ns(),
        )

    # Checks.

    def _check(
        self, check: LiveCheck, prefix: str, answers: Answers, state: State, scope: Scope, trace: VerifyTrace
    ) -> Sequence[Finding]:
        started = time.time_ns()
        name = prefix + check.name
        if check.query is None:
            wrong = asked_of(check, state)
            outcome = outcome_of(wrong)
            trace.check(name, "", "", "", outcome, started=started, ended=time.time_ns())
        else:
            wrong = answered(check, answers["check", name], scope)
            outcome = outcome_of(wrong)
            query = check.query.query
            trace.check(
                name,
                self._stores[check.query.store].dialect,
                f"SELECT {' '.join(query.tables)}".strip(),
                query.rendered,
                outcome,
                store=check.query.store,
                started=started,
                ended=time.time_ns(),
            )
        return () if wrong is None else (finding(name, check, wrong, self._secret),)

    # The ledger.

    def _keep(self, before: _Before) -> None:
        """Keep what was seen, so that the run can be judged even if this process ends."""
        pictures = [p for p in before.pictures.values() if isinstance(p, Picture)]
        lets = [
            as_picture(f"let {name}", rows) for name, rows in before.lets.items() if not isinstance(rows, Unanswered)
        ]
        whens = [
            as_picture(f"when {branch}", ({"holds": truth},))
            for branch, truth in before.whens.items()
            if not isinstance(truth, Unanswered)
        ]
        for picture in (*pictures, *lets, *whens):
            redacted = {c for c in picture.columns if c in self._secret or is_secret(c)}
            try:
                self._ledger.keep_picture(self._run, picture, redacted)
            except LedgerError as error:
                self._trace.log.warning("guardrail.picture_not_kept", table=picture.table, why=str(error))


def _aligned(after: Picture | Unanswered, before: Picture | Unanswered) -> Picture | Unanswered:
    """A live picture whose rows are keyed as those of a picture from the ledger, where secret keys are digests."""
    if isinstance(after, Picture) and isinstance(before, Picture):
        key = next(iter(before.rows if before.hashes is None else before.hashes), ())
        if any(isinstance(value, Digest) for value in key):
            return digested_like(after, before)
    return after


def _unknown(
    before: Mapping[str, Picture | Unanswered], after: Mapping[str, Picture | Unanswered]
) -> dict[str, tuple[Key, ...]]:
    """The keys of new and changed rows of which only the hash is known, by table; of a flood of them, the first."""
    found = {
        place: unseen(before_picture, picture)[:MOST_ASKED_FOR]
        for place, picture in after.items()
        if isinstance(picture, Picture) and isinstance(before_picture := before[place], Picture)
    }
    return {place: keys for place, keys in found.items() if keys}


def _secret_columns(pictures: Iterable[Picture | Unanswered]) -> frozenset[str]:
    """The columns whose names look like a secret's."""
    columns = (c for picture in pictures if isinstance(picture, Picture) for c in picture.columns)
    return frozenset(filter(is_secret, columns))


def _tables_in(found: Mapping[str, Picture], contract: LiveContract) -> tuple[LiveWatch, ...]:
    """The tables that were watched when the run was opened, where the task names none."""
    whole = _whole(contract)
    places = [place.partition(".") for place in found if "." in place]
    return tuple(LiveWatch(store, table, whole, None, None) for store, _, table in places if store in contract.stores)


def _whole(contract: LiveContract) -> Watch:
    return Watch(whole_rows=contract.task.most_rows, most_rows=contract.task.most_rows)


def _rows(answer: Answer) -> tuple[dict[str, object], ...] | Unanswered:
    return answer.mappings() if isinstance(answer, Rows) else cast("Unanswered", answer)


def _truth(answer: Answer) -> bool | Unanswered:
    match answer:
        case Unanswered():
            return answer
        case Rows(rows=((value,),)):
            return bool(value)
        case _:
            return False


def _picture(answer: Answer) -> Picture | Unanswered:
    return cast("Picture | Unanswered", answer)
