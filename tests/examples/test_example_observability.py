"""The example `examples/observability`: what it plays arrives, and its dashboard and rules ask for what is emitted."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from backends import Seen, differences, main
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor
from play import PROJECT, Played, Target, play
from ruamel.yaml import YAML

from guardrail import RunStopped, attributes
from guardrail.telemetry.evaluations import Evaluation, Evaluations, Post
from support.receiver import Received, Receiver, Sender, plain
from support.shop import Guards, Shop

EXAMPLE = Path(__file__).parents[2] / "examples" / "observability"
DASHBOARD: dict[str, Any] = json.loads((EXAMPLE / "grafana-dashboard.json").read_text("utf-8"))
SAFE: Any = YAML(typ="safe")
RULES: dict[str, Any] = SAFE.load(EXAMPLE / "prometheus-rules.yaml")
STORIES: dict[str, Any] = json.loads((EXAMPLE.parent / "refunds" / "stories.json").read_text("utf-8"))


# What is played


class Kept(Evaluations):
    """Evaluations that go to nobody."""

    def __init__(self) -> None:
        super().__init__("")
        self.got: list[Evaluation] = []

    def _posts(self, evaluations: Any) -> list[Post]:
        self.got += evaluations
        return []


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[Played], Receiver, Kept]:
    """All stories, the spans that an OTLP endpoint got of them, and their evaluations."""
    with closing(Receiver()) as receiver:
        kept = Kept()
        target = Target(f"{receiver.url}/v1/traces", {}, kept)
        return play(tmp_path_factory.mktemp("played"), [target]), receiver, kept


def seen(one: Played, receiver: Receiver, kept: Kept) -> Seen:
    """What an endpoint that shows what it gets would show of a run."""
    spans = [span for span in receiver.spans if span.item.trace_id.hex() == one.trace]
    [run] = [span for span in spans if span.attributes.get("gen_ai.operation.name") == "invoke_agent"]
    told = [evaluation for evaluation in kept.got if evaluation.trace_id == one.trace]
    [verdict] = [evaluation.label for evaluation in told if evaluation.name == "guardrail.run"]
    return Seen(
        run.attributes["guardrail.verdict"],
        run.item.status.code == 2,
        tuple(span.attributes["gen_ai.tool.name"] for span in spans if "gen_ai.tool.name" in span.attributes),
        verdict,
        sum(evaluation.name == "guardrail.state" for evaluation in told),
    )


@pytest.mark.parametrize("story", STORIES)
def test_a_story_arrives_as_it_was_played(played: tuple[list[Played], Receiver, Kept], story: str) -> None:
    runs, receiver, kept = played
    [one] = [one for one in runs if one.story == story]
    assert differences(one, seen(one, receiver, kept)) == []


def test_the_stories_go_to_the_project_and_have_content(played: tuple[list[Played], Receiver, Kept]) -> None:
    _, receiver, _ = played
    assert {span.resource["openinference.project.name"] for span in receiver.spans} == {PROJECT}
    told = [span.attributes["gen_ai.tool.call.arguments"] for span in receiver.spans if "tool" in span.item.name]
    assert '{"order_id": 17}' in told


def test_the_verdicts_are_those_of_the_stories(played: tuple[list[Played], Receiver, Kept]) -> None:
    assert {one.story: one.verdict for one in played[0]} == {
        "right": "verified",
        "said-no": "stopped",
        "wrong-amount": "silent_failure",
        "other-row": "silent_failure",
        "timeout": "verified",
    }


RUN = Played("right", "run", "trace", ("lookup_order", "refund_order"), "stopped", 1)
SHOWN = Seen("stopped", True, ("lookup_order", "refund_order"), "stopped", 1)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"span": "verified"}, "run: 'verified' instead of 'stopped'"),
        ({"failed": False}, "mark: False instead of True"),
        ({"tools": ("refund_order", "lookup_order")}, "tools: ('refund_order', 'lookup_order') instead of"),
        ({"verdict": "fail"}, "verdict: 'fail' instead of 'stopped'"),
        ({"findings": 0}, "findings: 0 instead of 1"),
    ],
)
def test_what_a_backend_shows_otherwise_is_said(change: dict[str, Any], said: str) -> None:
    assert differences(RUN, SHOWN) == []
    [difference] = differences(RUN, replace(SHOWN, **change))
    assert difference.startswith(said)


def test_without_a_backend_nothing_is_shown_to_be_right(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 1
    assert "5 runs, 0 not shown as they were" in capsys.readouterr().out


# The dashboard and the rules


@pytest.fixture(scope="module")
def emitted(tmp_path_factory: pytest.TempPathFactory) -> dict[str, set[str]]:
    """The series that Prometheus gets of runs of every kind: their names and labels."""

    class Raising(SpanProcessor):
        def on_end(self, span: ReadableSpan) -> None:
            raise RuntimeError(span.name)

    folder = tmp_path_factory.mktemp("emitted")
    with closing(Receiver()) as receiver, closing(Sender(receiver.url, around=lambda _: Raising())) as sender:
        guards = Guards(Shop(folder / "shop.db"), folder)
        guard = guards(**sender.providers)
        with pytest.raises(RunStopped), guard.run("look_only") as run:
            run.wrap(guards.shop.cancel_order)(17)
            run.wrap(guards.shop.refund_order)(17, "1")
        guards.close()
        sender.flush()
    return {name: labels for metric in receiver.metrics.values() for name, labels in series(metric)}


def series(metric: Received) -> Iterator[tuple[str, set[str]]]:
    """How the specification says that a metric of OTLP is named in Prometheus, with its labels."""
    item = metric.item
    unit = {"s": "_seconds"}.get(item.unit, "" if item.unit.startswith("{") else f"_{item.unit}")
    kind = item.WhichOneof("data")
    labels = {label for point in getattr(item, kind).data_points for label in map(_label, plain(point.attributes))}
    name = _label(item.name) + unit
    if kind == "histogram":
        yield from ((f"{name}_count", labels), (f"{name}_sum", labels), (f"{name}_bucket", labels | {"le"}))
    else:
        yield f"{name}_total", labels


def _label(name: str) -> str:
    return re.sub(r"\W", "_", name)


def queries() -> Iterator[tuple[str, str]]:
    """The queries of the dashboard and the rules, each with what it is for."""
    for panel in DASHBOARD["panels"]:
        yield from ((panel["title"], target["expr"]) for target in panel["targets"])
    for rule in RULES["groups"][0]["rules"]:
        yield rule["alert"], rule["expr"]


on_each_query = pytest.mark.parametrize(
    "query", [pytest.param(query, id=f"{number} {title}") for number, (title, query) in enumerate(queries())]
)


@on_each_query
def test_a_query_asks_for_metrics_and_labels_that_are_emitted(emitted: dict[str, set[str]], query: str) -> None:
    bare = re.sub(r'"[^"]*"', '""', query)
    words = set(re.findall(r"[a-z_]+", bare))
    asked = {word for word in words if word.startswith(("guardrail_", "gen_ai_"))} - LABELS
    assert asked
    assert asked <= emitted.keys()
    known = {label for name in asked for label in emitted[name]}
    matched = set(re.findall(r"([a-z_]+)\s*(?:=~|!=|!~|=)", bare))
    grouped = {word for group in re.findall(r"\bby \(([^)]*)\)", bare) for word in re.findall(r"[a-z_]+", group)}
    assert matched | grouped <= known


LABELS = {_label(value) for name, value in vars(attributes).items() if name.isupper() and isinstance(value, str)}


@on_each_query
def test_a_query_asks_for_values_that_are_told(query: str) -> None:
    told = {"silent_failure", "stopped", "unverified", "verified", "agent_error", "", "$task"}
    values = {value for text in re.findall(r'=~?"([^"]*)"', query) for value in text.split("|")}
    assert values <= told


def test_every_metric_is_on_the_dashboard(emitted: dict[str, set[str]]) -> None:
    asked = " ".join(query for _, query in queries())
    families = {re.sub("_(count|sum|bucket)$", "", name) for name in emitted}
    assert {family for family in families if family not in asked} == set()


def test_a_legend_shows_what_its_query_groups_by() -> None:
    for panel in DASHBOARD["panels"]:
        for target in panel["targets"]:
            named = set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"]))
            assert all(name in target["expr"] for name in named), panel["title"]


def test_an_alert_tells_what_it_groups_by() -> None:
    for rule in RULES["groups"][0]["rules"]:
        named = set(re.findall(r"\$labels\.(\w+)", rule["annotations"]["summary"]))
        assert named
        assert all(name in rule["expr"] for name in named), rule["alert"]
        assert rule["labels"]["severity"] in ("page", "ticket")


def test_the_panels_do_not_lie_on_each_other() -> None:
    cells: list[tuple[int, int]] = []
    for place in (panel["gridPos"] for panel in DASHBOARD["panels"]):
        rows, columns = (range(place[at], place[at] + place[size]) for at, size in (("y", "h"), ("x", "w")))
        cells += [(row, column) for row in rows for column in columns]
    assert len(cells) == len(set(cells))
    assert max(column for _, column in cells) == 23
    assert len({panel["id"] for panel in DASHBOARD["panels"]}) == len(DASHBOARD["panels"])


# The other files


def test_the_collector_samples_by_what_is_told() -> None:
    text = (EXAMPLE / "collector.yaml").read_text("utf-8")
    policies = SAFE.load(text)["processors"]["tail_sampling"]["policies"]
    assert [policy["boolean_attribute"]["key"] for policy in policies if policy["type"] == "boolean_attribute"] == [
        attributes.FLAGGED
    ]


@pytest.mark.parametrize("name", ["phoenix", "mlflow"])
def test_the_versions_of_a_backend_are_exact(name: str) -> None:
    lines = (EXAMPLE / f"constraints-{name}.txt").read_text("utf-8").splitlines()
    pinned = re.compile(r"[a-z0-9.-]+==[\w.]+( ; .*)?")
    assert [line for line in lines if not line.startswith("#") and not pinned.fullmatch(line)] == []
    assert any(line.startswith(("arize-phoenix==", "mlflow==")) for line in lines)


def test_every_file_is_explained() -> None:
    text = (EXAMPLE / "README.md").read_text("utf-8")
    files = {path.name for path in EXAMPLE.iterdir() if path.is_file()} - {"README.md"}
    assert {name for name in files if f"`{name}`" not in text} == set()
