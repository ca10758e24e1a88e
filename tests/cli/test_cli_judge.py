"""`guardrail judge`: one result, and labelled ones."""

from __future__ import annotations

import json
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import get_args

import pytest
from inline_snapshot import snapshot

from guardrail.calls import Effect, Outcome, VerdictKind
from guardrail.cli.judge import EffectName
from guardrail.cli.runs import VerdictName
from support.command_line import command
from support.project import Project


def labelled(folder: Path, *results: Mapping[str, object]) -> Path:
    """A file of labelled results."""
    file = folder / "results.jsonl"
    file.write_text("".join(f"{json.dumps(result, ensure_ascii=False)}\n" for result in results), "utf-8")
    return file


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory without a configuration."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


# One result.


def test_a_failure_is_told_with_its_sign_and_what_the_policy_does() -> None:
    ended = command("judge", "--tool", "cancel_order", "--effect", "write", input='{"error": "only an open order"}')
    assert ended.code == 1
    assert ended.shown == snapshot("""\
outcome    error
told by    error_field
message    only an open order
policy     hold, by balanced (enforce)
judged as  a call of cancel_order, write\
""")


def test_a_success_is_allowed() -> None:
    ended = command("judge", "-", "--json", input='{"id": 17}')
    assert ended.code == 0
    assert ended.json == snapshot(
        {
            "tool": None,
            "effect": "unknown",
            "outcome": "ok",
            "sign": "",
            "message": "",
            "listed": False,
            "failed_items": [],
            "action": "allow",
            "policy": "balanced",
            "mode": "enforce",
            "note": "",
        }
    )


@pytest.mark.parametrize(
    ("result", "effect", "outcome", "action"),
    [
        ("null", "read", "empty", "hold"),
        ("[]", "read", "empty", "allow"),
        ("[]", "write", "ok", "allow"),
        ("Error: user not found\n", "read", "empty", "hold"),
        ('\ufeff{"success": false}', "write", "error", "hold"),
        ("[" * 3000, "read", "ok", "allow"),
        ("9" * 5000, "read", "ok", "allow"),
    ],
)
def test_json_and_text_are_judged(folder: Path, result: str, effect: str, outcome: str, action: str) -> None:
    file = folder / "result.txt"
    file.write_text(result, "utf-8")
    told = command("judge", file, "--effect", effect, "--json").json
    assert (told["outcome"], told["action"]) == (outcome, action)


def test_the_tools_declaration_counts(project: Project) -> None:
    project.replace("lookup_order: {effect: read}", "lookup_order: {effect: read, empty: stop}")
    told = command("judge", "--tool", "lookup_order", "--json", input="[]").json
    assert (told["effect"], told["action"], told["policy"]) == ("read", "stop", "balanced")


def test_a_tool_that_returns_text_is_given_text(project: Project) -> None:
    project.replace("lookup_order: {effect: read}", "lookup_order: {effect: read, returns: text}")
    assert command("judge", "--tool", "lookup_order", "--json", input="Error: not found").json["outcome"] == "ok"


def test_what_the_tool_says_cannot_act_on_the_terminal() -> None:
    ended = command("judge", input=json.dumps({"error": "\x1b[2J[red]no[/red]\u202e"}))
    assert "\\x1b[2J[red]no[/red]\\u202e" in ended.out


def test_secrets_in_a_message_are_redacted() -> None:
    ended = command("judge", "--json", input='{"error": "wrong password=hunter2 for bob"}')
    assert "hunter2" not in ended.out


def test_a_tool_of_which_nothing_is_declared_is_told(project: Project) -> None:
    ended = command("judge", "--tool", "lookup_ordr", input="[]")
    assert ended.lines[-1] == "note       no tool lookup_ordr is declared (did you mean `lookup_order`?)"
    assert (
        command("judge", "--tool", "lookup_ordr", "--json", input="[]").json["note"].startswith("no tool lookup_ordr")
    )
    assert command("judge", "--tool", "lookup_order", "--json", input="[]").json["note"] == ""
    assert command("judge", "--json", input="[]").json["note"] == ""


@pytest.mark.parametrize(
    ("result", "noted"), [('{"error": "no', True), ("[1] not", True), ('{"a": 1}', False), ("done", False)]
)
def test_a_result_that_begins_like_json_and_is_none_is_told(result: str, noted: bool) -> None:
    assert ("cut off" in command("judge", "--json", input=result).json["note"]) is noted


@pytest.mark.parametrize("result", ['{"ok": true}', f'{{"long": "{"x" * 5000}"}}'])
def test_a_result_in_the_place_of_a_file_is_told_how_to_be_given(result: str) -> None:
    ended = command("judge", result)
    assert (ended.code, ended.out) == (2, "")
    assert "pipe the result to `guardrail judge -`" in ended.err


@pytest.mark.parametrize("file", ["nowhere.json", "."])
def test_a_file_that_cannot_be_read_is_misuse(file: str) -> None:
    ended = command("judge", file)
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith(f"guardrail: {file}: ")


# Labelled results.

RESULTS = (
    {"tool": "find", "writes": False, "result": '{"id": "1\u2028"}', "label": "ok"},
    {"tool": "find", "writes": False, "result": "null", "label": "empty"},
    {"tool": "pay", "writes": True, "result": '{"error": "card was declined"}', "label": "precondition_failed"},
    {"tool": "pay", "writes": True, "result": '{"status": "no\u2028pe"}', "label": "error"},
    {"tool": "pay", "writes": True, "result": {"id": 2}, "label": "ok"},
)


def test_labelled_results_give_a_table_of_labels_and_outcomes(folder: Path) -> None:
    ended = command("judge", labelled(folder, *RESULTS), "--wrong")
    assert ended.code == 0
    assert ended.shown == snapshot("""\
5 labelled results judged under balanced

label                ok  empty  rejected
────────────────────────────────────────
ok                    2      ·         ·
empty                 ·      1         ·
precondition failed   ·      ·         1
error                 1      ·         ·

not ok: precision 100.0 %, recall 66.7 % (2 found, 1 missed, 0 false alarms)

line  tool  label  judged  told by  message
────────────────────────────────────────────────────────────
4     pay   error  ok               {"status": "no\\u2028pe"}\
""")


def test_labelled_results_as_json(folder: Path) -> None:
    told = command("judge", labelled(folder, *RESULTS), "--wrong", "--json").json
    assert told["not_ok"] == {
        "precision": 1.0,
        "recall": 0.6667,
        "true_positive": 2,
        "false_positive": 0,
        "true_negative": 2,
        "false_negative": 1,
    }
    assert told["by_label"]["ok"] == {"ok": 2}
    assert told["results"] == 5
    assert [wrong["line"] for wrong in told["wrong"]] == [4]


def test_a_rate_of_nothing_is_none(folder: Path) -> None:
    told = command("judge", labelled(folder, RESULTS[0]), "--json").json
    assert (told["not_ok"]["precision"], told["not_ok"]["recall"]) == (None, None)


@pytest.mark.parametrize(
    ("second", "why"),
    [
        ({"tool": "find", "result": "x", "label": "fine"}, "label 'fine' is no outcome"),
        ({"tool": 1, "result": "x", "label": "ok"}, "tool must be a text"),
        ({"tool": "find", "result": "x"}, "tool, result and label"),
    ],
)
def test_a_line_that_is_no_labelled_result_is_named(folder: Path, second: Mapping[str, object], why: str) -> None:
    ended = command("judge", labelled(folder, RESULTS[0], second))
    assert (ended.code, ended.out) == (2, "")
    assert "results.jsonl:2:" in ended.err
    assert why in ended.err


def test_the_recorded_results_are_told_apart_with_nothing_declared(corpus: Path) -> None:
    told = command("judge", corpus / "tool_results.jsonl", "--json").json
    assert told["results"] == 977
    assert told["not_ok"]["precision"] >= 0.98
    assert told["not_ok"]["recall"] >= 0.95


# The words that options take.


@pytest.mark.parametrize(("words", "known"), [(EffectName, Effect), (VerdictName, VerdictKind)])
def test_options_take_the_words_of_the_library(words: type[StrEnum], known: object) -> None:
    assert [word.value for word in words] == list(get_args(known))


def test_every_outcome_has_its_colour() -> None:
    from guardrail.cli.tables import OUTCOMES

    assert set(OUTCOMES) == set(get_args(Outcome))
