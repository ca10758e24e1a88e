"""Names and passages that look like secrets."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from guardrail.telemetry.redaction import error_text, hidden_values, is_secret, printable, redact_text

HERE = Path(__file__).parent
NAMES: dict[str, list[str]] = json.loads((HERE / "secret_names.json").read_text(encoding="utf-8"))
TEXTS: list[dict[str, str]] = json.loads((HERE / "secret_texts.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", NAMES["secret"])
def test_a_name_is_secret_by_its_whole_words(name: str) -> None:
    assert is_secret(name)


@pytest.mark.parametrize("name", NAMES["harmless"])
def test_a_name_that_only_contains_such_letters_is_not(name: str) -> None:
    assert not is_secret(name)


def test_a_name_of_any_length_is_judged_by_its_end() -> None:
    assert is_secret("x" * 1_000_000 + "_password")
    assert not is_secret("password_" + "x" * 1_000_000)


@pytest.mark.parametrize("case", TEXTS, ids=lambda case: case["text"][:40])
def test_a_secret_in_a_text_is_masked_and_nothing_else(case: dict[str, str]) -> None:
    assert redact_text(case["text"]) == case["shown"]


@pytest.mark.parametrize("case", TEXTS, ids=lambda case: case["text"][:40])
def test_masking_twice_is_masking_once(case: dict[str, str]) -> None:
    assert redact_text(case["shown"]) == case["shown"]


PIECES = st.sampled_from(
    ["password", "key", "x", "token", "cookie", "=", ": ", ":", "'", '"', "\\", "?", "&", "://", "@", "/", "Bearer ",
     "sk-test-000", "abc", "[redacted]", "{", "}", "[", "<", ">", "</", "\n", " ", ";", ",", "eyJhbGciOi", "."]
)  # fmt: skip


@settings(max_examples=300)
@given(st.lists(PIECES, max_size=12).map("".join))
def test_masking_is_idempotent_whatever_the_text(text: str) -> None:
    once = redact_text(text)
    assert redact_text(once) == once


@settings(max_examples=100)
@given(st.lists(PIECES, max_size=8).map("".join), st.lists(PIECES, max_size=8).map("".join))
def test_a_known_token_is_masked_wherever_it_stands(before: str, after: str) -> None:
    assert "sk-live-111" not in redact_text(f"{before} sk-live-111 {after}")


def test_declared_names_are_masked_in_texts_too() -> None:
    assert redact_text("no customer with ssn=123-45-6789", {"ssn"}) == "no customer with ssn=[redacted]"


def test_hidden_values_are_masked_where_they_turn_up_without_their_name() -> None:
    args = {"ssn": "123-45-6789", "login": {"password": "hunter2"}, "card_digits": [41_111, 1], "city": "Bonn"}
    values = hidden_values(args, {"ssn", "card_digits"})
    assert set(values) == {"123-45-6789", "hunter2", "41111"}
    text = "no match for 123-45-6789 / hunter2 / 41111 in Bonn"
    assert redact_text(text, values=values) == "no match for [redacted] / [redacted] / [redacted] in Bonn"


def test_a_long_text_is_cut_and_the_cut_is_marked() -> None:
    assert redact_text("x" * 10_000_000) == "x" * 4096 + "[truncated: 9995904 more]"
    assert redact_text("x" * 20, longest=10) == "x" * 10 + "[truncated: 10 more]"


def test_a_secret_at_the_cut_leaves_no_piece_behind() -> None:
    for start in range(4060, 4100):
        shown = redact_text("x " * (start // 2) + "Bearer abcdefghijkl")
        assert "abc" not in shown


def test_a_text_that_never_closes_its_quotes_takes_no_long_time() -> None:
    hostile = 'password="' + "\\" * 5000 + "a='" * 3000
    assert "password=" in redact_text(hostile * 100)


def test_an_error_is_told_by_class_and_redacted_message() -> None:
    error = RuntimeError("GET https://api.test/x?key=sk-test-000 failed")
    assert error_text(error) == "RuntimeError: GET https://api.test/x?key=[redacted] failed"
    assert error_text(ValueError()) == "ValueError"
    assert error_text(KeyError("kim"), values=("kim",)) == "KeyError: '[redacted]'"


def test_an_error_that_cannot_be_written_is_told_by_its_class() -> None:
    class Broken(Exception):
        def __str__(self) -> str:
            raise RuntimeError

    assert error_text(Broken()) == "Broken"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("refund 17 für Zoë ✓", "refund 17 für Zoë ✓"),
        ("\x1b[2Jgone\x07", r"\x1b[2Jgone\x07"),
        ("a\nb\tc\r", r"a\nb\tc\r"),
        ("abc\u202edef\u200b", r"abc\u202edef\u200b"),
        ("lone \ud800", r"lone \ud800"),
        ("\x9b31m", r"\x9b31m"),
    ],
)
def test_what_a_terminal_would_act_on_is_made_visible(text: str, shown: str) -> None:
    assert printable(text) == shown


def test_lines_may_stay_lines() -> None:
    assert printable("a\n\tb\x1b\r", lines=True) == "a\n\tb\\x1b\\r"
