"""`guardrail check`: every mistake of a configuration, or what it declares."""

from __future__ import annotations

from pathlib import Path

from inline_snapshot import snapshot

from support.command_line import command
from support.project import Project


def test_a_right_configuration_is_summed_up(project: Project) -> None:
    ended = command("check")
    assert ended.code == 0
    assert ended.shown == snapshot("""\
what    name          declared as
───────────────────────────────────────────────────────────────────
policy  balanced      enforce
store   shop          sqlite
tool    lookup_order  read
tool    refund_order  write
tool    cancel_order  write
tool    note_order    write
task    refund_order  2 inputs; watches 2 tables; expects 2 changes
task    is_paid       1 input; 1 check

guardrail.yaml is right\
""")


def test_what_is_declared_is_given_as_json(project: Project) -> None:
    assert command("check", "--json").json == snapshot(
        {
            "file": "guardrail.yaml",
            "ok": True,
            "mistakes": [],
            "policy": {"name": "balanced", "mode": "enforce"},
            "stores": {"shop": "sqlite"},
            "tools": {"lookup_order": "read", "refund_order": "write", "cancel_order": "write", "note_order": "write"},
            "tasks": {
                "refund_order": {
                    "inputs": ["order_id", "amount"],
                    "watch": ["shop.orders", "shop.refunds"],
                    "expect": 2,
                    "any_of": [],
                    "checks": 0,
                },
                "is_paid": {"inputs": ["order_id"], "watch": None, "expect": None, "any_of": [], "checks": 1},
            },
        }
    )


def test_every_mistake_is_told_with_its_file_line_and_field(project: Project) -> None:
    project.replace("effect: read", "efect: read")
    project.replace("shop.refunds: {key: id}", "shop.refunds: {key: id, where: 'delete from refunds'}")
    ended = command("check")
    assert ended.code == 1
    assert [line.partition(" ")[0] for line in ended.lines[:2]] == ["guardrail.yaml:6:", "guardrail.yaml:15:"]
    assert "did you mean `effect`?" in ended.lines[0]
    assert ended.lines[-1] == "guardrail.yaml has 2 mistakes"


def test_mistakes_are_given_as_json_and_nothing_else(project: Project) -> None:
    project.replace("effect: read", "efect: read")
    ended = command("check", "--json")
    assert ended.code == 1
    assert (ended.json["ok"], len(ended.json["mistakes"])) == (False, 1)
    mistake = ended.json["mistakes"][0]
    assert (mistake["file"], mistake["line"]) == ("guardrail.yaml", 6)
    assert mistake["field"].startswith("tools.lookup_order")
    assert mistake["advice"]


def test_a_file_that_is_not_there_is_misuse_and_says_what_to_do(project: Project) -> None:
    ended = command("check", "nowhere.yaml")
    assert (ended.code, ended.out) == (2, "")
    assert "there is no configuration nowhere.yaml" in ended.err
    assert "Traceback" not in ended.err


def test_the_file_can_be_named_as_everywhere(project: Project) -> None:
    assert command("check", "--config", "guardrail.yaml", "--json").json["ok"] is True
    ended = command("check", "nowhere.yaml")
    assert "name it with `guardrail check FILE`" in ended.err
    both = command("check", "guardrail.yaml", "--config", "guardrail.yaml")
    assert (both.code, both.out) == (2, "")
    assert "one of them" in both.err


def test_a_store_that_cannot_be_opened_is_a_mistake(project: Project) -> None:
    project.replace("sqlite:///shop.db", "sqlite:///:memory:")
    ended = command("check")
    assert ended.code == 1
    assert "in memory" in ended.out


def test_passwords_of_stores_are_not_shown(project: Project) -> None:
    project.replace("sqlite:///shop.db", "postgres://me:hunter2@host/db")
    for arguments in (["check"], ["check", "--json"], ["doctor"], ["doctor", "--json"]):
        assert "hunter2" not in command(*arguments).out


def test_what_a_file_says_cannot_act_on_the_terminal(project: Project) -> None:
    project.write('version: 1\n"[bold]\\e[31mtools\\u202e": 1\n')
    ended = command("check")
    assert ended.code == 1
    assert "[bold]\\x1b[31mtools\\u202e" in ended.out


def test_another_folders_file_can_be_checked(project: Project, tmp_path: Path) -> None:
    other = tmp_path / "other.yaml"
    other.write_text("version: 1\n", "utf-8")
    ended = command("check", other, "--json")
    assert (ended.code, ended.json["tools"]) == (0, {})
