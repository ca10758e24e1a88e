"""Whether a contract fits the store: its tables are there, and have the columns that it names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from guardrail.calls import Finding
from guardrail.declare.faults import suggestion
from guardrail.pictures import Picture, Unanswered, as_spelled
from guardrail.state.contract import Branch, Contract


def misfits(contract: Contract, pictures: Mapping[str, Picture | Unanswered]) -> tuple[Finding, ...]:
    """A `check_error` for each column that the contract names and a table does not have.

    A slip of the contract is no fault of the run: what depends on it can be judged neither right nor wrong.
    """
    return tuple(
        Finding(
            "check_error",
            f"contract of {contract.task}",
            f"the contract does not fit: {table} has no column {column}{advice}",
        )
        for table, column, advice in dict.fromkeys(_unknown(contract, pictures))
    )


def _unknown(contract: Contract, pictures: Mapping[str, Picture | Unanswered]) -> Iterator[tuple[str, str, str]]:
    for branch in contract.branches:
        for table, column in named_columns(branch):
            picture = pictures.get(table)
            ignored = contract.watch(table).ignore
            if not isinstance(picture, Picture) or column in ignored:
                continue
            if as_spelled(column, picture.columns) not in picture.columns:
                near = suggestion(column, picture.columns)
                yield table, column, f" ({near})" if near else ""


def named_columns(branch: Branch) -> Iterator[tuple[str, str]]:
    """The columns that its expectations and allowances name, each with its table."""
    for expected in branch.expected:
        yield from ((expected.table, column) for column in (*expected.key, *expected.values))
    for allowed in branch.allowed:
        yield from (
            (allowed.table, column) for column in (*(allowed.key or ()), *(allowed.columns or ()), *allowed.values)
        )
