"""The state held against a contract: which alternative applies, and what differs from it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from guardrail.calls import Finding
from guardrail.declare.values import Given, Value
from guardrail.pictures import Key, Picture, Unanswered
from guardrail.state.branches import judge_branch, once
from guardrail.state.comparison import Incomparable
from guardrail.state.concealment import concealed
from guardrail.state.contract import Branch, Contract, Expected
from guardrail.state.differences import comparisons
from guardrail.state.evidence import Evidence
from guardrail.state.findings import Reporter
from guardrail.state.scope import Found, Scope, Unresolved
from guardrail.state.tables import Table


@dataclass(frozen=True, slots=True)
class Verified:
    """What the state came to.

    `alternative` names the branch of `any_of` whose findings these are; `note` says why that one, where no single one
    applies.
    """

    findings: tuple[Finding, ...]
    alternative: str | None = None
    note: str = ""


def verify(contract: Contract, evidence: Evidence) -> Verified:
    """Hold the state against a contract; never raises for what it finds there.

    Findings of every alternative's own checks are part of the evidence; those of the judged one are in the result.
    """
    if not contract.branches:
        return Verified(())
    pictures = {name: picture for name, picture in evidence.after.items() if isinstance(picture, Picture)}
    contract = contract.spelled({name: picture.columns for name, picture in pictures.items()})
    how = {name: comparisons(picture, contract.watch(name).compare) for name, picture in pictures.items()}
    report = Reporter(evidence.secret, concealed(contract, evidence.secret), how)
    tables, doubts = _tables(contract, evidence, report)
    applying, doubtful = _applying(contract.branches, evidence, report)
    if not applying:
        return Verified((*doubts, *doubtful), None, "no alternative applies")
    judged = [_Judged(branch, _judge(branch, tables, evidence, report)) for branch in applying]
    chosen = _choose(judged, report, is_sure=not (doubts or doubtful))
    return Verified(once([*doubts, *doubtful, *chosen.findings]), chosen.alternative, chosen.note)


def unsettled(verified: Verified) -> bool:
    """Whether a later look may come out better: something that is expected is not there yet, or not right yet.

    What nobody asked for does not go away by waiting (design, rule 15).
    """
    kinds = {finding.kind for finding in verified.findings if not finding.warning}
    return not kinds.isdisjoint(("missing_change", "wrong_value", "check_failed"))


def keys_wanted(
    contract: Contract,
    inputs: Mapping[str, object],
    lets: Mapping[str, Found | Unanswered],
    keys: Mapping[str, tuple[str, ...]] | None = None,
) -> dict[str, tuple[Key, ...]]:
    """The keys of the rows that expectations and allowances name, by table; they are to be pinned in big pictures.

    `keys` gives the key columns of tables, where the contract's watches do not. What is named by other columns, or by
    a row that is not known yet, is left out.
    """
    known = {name: watched.key for name, watched in (contract.watched or {}).items() if watched.key}
    columns = {**known, **(keys or {})}
    found: dict[str, dict[Key, None]] = {}
    for table, key in _named_keys(contract.spelled(columns), Scope(inputs, lets), columns):
        found.setdefault(table, {})[key] = None
    return {table: tuple(named) for table, named in found.items()}


@dataclass(frozen=True, slots=True)
class _Judged:
    """An alternative and its findings."""

    branch: Branch
    findings: tuple[Finding, ...]

    @property
    def wrong(self) -> int:
        """How many findings prove that it does not hold."""
        return sum(1 for finding in self.findings if finding.kind != "check_error" and not finding.warning)

    @property
    def in_doubt(self) -> bool:
        """Whether something of it could not be checked."""
        return any(finding.kind == "check_error" and not finding.warning for finding in self.findings)

    def chosen(self, note: str = "", more: tuple[Finding, ...] = ()) -> Verified:
        """The verification with this alternative."""
        return Verified((*more, *self.findings), self.branch.name, note)


def _judge(branch: Branch, tables: Mapping[str, Table], evidence: Evidence, report: Reporter) -> tuple[Finding, ...]:
    checks = evidence.checks.get(branch.name, ()) if branch.name is not None else ()
    return (*judge_branch(branch, tables, evidence, report), *checks)


def _applying(branches: Sequence[Branch], evidence: Evidence, report: Reporter) -> tuple[list[Branch], list[Finding]]:
    """The alternatives that may apply: those that their `when` chooses, else those without one."""
    answers = {branch.name: _answer(branch, evidence) for branch in branches}
    doubtful = [
        report.cannot_tell(f"any_of.{name}.when", f"whether it applies could not be told: {answer.why}")
        for name, answer in answers.items()
        if isinstance(answer, Unanswered)
    ]
    chosen = [branch for branch in branches if answers[branch.name] is True]
    perhaps = [branch for branch in branches if isinstance(answers[branch.name], Unanswered)]
    rest = [branch for branch in branches if answers[branch.name] is None]
    applying = [*chosen, *perhaps] if chosen else [*perhaps, *rest]
    if not applying:
        doubtful.append(report.cannot_tell("any_of", "no alternative applies: every `when` said no before the run"))
    return applying, doubtful


def _answer(branch: Branch, evidence: Evidence) -> bool | Unanswered | None:
    """What the alternative's `when` said; None where it has none."""
    if not branch.conditional or branch.name is None:
        return None
    return evidence.whens.get(branch.name, Unanswered("it was not asked"))


def _choose(judged: Sequence[_Judged], report: Reporter, *, is_sure: bool) -> Verified:
    """The one that holds; where there is not exactly one, the best-fitting, with a word why.

    Where not all could be told of the tables and conditions, that two hold is not proved.
    """
    best = min(judged, key=lambda one: (one.wrong, one.in_doubt, -len(one.branch.expected)))
    holding = [one for one in judged if not one.wrong and not one.in_doubt] or [one for one in judged if not one.wrong]
    if len(judged) == 1 or len(holding) == 1:
        return best.chosen()
    names = " and ".join(str(one.branch.name) for one in holding or judged)
    if not holding:
        return best.chosen(f"none of {names} holds; {best.branch.name} fits best")
    if best.in_doubt or not is_sure:
        return best.chosen(f"which of {names} holds could not be told")
    return best.chosen(f"{names} hold", (report.not_one("any_of", names),))


def _tables(contract: Contract, evidence: Evidence, report: Reporter) -> tuple[dict[str, Table], list[Finding]]:
    """The tables that can be judged, and what cannot be told of tables."""
    tables: dict[str, Table] = {}
    doubts: list[Finding] = []
    for name in _table_names(contract, evidence):
        try:
            table, doubt = _table(contract, evidence, name)
        except Incomparable as error:
            doubts.append(report.cannot_tell(name, str(error)))
        else:
            tables[name] = table
            doubts += [report.cannot_tell(name, doubt)] if doubt else []
    return tables, doubts


def _table_names(contract: Contract, evidence: Evidence) -> list[str]:
    wanted = [expected.table for branch in contract.branches for expected in branch.expected]
    wanted += [allowed.table for branch in contract.branches for allowed in branch.allowed]
    return [*dict.fromkeys([*(contract.watched or {}), *evidence.before, *evidence.after, *wanted])]


def _table(contract: Contract, evidence: Evidence, name: str) -> tuple[Table, str]:
    """A table, and what cannot be told of it. Raises `Incomparable` where nothing can."""
    missing = Unanswered("there is no picture of it; is it watched?")
    before, after = evidence.before.get(name, missing), evidence.after.get(name, missing)
    if not isinstance(after, Picture):
        raise Incomparable(f"it could not be looked at after the run: {after.why}")
    known = before if isinstance(before, Picture) else None
    table = Table(contract.watch(name), known, after, evidence.window)
    if isinstance(before, Unanswered):
        return table, f"what changed in it cannot be told, without a picture from before the run: {before.why}"
    other = set(before.columns) ^ set(after.columns)
    return table, f"its columns changed during the run: {', '.join(sorted(other))}" if other else ""


def _named_keys(contract: Contract, scope: Scope, columns: Mapping[str, tuple[str, ...]]) -> Iterator[tuple[str, Key]]:
    for branch in contract.branches:
        for expected in branch.expected:
            for each in _scopes(expected, scope):
                yield from _named_key(expected.table, expected.key, each, columns)
        for allowed in branch.allowed:
            yield from _named_key(allowed.table, allowed.key or {}, scope, columns)


def _scopes(expected: Expected, scope: Scope) -> Sequence[Scope]:
    try:
        return scope.over(expected.each)
    except Unresolved:
        return ()  # Not known yet, or never: either way there is no key to pin.


def _named_key(
    table: str, key: Mapping[str, Value], scope: Scope, columns: Mapping[str, tuple[str, ...]]
) -> Iterator[tuple[str, Key]]:
    """The row that a key names, if it names it by the table's own key and all of it is known."""
    names = columns.get(table) or tuple(key)
    if not key or set(names) != set(key):
        return
    try:
        values = [scope.resolve(key[name]) for name in names]
    except Unresolved:
        return
    plain = tuple(
        value.value for value in values if isinstance(value, Given) and not isinstance(value.value, list | dict)
    )
    if len(plain) == len(names):
        yield table, plain
