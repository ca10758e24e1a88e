"""Verification: the live state before and after a run, held against the task's contract."""

from __future__ import annotations

import time
from collections.abc import Generator, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from typing import TypeAlias, cast

from guardrail.call.needs import Compute, Need, Pause
from guardrail.calls import Finding
from guardrail.digests import Digest, digested_like
from guardrail.errors import LedgerError, StoreError
from guardrail.ledger.ledger import Ledger
from guardrail.pictures import Key, Picture, Unanswered, joined
from guardrail.state.differences import unseen
from guardrail.state.evidence import Evidence
from guardrail.state.expectations import Verified, unsettled, verify
from guardrail.state.matching import Window
from guardrail.state.scope import Scope
from guardrail.stores.store import Store
from guardrail.telemetry.looks import VerifyTrace
from guardrail.telemetry.secrecy import SecretNames
from guardrail.telemetry.traces import RunTrace
from guardrail.verification.before import Before, restored, tables_of, taken, unknown
from guardrail.verification.checks import Checking, State, named_checks
from guardrail.verification.contracts import LiveContract, LiveWatch
from guardrail.verification.fitting import misfits
from guardrail.verification.inputs import Inputs
from guardrail.verification.looks import Answers, Asked, look

FIRST_PAUSE, LONGEST_PAUSE = 0.05, 1.0
"""How many seconds lie between two looks while the state settles: at first, and at most."""

MOST_ASKED_FOR = 1_000
"""How many new and changed rows of one big table are asked for, to tell what stands in them."""


@dataclass(frozen=True, slots=True)
class Judged:
    """What the state came to: the findings, which alternative was judged, how often it was looked at.

    `because` says why nothing could be judged; it is empty when the contract was. `note` says why this
    alternative was judged, where no single one applies. `untouched`: nothing at all has changed in what is watched, of
    which `apis` are the places that are resources of HTTP APIs.
    """

    findings: tuple[Finding, ...] = ()
    alternative: str | None = None
    looks: int = 0
    because: str = ""
    note: str = ""
    untouched: bool = False
    apis: frozenset[str] = frozenset()


Seen: TypeAlias = Picture | Unanswered
Pictures: TypeAlias = dict[str, Seen]
Looking: TypeAlias = Generator[Need, object, None]
Judging: TypeAlias = Generator[Need, object, Judged]


class Verification:
    """The verification of one run: sees the state before, and judges the state at the end.

    Its steps are flows: what has to be looked at, they yield.
    """

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
        without: str = "the run has no contract",
    ) -> None:
        self._run = run
        self._contract = contract
        self._inputs = inputs
        self._stores = stores
        self._ledger = ledger
        self._trace = trace
        self._secret = secret
        self._opened = opened
        self._before: Before | None = None
        self._trouble = "no before-picture was taken"
        self._without = without
        self._untouched = False
        self._away = False
        """Whether the last look left a question unanswered, which another one may answer."""

    def before(self) -> Looking:
        """See the state before and keep it in the ledger; what cannot be seen is noted as such.

        Never raises: a run is not broken because it cannot be verified, it is `unverified`.
        """
        if self._contract is None:
            return
        yield from self._noted(taken(self._contract, self._inputs.values, self._stores, self._trace, self._opened))
        if self._before is not None:
            yield Compute(partial(self._keep, self._before))
            self._warn(self._contract, self._before)

    def _warn(self, contract: LiveContract, before: Before) -> None:
        """Say at once, not only when the run has ended, what of the contract cannot be looked at."""
        for picture in before.pictures.values():
            if isinstance(picture, Unanswered):
                self._trace.log.warning("guardrail.state_not_seen", task=contract.name, why=picture.why)
        for misfit in misfits(contract.contract, before.pictures):
            self._trace.log.warning("guardrail.contract_does_not_fit", task=contract.name, why=misfit.text)

    def restore(self, pictures: Iterable[Picture], opened: datetime) -> bool:
        """Take what an earlier process saw when it opened the run; false when nothing was kept."""
        self._before = None if self._contract is None else restored(self._contract, pictures, opened)
        return self._before is not None

    def go_without(self, why: str) -> Looking:
        """Judge by the end alone, as nothing was seen before; `why` stands in the findings that this costs."""
        if self._contract is not None:
            yield from self._noted(unknown(self._contract, self._stores, why))

    def judge(self, *, hurried: bool = False) -> Judging:
        """Look at the state, again while it settles, and judge it. `hurried`: one look and no waiting."""
        contract, before = self._contract, self._before
        if contract is None:
            return Judged(because=self._without)
        if before is None:
            missing = ", ".join(late.name for late in self._inputs.missing)
            return Judged(because=f"the inputs were never bound: {missing}" if missing else self._trouble)
        slips = misfits(contract.contract, before.pictures)
        if slips:
            return Judged(slips)
        started = time.monotonic()
        trace = self._trace.open_verify()
        until = started + (0.0 if hurried else contract.settle)
        looks, pause = 0, FIRST_PAUSE
        while True:
            verified = yield from self._verify(contract, before, trace)
            looks += 1
            left = until - time.monotonic()
            if left <= 0 or not (self._away or unsettled(verified)):
                break
            yield Pause(min(pause, left))
            pause = min(pause * 2, LONGEST_PAUSE)
        trace.close(verified.findings, looks, time.monotonic() - started)
        apis = frozenset(watch.place for watch in before.watched if not watch.has_schema)
        found = verified.findings, verified.alternative, looks
        return Judged(*found, note=verified.note, untouched=self._untouched, apis=apis)

    def _noted(self, seeing: Generator[Need, object, Before]) -> Looking:
        try:
            self._before = yield from seeing
        except StoreError as error:
            self._trouble = str(error)
        except Exception as error:  # noqa: BLE001 - the guard's own failure, or a store's: told in the verdict
            self._trouble = f"the state before could not be seen: {type(error).__name__}: {error}"
            self._trace.log.error("guardrail.guard_error", error=type(error).__name__)

    def _verify(self, contract: LiveContract, before: Before, trace: VerifyTrace) -> Generator[Need, object, Verified]:
        """One look at the state, in one snapshot of each store, and what it comes to."""
        answers, pictures, after = yield from self._after(contract, before, {}, trace)
        unseen_rows = _unseen(pictures, after)
        if unseen_rows:
            # What stands in new and changed rows of a big table is known only by asking for them.
            answers, pictures, after = yield from self._after(contract, before, unseen_rows, trace)
        self._away = any(isinstance(answer, Unanswered) for answer in answers.values())
        state = State(self._inputs.values, pictures, after, self._stores)
        checking = Checking(answers, state, Scope(self._inputs.values, before.lets), self._stores, trace, self._secret)
        by_branch: dict[str, list[Finding]] = {}
        for branch, checks in contract.branch_checks.items():
            by_branch[branch] = yield from checking.findings(checks, f"{branch}.")
        evidence = Evidence(
            inputs=self._inputs.values,
            before=pictures,
            after=after,
            lets=before.lets,
            window=None if before.at is None else Window(before.at, datetime.now(UTC)),
            whens=before.whens,
            checks=by_branch,
            secret=SecretNames(self._secret),
        )
        verified = cast("Verified", (yield Compute(partial(self._compared, contract, evidence))))
        found = yield from checking.findings(contract.checks, "")
        created = yield from self._created(contract, before)
        return replace(verified, findings=(*verified.findings, *_vacuous(pictures, after), *created, *found))

    def _compared(self, contract: LiveContract, evidence: Evidence) -> Verified:
        self._untouched = evidence.after == evidence.before
        verified = verify(contract.contract, evidence)
        return replace(verified, findings=(*verified.findings, *_blind(evidence.after), *_partial(evidence.after)))

    def _created(self, contract: LiveContract, before: Before) -> Generator[Need, object, list[Finding]]:
        """A finding for each table that was created during the run, where all tables are watched."""
        if contract.watched is not None or not contract.looks or before.at is None:
            return []
        known = {watch.place for watch in before.watched}
        found: list[Finding] = []
        for name in contract.stores:
            try:
                now = yield from tables_of(contract, name, self._stores[name])
            except StoreError as error:
                text = f"{name}: whether tables were created could not be told: {error}"
                found.append(Finding("check_error", name, text))
                continue
            text = "the table was created, and nobody asked for it"
            found += [Finding("unrequested_change", w.place, f"{w.place}: {text}") for w in now if w.place not in known]
        return found

    def _after(
        self, contract: LiveContract, before: Before, pinned: Mapping[str, tuple[Key, ...]], trace: VerifyTrace
    ) -> Generator[Need, object, tuple[Answers, Pictures, Pictures]]:
        """The answers of one look at the end, and the pictures from before and among them, alike in form."""
        asked = _asked(contract, before, self._inputs.values, pinned)
        answers = yield from look(asked, self._stores, trace)
        aligned = yield Compute(partial(_side_by_side, before, answers))
        return answers, *cast("tuple[Pictures, Pictures]", aligned)

    def _keep(self, before: Before) -> None:
        """Keep what was seen, so that the run can be judged even if this process ends."""
        secret = SecretNames(self._secret)
        for picture in before.to_keep():
            redacted = frozenset(column for column in picture.columns if column in secret)
            try:
                self._ledger.keep_picture(self._run, picture, redacted)
            except LedgerError as error:
                self._trace.log.warning("guardrail.picture_not_kept", table=picture.table, why=str(error))


def _asked(
    contract: LiveContract, before: Before, inputs: Mapping[str, object], pinned: Mapping[str, tuple[Key, ...]]
) -> Asked:
    """What is asked at the end: pictures in the form of those from before, and the checks."""
    asked: dict[tuple[str, str], tuple[str, object]] = {}
    for watch in before.watched:
        seen = before.pictures[watch.place]
        form = seen.hashes is not None if isinstance(seen, Picture) else None
        keys = tuple(seen.rows) if isinstance(seen, Picture) and form else ()
        more = tuple(key for key in pinned.get(watch.place, ()) if key not in keys)
        asked["picture", watch.place] = watch.photograph(inputs, (*keys, *more), form)
    for name, check in named_checks(contract):
        if check.query is not None:
            asked["check", name] = check.query.ask(inputs)
    return cast("Asked", asked)


def _side_by_side(before: Before, answers: Answers) -> tuple[Pictures, Pictures]:
    """The pictures from before and of now, each two of them in one form."""
    seen: Pictures = {}
    found: Pictures = {}
    for watch in before.watched:
        now = cast("Seen", answers["picture", watch.place])
        seen[watch.place], found[watch.place] = _aligned(watch, before.pictures[watch.place], now)
    return seen, found


def _aligned(watch: LiveWatch, before: Seen, after: Seen) -> tuple[Seen, Seen]:
    """Two pictures of a table in one form: over the same columns where it has no schema, and with keys that compare.

    In a picture from the ledger, keys that are secret are digests; those of the live one become digests like them.
    """
    if not isinstance(before, Picture) or not isinstance(after, Picture):
        return before, after
    if not watch.has_schema:
        before, after = joined(before, after)
    key = next(iter(before.rows if before.hashes is None else before.hashes), ())
    if any(isinstance(value, Digest) for value in key):
        after = digested_like(after, before)
    return before, after


def _vacuous(before: Pictures, after: Pictures) -> Iterator[Finding]:
    """A warning for each resource of which there was none, by its status, before and after the run."""
    for place, picture in after.items():
        statuses = [exchange.status for seen in (before[place], picture) if (exchange := seen.exchange) is not None]
        if len(statuses) == 2 and not {200, 304}.intersection(statuses):
            text = f"{place}: it answered {statuses[0]} before and after the run, so nothing of it could have changed; "
            yield Finding("check_error", place, f"{text}is its path right?", warning=True)


def _unseen(
    before: Mapping[str, Picture | Unanswered], after: Mapping[str, Picture | Unanswered]
) -> dict[str, tuple[Key, ...]]:
    """The keys of new and changed rows of which only the hash is known, by table; of a flood of them, the first."""
    found = {
        place: unseen(earlier, picture)[:MOST_ASKED_FOR]
        for place, picture in after.items()
        if isinstance(picture, Picture) and isinstance(earlier := before[place], Picture)
    }
    return {place: keys for place, keys in found.items() if keys}


def _blind(after: Mapping[str, Picture | Unanswered]) -> Iterator[Finding]:
    """A warning for each table of which the store's role may not see every row."""
    for place, picture in after.items():
        if isinstance(picture, Picture) and picture.hides_rows:
            text = f"{place}: row-level security may hide rows from the store's role, and nothing is known of those"
            yield Finding("check_error", place, text, warning=True)


def _partial(after: Mapping[str, Picture | Unanswered]) -> Iterator[Finding]:
    """A warning for each resource that says that there are more entries than it gave."""
    for place, picture in after.items():
        if isinstance(picture, Picture) and picture.claimed:
            text = (
                f"{place}: it says that there are {picture.claimed:,}, and {picture.size:,} rows were read; if those "
                "are not all, declare how its `next` page is found, else `next: none`"
            )
            yield Finding("check_error", place, text, warning=True)
