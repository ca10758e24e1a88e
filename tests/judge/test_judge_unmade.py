"""Which answers of a server of MCP say that it did not call the tool."""

from __future__ import annotations

import pytest

from guardrail.judge.unmade import says_unmade

SAID: list[tuple[str, bool]] = [
    ("Unknown tool: refund", True),  # the official Python SDK, FastMCP
    ("Unknown tool: 'refund'", True),
    ("MCP error -32602: Tool refund not found", True),  # the official TypeScript SDK
    ("Tool refund disabled", True),
    ("Tool 'refund' not found", True),  # claude-agent-sdk
    ("MCP error -32602: Input validation error: Invalid arguments for tool refund: [...]", True),
    ("Input validation error: 'amount' is a required property", True),
    ("Error executing tool refund: 2 validation errors for refundArguments\namount\n  Field required", True),
    ("1 validation error for call[refund]\namount\n  Missing required argument", True),
    ("", False),
    ("Unknown tool: wrench", False),  # a shop of tools
    ("Unknown tool: refund was asked for by the bank", False),
    ("Tool wrench not found", False),
    ("Error executing tool refund: the bank said: Input validation error: amount", False),
    ("Error executing tool refund: 1 validation error for Receipt\namount\n  Field required", False),  # of its answer
    ("1 validation error for call[pay]\namount\n  Missing required argument", False),  # of a function that it called
    ("MCP error -32603: Tool refund not found", False),
]


@pytest.mark.parametrize(("text", "unmade"), SAID, ids=[text[:50] for text, _ in SAID])
def test_a_call_that_was_not_made_is_known_by_the_words_of_the_sdks(text: str, unmade: bool) -> None:
    assert says_unmade("refund", text) is unmade


def test_a_tools_name_is_no_pattern() -> None:
    assert says_unmade("a.b", "Unknown tool: a.b")
    assert not says_unmade("a.b", "Unknown tool: axb")
