"""How a state differs from one alternative of a contract."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice, permutations, product

from guardrail.calls import Finding
from guardrail.declare.values import Anything, Reference, Value, mentioned
from guardrail.pictures import Key
from guardrail.state.allowances import Allowance, not_allowed
from guardrail.state.claims import Claims, Rest
from guardrail.state.comparison import Comparison, Incomparable, is_sealed
from guardrail.state.contract import Allowed, Branch, Expected
from guardrail.state.documents import Difference, document_differences
from guardrail.state.evidence import Evidence
from guardrail.state.findings import Reporter
from guardrail.state.inserts import Inserts
from guardrail.state.scope import Scope, Unresolved
from guardrail.state.tables import Table
from guardrail.state.wanted import Wanted, in_column, is_shared, shortcomings
from guardrail.state.wording import describe

MOST_ORDERS = 24
"""In how many orders new rows are tried, where it matters for others which of them a name stands for."""


def judge_branch(
    branch: Branch, tables: Mapping[str, Table], evidence: Evidence, report: Reporter
) -> tuple[Finding, ...]:
    """How the state differs from an alternative; empty where it does not.

    `tables` holds the watched tables that could be looked at, by name. Where an `as` name may stand for one of several
    rows, the choice with the fewest findings counts.
    """
    best: tuple[Finding, ...] | None = None
    for orders in _orders(branch, tables):
        judging = _Judging(branch, tables, evidence, report, orders)
        findings = judging.findings()
        best = findings if best is None or len(findings) < len(best) else best
        if not best or not judging.inserts.had_a_choice:
            break
    return best or ()


def names_in(expected: Expected) -> set[str]:
    """The names that an expectation uses."""
    values = [*expected.key.values(), *expected.values.values(), *([expected.each] if expected.each else [])]
    return {reference.name for value in values for reference in mentioned(value)}


def once(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """The findings, with what cannot be checked said once however many expectations it touches."""
    said: set[str] = set()
    kept: list[Finding] = []
    for finding in findings:
        if finding.kind != "check_error" or finding.text not in said:
            kept.append(finding)
        said.add(finding.text)
    return tuple(kept)


def _orders(branch: Branch, tables: Mapping[str, Table]) -> Iterator[dict[str, Sequence[Key]]]:
    """The orders in which the new rows of tables with named rows are tried: at first that of the picture."""
    yield {}
    named = {each.table for each in branch.expected if each.deed == "insert" and each.name and each.table in tables}
    names = sorted(named)
    every = product(*(islice(permutations(tables[name].new_rows), MOST_ORDERS) for name in names))
    for orders in islice(every, 1, MOST_ORDERS):
        yield dict(zip(names, orders, strict=True))


def _differences(old: object, new: object, how: Comparison) -> list[Difference]:
    """Where the values of a column that changed differ: pointers of documents, or the column as a whole."""
    if how.kind != "json" or is_sealed(old) or is_sealed(new):
        return [("", old, new)]
    return [*document_differences(how.document(old), how.document(new), how.precisely.element.same)] or [("", old, new)]


class _Judging:
    """One look at an alternative: what is found for each expectation, and what is left over."""

    def __init__(
        self,
        branch: Branch,
        tables: Mapping[str, Table],
        evidence: Evidence,
        report: Reporter,
        orders: Mapping[str, Sequence[Key]],
    ) -> None:
        self.branch = branch
        self.tables = tables
        self.report = report
        self.scope = Scope(evidence.inputs, evidence.lets)
        self.claims = Claims()
        self.inserts = Inserts(self.claims, orders)
        self._found: list[Finding] = []

    def findings(self) -> tuple[Finding, ...]:
        """Everything that differs, each once."""
        self._look_for_all()
        for wanted, key in self.inserts.settle():
            self._found += shortcomings(wanted, key, self.report)
        rests = self._without_near_misses(not_allowed(self.claims.left(self.tables.values()), self._allowances()))
        self._found += self._missing()
        for rest in rests:
            self._found += self._unrequested(rest)
        return once(self._found)

    def _look_for_all(self) -> None:
        """Look for every expected change; one that uses a row that another finds comes after it."""
        waiting = list(self.branch.expected)
        while waiting:
            unknown = {expected.name for expected in waiting if expected.name}
            ready = [expected for expected in waiting if unknown.isdisjoint(names_in(expected))]
            if not ready:
                self._found += [self._endless(expected) for expected in waiting]
                return
            self._look_for(ready)
            waiting = [expected for expected in waiting if not unknown.isdisjoint(names_in(expected))]

    def _look_for(self, ready: Sequence[Expected]) -> None:
        rows: dict[str, list[Mapping[str, object]]] = {expected.name: [] for expected in ready if expected.name}
        for wanted in [one for expected in ready for one in self._expand(expected)]:
            if wanted.expected.deed == "insert":
                self.inserts.want(wanted)
            elif (found := self._judge_row(wanted)) is not None and wanted.expected.name:
                rows[wanted.expected.name].append(found)
        for name, row in self.inserts.named():
            rows[name].append(row)
        for name, named in rows.items():
            self.scope = self.scope.naming(name, named)

    def _expand(self, expected: Expected) -> Iterator[Wanted]:
        """The changes that an expectation stands for: one, or one for each item of its list."""
        table = self.tables.get(expected.table)
        if table is None:
            return  # That the table cannot be looked at has been said once, for all that is expected of it.
        for scope in self._scopes(expected):
            try:
                key = {column: scope.resolve(value) for column, value in expected.key.items()}
            except Unresolved as error:
                self._found.append(self.report.cannot_tell(table.name, f"a row cannot be told: {error}"))
            else:
                yield Wanted.of(expected, table, key, self._resolved(table.name, expected.values, scope))

    def _scopes(self, expected: Expected) -> Iterable[Scope]:
        try:
            scopes = self.scope.over(expected.each)
        except Unresolved as error:
            self._found.append(self.report.cannot_tell(expected.table, f"rows cannot be told: {error}"))
            return ()
        if not scopes:
            self._found.append(self.report.nothing_expected(expected.table, self._empty(expected.each)))
        return scopes

    def _empty(self, each: Reference | None) -> str:
        is_let = each is not None and each.column is None and each.name in self.scope.lets
        return f"{each} had no rows before the run" if is_let else f"{each} is empty"

    def _resolved(self, table: str, values: Mapping[str, Value], scope: Scope) -> dict[str, Value]:
        """The values with their names resolved; one that cannot be is left open."""
        return {column: self._resolve(table, column, value, scope) for column, value in values.items()}

    def _resolve(self, table: str, column: str, value: Value, scope: Scope) -> Value:
        try:
            return scope.resolve(value)
        except Unresolved as error:
            self._found.append(self.report.cannot_tell(table, str(error), column=column))
            return Anything()

    def _allowances(self) -> list[Allowance]:
        return [self._allowance(allowed) for allowed in self.branch.allowed if allowed.table in self.tables]

    def _allowance(self, allowed: Allowed) -> Allowance:
        key = self._resolved(allowed.table, allowed.key or {}, self.scope)
        values = self._resolved(allowed.table, allowed.values, self.scope)
        return Allowance(allowed.deed, allowed.table, key, allowed.columns, values, allowed.most)

    def _judge_row(self, wanted: Wanted) -> Mapping[str, object] | None:
        """Judge an update or a delete; gives the updated row."""
        table = wanted.table
        shown = {c: describe(value, self.report.secret) for c, value in wanted.key.items()}
        try:
            found = table.find(wanted.key)
        except Incomparable as error:
            self._found.append(self.report.cannot_tell(table.name, f"the row cannot be told: {error}", shown))
            return None
        if len(found) > 1:
            why = f"{len(found)} rows have this key; name one of them, or use `each`"
            self._found.append(self.report.cannot_tell(table.name, why, shown))
            return None
        there = [key for key in found if table.exists(key)]
        if wanted.expected.deed == "delete":
            self._judge_delete(table, found)
            return None
        if not there:
            self._found.append(self.report.no_row(table.name, shown, was_deleted=bool(found)))
            return None
        self.claims.columns(table, there[0], wanted.values)
        self._found += shortcomings(wanted, there[0], self.report)
        return table.row(there[0])

    def _judge_delete(self, table: Table, found: Sequence[Key]) -> None:
        for key in found:
            if table.exists(key):
                self._found.append(self.report.not_deleted(table.name, table.named(key)))
            else:
                self.claims.row(table, key)

    def _without_near_misses(self, rests: Sequence[Rest]) -> list[Rest]:
        """What is left when new rows that were probably meant for expected ones are reported as those, gone wrong."""
        pairs = self.inserts.nearest(rests)
        for wanted, rest in pairs:
            self._found += shortcomings(wanted, rest.key, self.report)
        meant = {(rest.table.name, rest.key) for _, rest in pairs}
        return [rest for rest in rests if (rest.table.name, rest.key) not in meant]

    def _missing(self) -> list[Finding]:
        times = Counter(wanted.content for wanted in self.inserts.missing)
        by_content = {wanted.content: wanted for wanted in self.inserts.missing}
        return [
            self.report.not_inserted(wanted.table.name, self._telling(wanted), times[content])
            for content, wanted in by_content.items()
        ]

    def _telling(self, wanted: Wanted) -> dict[str, object]:
        """The values that tell a missing row, as they are shown."""
        return {column: describe(value, self.report.secret) for column, value in wanted.telling.items()}

    def _unrequested(self, rest: Rest) -> Iterator[Finding]:
        change, shared = rest.change, is_shared(rest.table, rest.change)
        if rest.doubt or rest.is_partly_asked:
            why = rest.doubt or "old values are unknown, so whether other columns changed is too"
            yield self.report.cannot_tell(rest.table.name, why, change.key)
        elif change.kind == "update" and rest.columns is not None:
            for column in sorted(rest.columns):
                yield from self._unrequested_column(rest, column)
        else:
            yield self.report.unrequested(change, shared=shared, beyond=rest.beyond)

    def _unrequested_column(self, rest: Rest, column: str) -> Iterator[Finding]:
        """A column that changed; a document pointer by pointer. Not proved where old and new cannot be compared."""
        old, new = ((side or {})[column] for side in (rest.change.before, rest.change.after))
        how = rest.table.how[column].precisely
        try:
            how.same(old, new)
        except Incomparable as error:
            yield self.report.cannot_tell(rest.table.name, str(error), rest.change.key, column)
            return
        for difference in _differences(old, new, how):
            shared = is_shared(rest.table, rest.change)
            yield self.report.unrequested_column(rest.change, in_column(column, difference), shared=shared)

    def _endless(self, expected: Expected) -> Finding:
        why = f"the expected {expected.deed} uses a name that waits for it"
        return self.report.cannot_tell(expected.table, why)
