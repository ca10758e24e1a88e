"""`guardrail doctor`: will a guard work here?"""

from __future__ import annotations

import os
import stat

import pytest
from inline_snapshot import snapshot

from guardrail.ledger.ledger import Ledger
from guardrail.ledger.processes import this_host
from guardrail.ledger.records import RunRecord
from support.command_line import command
from support.project import Project


def places(project: Project, level: str) -> list[str]:
    """Where there are remarks of this level."""
    told = command("doctor", "--json").json
    return [remark["place"] for remark in told["remarks"] if remark["level"] == level]


def test_what_works_has_no_errors(project: Project) -> None:
    project.shop.path.chmod(stat.S_IRUSR)
    ended = command("doctor", "--json")
    assert (ended.code, ended.json["errors"]) == (0, 0)


def test_remarks_are_shown_in_a_table(project: Project) -> None:
    project.replace("lookup_order: {effect: read}", "lookup_order: {}")
    project.replace("shop.refunds: {key: id}", "shop.refund: {key: id}")
    ended = command("doctor")
    assert ended.code == 1
    rows = [line for line in ended.lines if "shop.db may be written" not in line]
    assert rows[0].split() == ["where", "what"]
    assert ended.lines[-1] == "guardrail.yaml: 1 error, 2 warnings"
    assert max(map(len, ended.lines)) <= 80


def test_a_watched_table_that_is_not_there_is_an_error(project: Project) -> None:
    project.replace("shop.refunds: {key: id}", "shop.refund: {key: id}")
    ended = command("doctor", "--json")
    assert ended.code == 1
    assert [r for r in ended.json["remarks"] if r["level"] == "error"] == snapshot(
        [
            {
                "level": "error",
                "place": "tasks.refund_order.watch.shop.refund",
                "text": "there is no table refund in shop",
            }
        ]
    )


def test_a_column_that_is_not_there_is_an_error(project: Project) -> None:
    project.replace("ignore: [updated_at]", "ignore: [updatedat]")
    assert places(project, "error") == ["tasks.refund_order.watch.shop.orders"]


def test_a_database_that_is_away_is_an_error_told_once(project: Project) -> None:
    project.shop.path.unlink()
    assert places(project, "error") == ["shop"]


def test_a_table_that_is_too_large_to_watch_without_being_named_is_an_error(project: Project) -> None:
    project.write(
        """\
version: 1
stores: {shop: {url: "sqlite:///shop.db"}}
tasks: {look: {most_rows: 1, expect: nothing}}
"""
    )
    assert places(project, "error") == ["configuration"]
    project.replace("expect: nothing", "any_of: {here: {expect: nothing}, there: {expect: nothing}}")
    assert places(project, "error") == ["configuration"]
    project.replace("most_rows: 1", "most_rows: 2")
    assert places(project, "error") == []


def test_a_check_whose_module_cannot_be_imported_is_an_error(project: Project) -> None:
    project.replace("{name: paid, store: shop,", "{name: other, python: no_such_module:check}\n      - {store: shop,")
    ended = command("doctor", "--json")
    assert ended.code == 1
    assert "no_such_module" in ended.json["remarks"][-1]["text"]


def test_a_policy_that_only_observes_is_a_warning(project: Project) -> None:
    project.replace("version: 1\n", "version: 1\npolicy: observe\n")
    assert "policy" in places(project, "warning")


def test_mistakes_of_the_configuration_are_errors(project: Project) -> None:
    project.replace("effect: read", "efect: read")
    ended = command("doctor", "--json")
    assert ended.code == 1
    assert ended.json["remarks"][0]["text"].startswith("guardrail.yaml:6:")


def test_a_ledger_that_cannot_be_made_is_an_error(project: Project) -> None:
    (project.folder / "runs").write_text("a file, no folder", "utf-8")
    assert places(project, "error") == ["ledger"]


def test_a_ledger_that_is_none_is_an_error(project: Project) -> None:
    project.replace("ledger: runs/ledger.db", "ledger: shop.db")
    assert places(project, "error") == ["ledger"]


def test_a_ledger_in_memory_is_a_warning(project: Project) -> None:
    project.replace("ledger: runs/ledger.db", "ledger: memory")
    assert "ledger" in places(project, "warning")


def test_runs_that_were_cut_off_and_a_ledger_for_all_to_read_are_warnings(project: Project) -> None:
    ledger = Ledger(project.ledger)
    ledger.open_run(RunRecord("refund-17", None, "{}", "balanced", "enforce", 0.0, os.getpid(), this_host()))
    ledger.close()
    project.ledger.chmod(0o644)
    assert places(project, "warning").count("ledger") == 2


@pytest.mark.parametrize("options", [[], ["--json"]])
def test_without_a_configuration_there_is_nothing_to_examine(project: Project, options: list[str]) -> None:
    project.file.unlink()
    ended = command("doctor", *options)
    assert (ended.code, ended.out) == (2, "")
    assert "--config" in ended.err
