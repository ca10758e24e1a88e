"""Tools by name and by glob pattern."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from guardrail.declare.patterns import tool_for, unmatched
from guardrail.declare.policies import Outcomes
from guardrail.declare.tools import CelRequirement, Tool

PAID = CelRequirement(cel="args.paid")
SMALL = CelRequirement(cel="args.amount < 100")


def test_a_tool_that_nothing_speaks_of_is_undeclared() -> None:
    assert tool_for({"a": Tool(effect="read")}, "b") == Tool()


def test_an_exact_entry_is_taken_as_it_is() -> None:
    tool = Tool(effect="write", once_per=("id",), args={"id": 5}, requires=(PAID,))

    assert tool_for({"refund": tool}, "refund") == tool


@pytest.mark.parametrize(
    ("pattern", "name", "speaks"),
    [
        ("get_*", "get_order", True),
        ("get_*", "budget_order", False),
        ("get_?", "get_1", True),
        ("get_[ab]", "get_b", True),
        ("get_[!ab]", "get_b", False),
        ("Get_*", "get_order", False),
        ("*", "anything", True),
        ("a.b*", "axb", False),
    ],
)
def test_a_pattern_is_a_glob_in_which_case_counts(pattern: str, name: str, speaks: bool) -> None:
    assert (tool_for({pattern: Tool(effect="read")}, name).effect == "read") is speaks


def test_the_specific_wins_field_by_field() -> None:
    tools = {
        "refund_order": Tool(effect="write", retries=1),
        "*": Tool(effect="read", returns="json", retries=5),
        "refund_*": Tool(retries=3, root="/result"),
    }

    found = tool_for(tools, "refund_order")

    assert (found.effect, found.retries, found.root, found.returns) == ("write", 1, "/result", "json")


def test_the_later_pattern_wins_over_the_earlier() -> None:
    tools = {"*": Tool(effect="write"), "get_*": Tool(effect="read")}

    assert tool_for(tools, "get_order").effect == "read"
    assert tool_for(dict(reversed(tools.items())), "get_order").effect == "write"


def test_demands_accumulate() -> None:
    tools = {
        "*": Tool(requires=(PAID,), args={"id": 1, "amount": 5}, redact=("card",), raises={"KeyError": "empty"}),
        "refund": Tool(requires=(SMALL,), args={"amount": 7}, redact=("pin", "card"), raises={"OSError": "error"}),
    }

    found = tool_for(tools, "refund")

    assert found.requires == (PAID, SMALL)
    assert found.args == {"id": 1, "amount": 7}
    assert found.redact == ("card", "pin")
    assert found.raises == {"KeyError": "empty", "OSError": "error"}


def test_outcomes_accumulate_and_the_specific_word_on_emptiness_stands() -> None:
    tools = {
        "*": Tool(outcomes=Outcomes(empty="stop", empty_list="stop", error="stop")),
        "list_*": Tool(empty="allow", outcomes=Outcomes(rejected="stop")),
    }

    found = tool_for(tools, "list_orders")

    assert found.empty == "allow"
    assert found.outcomes == Outcomes(error="stop", rejected="stop")


def test_entries_that_no_tool_answers_to_are_named_with_a_suggestion() -> None:
    tools = {"refnd": Tool(), "get_*": Tool(), "refund": Tool(), "put_*": Tool()}

    assert unmatched(tools, ["refund", "get_order"]) == {
        "refnd": "did you mean `refund`?",
        "put_*": "the tools are get_order, refund",
    }


@given(st.lists(st.sampled_from(["*", "a*", "*b", "ab", "?b"]), unique=True))
def test_no_requirement_is_ever_lost(entries: list[str]) -> None:
    tools = {entry: Tool(requires=(CelRequirement(cel=f"args.a == '{entry}'"),)) for entry in entries}

    kept = tool_for(tools, "ab").requires
    assert sorted(map(str, kept)) == sorted(str(tool.requires[0]) for tool in tools.values())
