"""What the documentation says is so: its blocks load and run, its tables are those of the code."""

from __future__ import annotations

import ast
import asyncio
import inspect
import re
import sqlite3
import sys
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any, get_args

import pytest
import structlog
from pydantic import BaseModel

from guardrail import Configuration, Guard, State, attributes
from guardrail.calls import Outcome
from guardrail.declare import bundled, contracts, tools, values
from guardrail.declare.configuration import Content, StoreDeclaration
from guardrail.declare.loading import load
from guardrail.declare.matchers import Conditions
from guardrail.declare.policies import Consequence, Outcomes
from guardrail.declare.resources import Resource
from guardrail.errors import ConfigurationError
from guardrail.run.live import Live
from guardrail.stores.store import MOST_ANSWERED
from support.apis import Crm, Reply
from support.command_line import command
from support.documents import CHECKOUT, DOCS, Block, blocks, prose, quoted, table
from support.recorder import Recorder
from support.shop import Guards, Shop

CONFIGURATION, TELEMETRY, ADOPTING, RECORDED = (
    DOCS / f"{name}.md" for name in ("configuration", "telemetry", "adopting", "recorded-runs")
)
DOCUMENTS = sorted(DOCS.glob("*.md"))


def labelled(language: str) -> list[Any]:
    found = [(path, block) for path in DOCUMENTS for block in blocks(path, language) if block.file is None]
    return [pytest.param(path, block, id=f"{path.name}:{block.line}") for path, block in found]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty working directory, from which modules can be imported."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    monkeypatch.setenv("ARCHIVE_URL", "sqlite:///archive.db")
    monkeypatch.setenv("DESK_TOKEN", "a token")
    monkeypatch.setenv("SHOP_KEY", "a key")
    yield tmp_path
    for name, module in list(sys.modules.items()):
        if str(getattr(module, "__file__", "")).startswith(str(tmp_path)):
            del sys.modules[name]
    structlog.reset_defaults()  # a page shows how to configure it


def write_files(document: Path) -> None:
    """Write the blocks that are files under their names."""
    for block in blocks(document):
        if block.file is not None:
            Path(block.file).write_text(block.text, "utf-8")


# YAML


@pytest.mark.parametrize(("document", "block"), labelled("yaml"))
def test_each_yaml_block_loads(document: Path, block: Block, folder: Path) -> None:
    write_files(document)
    text = block.text if block.mark else f"include: [base.yaml]\n{block.text}"
    Path("guardrail.yaml").write_text(text, "utf-8")
    if block.mark == "wrong":
        with pytest.raises(ConfigurationError):
            load("guardrail.yaml")
        return

    live = Live(load("guardrail.yaml"), {})

    for task in live.configuration.tasks:
        assert live.contract(task) is not None
    live.close()


def test_the_sample_of_mistakes_is_what_check_prints(folder: Path) -> None:
    found = blocks(CONFIGURATION)
    place = next(at for at, block in enumerate(found) if block.mark == "wrong")
    Path("guardrail.yaml").write_text(found[place].text, "utf-8")

    printed = command("check")

    assert printed.code == 1
    assert printed.shown.rstrip() == found[place + 1].text.rstrip()


def test_the_sample_of_recorded_runs_can_be_replayed(folder: Path) -> None:
    write_files(RECORDED)
    replayed = command("backtest", ".", "--jobs", 1, "--json").json
    assert (replayed["runs"], replayed["state"]["true_negative"]) == (1, 1)


# Python


def runnable(document: Path) -> str:
    """A document's Python blocks as one module, each at its own lines, so that an error shows where it stands."""
    lines: list[str] = []
    for block in blocks(document, "python"):
        if block.file is None:
            lines += [""] * (block.line - len(lines)) + block.text.splitlines()
    return "\n".join(lines)


def promised(document: Path) -> list[str]:
    """What the comments behind `print(...)` say that is printed."""
    lines = runnable(document).splitlines()
    return [found[1] for line in lines if (found := re.fullmatch(r"\s*print\(.*\)  # (.*)", line))]


def run_blocks(document: Path, names: dict[str, Any]) -> None:
    """Run a document's Python blocks, which may await at the top."""
    code = compile(runnable(document), str(document), "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    waiting = eval(code, names)
    if inspect.isawaitable(waiting):
        asyncio.run(_awaited(waiting))


async def _awaited(waiting: Any) -> None:
    await waiting


def test_the_file_of_the_configuration_page_is_the_same_in_python(folder: Path) -> None:
    write_files(CONFIGURATION)
    names: dict[str, Any] = {}

    run_blocks(CONFIGURATION, names)

    assert names["configuration"] == load("base.yaml")
    names["guard"].close()


def test_the_python_of_the_telemetry_page_runs(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("guardrail.yaml").write_text("version: 1\n", "utf-8")
    names: dict[str, Any] = {}

    run_blocks(TELEMETRY, names)

    assert capsys.readouterr().out.splitlines() == promised(TELEMETRY)
    names["guard"].close()


def scripted(*turns: Any) -> Any:
    """A model's client that answers one turn after the other, whatever it is asked."""
    answers = iter(turns)

    def create(**_: Any) -> Any:
        return next(answers)

    return create


def chat(*calls: tuple[str, str]) -> Any:
    """A turn of a chat model: tool calls by name and arguments as JSON."""
    wanted = [
        SimpleNamespace(id=f"call_{name}", function=SimpleNamespace(name=name, arguments=arguments))
        for name, arguments in calls
    ]
    message = SimpleNamespace(content=None if calls else "All done!", tool_calls=wanted or None)
    return SimpleNamespace(choices=[SimpleNamespace(message=message)])


def later(create: Any) -> Any:
    """The same client, asynchronous."""

    async def acreate(**asked: Any) -> Any:
        return create(**asked)

    return acreate


def reply(*calls: tuple[str, dict[str, Any]]) -> Any:
    """A turn of a messages model: tool_use blocks by name and input."""
    wanted = [SimpleNamespace(type="tool_use", id=f"toolu_{name}", name=name, input=args) for name, args in calls]
    content = wanted or [SimpleNamespace(type="text", text="All done!")]
    return SimpleNamespace(content=content, stop_reason="tool_use" if calls else "end_turn")


def stubs(shop: Shop) -> dict[str, Any]:
    """What the blocks of the adopting page take for granted: the agent's tools, its model, its own code."""
    openai = scripted(chat(("lookup_order", '{"order_id": 17}')), chat(("refund_order", _REFUND)), chat())
    anthropic = scripted(reply(("cancel_order", {"order_id": 18})), reply(("note_order", _NOTE)), reply())

    def my_agent(*tools: Any) -> str:
        lookup, refund = tools
        refund(order_id=lookup(order_id=18)["id"], amount="5.00")
        return "All done!"

    return {
        "shop": shop,
        "my_agent": my_agent,
        "openai": SimpleNamespace(chat=SimpleNamespace(completions=SimpleNamespace(create=openai))),
        "anthropic": SimpleNamespace(messages=SimpleNamespace(create=later(anthropic))),
        "tools": {tool.__name__: tool for tool in (shop.lookup_order, shop.refund_order, shop.cancel_order)}
        | {"note_order": shop.note_order},
    }


_REFUND = '{"order_id": 17, "amount": "19.90"}'
_NOTE = {"order_id": 18, "note": "cancelled"}


def test_the_first_hour_goes_as_it_is_told(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_files(ADOPTING)
    shop = Shop(folder / "shop.db")
    names = stubs(shop)

    run_blocks(ADOPTING, names)

    assert capsys.readouterr().out.splitlines() == promised(ADOPTING)
    assert promised(ADOPTING)
    names["guard"].close()


# Tables and words


def key_names(model: type[BaseModel]) -> set[str]:
    """A model's keys as a file writes them."""
    return {str(field.validation_alias or name) for name, field in model.model_fields.items()}


MODELS: Mapping[str, type[BaseModel]] = {
    "## Top-level keys": Configuration,
    "## Stores": StoreDeclaration,
    "### HTTP APIs": Resource,
    "## Tools": tools.Tool,
    "### Arguments": Conditions,
    "## Tasks": contracts.Task,
    "### `watch`": contracts.Watch,
}


@pytest.mark.parametrize("heading", MODELS)
def test_a_table_of_keys_has_every_key(heading: str) -> None:
    told = {word for row in table(CONFIGURATION, heading) for word in quoted(row[0])}
    assert told == key_names(MODELS[heading])


@pytest.mark.parametrize("heading", [heading for heading in MODELS if heading != "### Arguments"])
def test_a_table_of_keys_tells_the_defaults(heading: str) -> None:
    for key, told, *_ in table(CONFIGURATION, heading):
        default = MODELS[heading].model_fields[quoted(key)[0]].default
        if told.startswith("`") and default is not None:
            assert told == f"`{_written(default)}`", key


def _written(default: object) -> str:
    """A default as a file writes it."""
    match default:
        case "":
            return '""'
        case ():
            return "[]"
        case bool():
            return str(default).lower()
        case _:
            return str(default)


def test_every_key_of_a_file_is_told() -> None:
    text = CONFIGURATION.read_text("utf-8")
    models = [
        *(model for module in (tools, contracts) for model in vars(module).values() if isinstance(model, type)),
        Content,
        StoreDeclaration,
    ]
    keys = {key for model in models if issubclass(model, BaseModel) for key in key_names(model)}
    assert sorted(key for key in keys if not re.search(rf"\b{key}\b", text)) == []


def test_the_values_are_those_that_can_be_read() -> None:
    told = {word for row in table(CONFIGURATION, "### Values") for word in re.findall(r"`\{(\w+): ", row[0])}
    forms = vars(values)["_FORMS"]
    assert told - {"a"} == set(forms) | {"decreased_by"}
    named = " ".join(row[0] for row in table(CONFIGURATION, "### Values"))
    assert all(form in named for form in forms)


def test_the_outcomes_are_those_of_the_code() -> None:
    told = [quoted(row[0])[0] for row in table(CONFIGURATION, "### Outcomes")]
    assert sorted(told) == sorted([*get_args(Outcome), "empty_list"])


def test_the_table_of_policies_is_what_the_policies_say() -> None:
    *rows, retries = table(CONFIGURATION, "## Policies")
    balanced, strict = (bundled.policy(name) for name in ("balanced", "strict"))
    told = {quoted(name)[0]: (one, other) for name, one, other in rows}
    actual = {
        name: (_shown(getattr(balanced.outcomes, name)), _shown(getattr(strict.outcomes, name)))
        for name in Outcomes.model_fields
    }
    assert told == actual
    assert retries == ["retries", str(balanced.retries), str(strict.retries)]
    assert bundled.policy("observe").outcomes == balanced.outcomes


def _shown(consequence: Consequence | None) -> str:
    return consequence if isinstance(consequence, str) else f"read: {consequence.read}, write: {consequence.write}"  # type: ignore[union-attr]


def test_limits_are_told_as_they_are() -> None:
    assert f"may answer {MOST_ANSWERED:,} rows" in CONFIGURATION.read_text("utf-8")


def test_the_first_hour_is_short() -> None:
    assert len(ADOPTING.read_text("utf-8").splitlines()) <= 120


@pytest.mark.parametrize("document", [*DOCUMENTS, CHECKOUT / "README.md"], ids=lambda path: path.name)
def test_links_into_a_page_lead_to_a_heading_of_it(document: Path) -> None:
    for target, anchor in re.findall(r"\]\((?!https?:)([^)#]*)(#[^)]*)\)", prose(document)):
        found = document.parent / target if target else document
        assert anchor in _anchors(found), anchor


def _anchors(document: Path) -> set[str]:
    headings = re.findall(r"^#+ (.*)$", prose(document), re.MULTILINE)
    return {"#" + re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


# Telemetry


PREFIXES = ("guardrail.", "gen_ai.", "db.", "error.", "http.", "server.", "session.", "url.")
NAMES = re.compile(r"`((?:guardrail|gen_ai|db|error|http|server|session|url)\.[a-z_.]+)[` ]")
"""What a name of telemetry looks like where it is told."""


def constants(*prefixes: str) -> set[str]:
    found = {value for name, value in vars(attributes).items() if name.isupper() and isinstance(value, str)}
    return {value for value in found if value.startswith(prefixes)}


def told_attributes() -> dict[str, set[str]]:
    """The attributes of the telemetry page: on what each is."""
    return {quoted(name)[0]: set(where.split(", ")) for name, where, *_ in table(TELEMETRY, "## Attributes")}


def test_every_name_of_telemetry_is_told() -> None:
    told = set(NAMES.findall(TELEMETRY.read_text("utf-8")))
    assert constants(*PREFIXES) - told == set()


def test_every_log_line_is_told() -> None:
    said = re.compile(r"""(?:log|get_logger\(\))\.(?:debug|info|warning|error)\(\s*"([\w.]+)\"""")
    source = (path.read_text("utf-8") for path in (CHECKOUT / "guardrail").rglob("*.py"))
    written = {name for text in source for name in said.findall(text)}
    assert {quoted(row[0])[0] for row in table(TELEMETRY, "## Logs")} == written


def test_no_name_of_telemetry_is_made_up() -> None:
    listed = {*told_attributes(), *(quoted(row[0])[0] for row in table(TELEMETRY, "## Events"))}
    listed |= {quoted(row[0])[0] for row in table(TELEMETRY, "## Metrics")}
    assert listed <= constants(*PREFIXES)


@pytest.fixture
def recorded(tmp_path: Path) -> Iterator[Recorder]:
    """All that a few runs of every kind told."""
    recorder = Recorder()
    shop = Shop(tmp_path / "shop.db")
    guards = Guards(shop, tmp_path)
    providers = {
        "tracer_provider": recorder.tracers,
        "meter_provider": recorder.meters,
        "logger_provider": recorder.loggers,
    }
    task: dict[str, Any] = {
        "any_of": {"refunded": {"expect": [{"inserted": "shop.refunds", "values": {"order_id": 17}}]}},
        "watch": {"shop.refunds": {}, "shop.orders": {}},
        "checks": [
            {"store": "shop", "sql": "select nothing from orders"},
            {"store": "crm", "get": "/busy", "query": {"key": "x"}},
            {"python": _never},
        ],
    }
    crm = Crm()
    busy = iter([Reply({}, 503)])
    crm.replies["/busy"] = lambda asked: next(busy, Reply({"fine": True}))
    stores = {"shop": {"url": shop.url}, "crm": {"url": crm.url, "private": True}}
    guard = guards(tasks={"various": task}, content={"spans": True}, stores=stores, **providers)
    _play(guard, shop)
    yield recorder
    guards.close()
    crm.close()


def _never(_: State) -> bool:
    return False


def _play(guard: Guard, shop: Shop) -> None:
    inputs = {"order_id": 17, "amount": "19.90"}
    with guard.run("refund_order", inputs=inputs, attributes={"session.id": "s", "gen_ai.conversation.id": "c"}) as run:
        run.call("refund_order", inputs, shop.refund_order, id="call_1")
    with guard.run("various") as run:
        run.wrap(shop.refund_order)(18, "5.00")
        run.wrap(shop.lookup_order)(99)
        run.user_turn()
        run.abandon("enough")
    with pytest.raises(Exception, match="write under hold"), guard.run("look_only") as run:
        run.wrap(shop.cancel_order)(17)
        run.wrap(shop.note_order)(17, "x")


def test_what_is_told_on_each_span_is_in_the_table(recorded: Recorder) -> None:
    told = told_attributes()
    seen: dict[str, set[str]] = {}
    for span in recorded.spans:
        seen.setdefault(_kind(span.name), set()).update(span.attributes or {})
    assert set(seen) == {"run", "call", "verify", "look"}
    for kind, names in seen.items():
        assert names == {name for name, where in told.items() if kind in where}, kind


def _kind(span: str) -> str:
    first = span.partition(" ")[0]
    named = {attributes.INVOKE_AGENT: "run", attributes.EXECUTE_TOOL: "call", attributes.VERIFY: "verify"}
    return named.get(first, "look")


def test_what_is_told_with_each_event_is_in_the_table(recorded: Recorder) -> None:
    told = {quoted(name)[0]: set(quoted(said)) for name, _, said in table(TELEMETRY, "## Events")}
    seen: dict[str, set[str]] = {}
    for event in recorded.events:
        seen.setdefault(event["event"], set()).update(set(event) - {"event", "severity"})
    assert seen == told


def test_what_metrics_are_split_by_is_in_the_table(recorded: Recorder) -> None:
    for name, _, said, _ in table(TELEMETRY, "## Metrics"):
        seen = {attribute for series in recorded.series(quoted(name)[0]) for attribute in series}
        if quoted(name)[0] != attributes.TELEMETRY_ERRORS:
            assert seen == set(quoted(said)), name


def test_the_version_of_opentelemetry_is_that_of_the_package() -> None:
    project = (CHECKOUT / "pyproject.toml").read_text("utf-8")
    least = re.findall(r'"opentelemetry-api>=([\d.]+)', project)[0]  # the package's own; an extra may need a later one
    assert f"opentelemetry-api >= {least}" in TELEMETRY.read_text("utf-8")


def test_the_schema_of_the_docs_shop_is_that_of_the_tests(folder: Path) -> None:
    """The adopting page's file fits the shop that its blocks run against."""
    write_files(ADOPTING)
    shop = Shop(folder / "shop.db")
    with closing(sqlite3.connect(shop.path)) as database:
        known = {name for (name,) in database.execute("select name from sqlite_master")}
    watched = {place for task in load("guardrail.yaml").tasks.values() for place in task.watched or {}}
    assert {place.partition(".")[2] for place in watched} <= known
