"""Loading a configuration from files, and checking one that was written in Python."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from guardrail.declare import bundled
from guardrail.declare.configuration import Configuration, StoreDeclaration
from guardrail.declare.contracts import Inserted, SqlCheck, Task, Updated, Watch
from guardrail.declare.loading import check, load
from guardrail.declare.matchers import Conditions
from guardrail.declare.policies import ByEffect, Outcomes, Policy
from guardrail.declare.tools import CelRequirement, EarlierRequirement, SqlRequirement, Tool
from guardrail.errors import ConfigurationError, Mistake

DESIGN = Path(__file__).with_name("design.yaml")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working directory."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(files: Mapping[str, str]) -> None:
    for name, text in files.items():
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text(text, "utf-8")


def mistakes(path: str = "guardrail.yaml", environ: Mapping[str, str] | None = None) -> list[str]:
    """What is wrong with a file, each mistake as one line."""
    with pytest.raises(ConfigurationError) as caught:
        load(path, environ or {})
    return [str(mistake) for mistake in caught.value.mistakes]


# The whole format


def test_the_examples_of_the_design_load() -> None:
    loaded = load(DESIGN, {"SHOP_URL": "sqlite:///shop.db"})

    assert loaded.stores["shop"].url == "sqlite:///shop.db"
    assert loaded.tools["refund_order"].args["amount"] == Conditions(type="decimal", above=0)
    invoice = loaded.tasks["settle_invoice"]
    assert set(invoice.any_of or {}) == {"settled", "escalated"}
    assert set(invoice.watched or {}) == {"shop.lines", "shop.accounts", "crm.tickets", "shop.payments", "shop.audit"}
    assert loaded.tasks["look_only"].expect == "nothing"


def test_what_was_loaded_holds_together_in_python_too() -> None:
    assert check(load(DESIGN, {"SHOP_URL": "sqlite:///shop.db"})) == ()


def test_a_configuration_written_out_loads_as_the_same_one(folder: Path) -> None:
    loaded = load(DESIGN, {"SHOP_URL": "sqlite:///shop.db"})
    dumped = loaded.model_dump(by_alias=True, exclude_unset=True)

    write({"again.yaml": as_yaml(dumped)})

    assert load("again.yaml", {}) == loaded


def as_yaml(value: object) -> str:
    """A plain value as JSON, which is YAML, with decimals as numbers."""
    marked = json.dumps(value, default=lambda number: f"<{number}>" if isinstance(number, Decimal) else str(number))
    return marked.replace('"<', "").replace('>"', "")


def test_the_same_can_be_written_in_python(folder: Path) -> None:
    write(
        {
            "guardrail.yaml": """
policy: strict
outcomes: {error: {read: allow, write: stop}}
stores: {shop: {url: "sqlite:///shop.db"}}
tools:
  lookup: {effect: read}
  refund:
    effect: write
    args: {amount: {type: decimal, above: 0, not: [5]}, price: 19.90}
    requires:
      - {cel: args.amount < 5}
      - {store: shop, sql: "select 1"}
      - {earlier: lookup, at: /id, is: {in: [1, 2]}}
tasks:
  refund:
    inputs: {id: integer}
    watch: {shop.orders: {key: id}}
    expect:
      - {updated: shop.orders, key: {id: $id}, values: {total: 19.90}}
      - {inserted: shop.refunds, as: row, values: {}}
    checks: [{store: shop, sql: "select 1"}]
"""
        }
    )

    assert load("guardrail.yaml") == Configuration(
        policy="strict",
        outcomes=Outcomes(error=ByEffect(read="allow", write="stop")),
        stores={"shop": StoreDeclaration(url="sqlite:///shop.db")},
        tools={
            "lookup": Tool(effect="read"),
            "refund": Tool(
                effect="write",
                args={"amount": Conditions(type="decimal", above=0, is_not=(5,)), "price": Decimal("19.90")},
                requires=(
                    CelRequirement(cel="args.amount < 5"),
                    SqlRequirement(store="shop", sql="select 1"),
                    EarlierRequirement(earlier="lookup", at="/id", is_=Conditions(is_in=(1, 2))),
                ),
            ),
        },
        tasks={
            "refund": Task(
                inputs={"id": "integer"},
                watch={"shop.orders": Watch(key="id")},
                expect=(
                    Updated(updated="shop.orders", key={"id": "$id"}, values={"total": Decimal("19.90")}),
                    Inserted(inserted="shop.refunds", name="row", values={}),
                ),
                checks=(SqlCheck(store="shop", sql="select 1"),),
            )
        },
    )


def test_money_of_a_file_stays_exact(folder: Path) -> None:
    text = "tools: {t: {effect: read, args: {a: 0.10, b: {above: 12345678901234567.89, in: [0.1, 0.30]}}}}"
    write({"guardrail.yaml": text})

    args = load("guardrail.yaml").tools["t"].args

    assert repr(args["a"]) == "Decimal('0.10')"
    assert isinstance(args["b"], Conditions)
    assert repr((args["b"].above, args["b"].is_in)) == (
        "(Decimal('12345678901234567.89'), (Decimal('0.1'), Decimal('0.30')))"
    )


# Several files


def test_included_files_come_first_and_entries_of_all_are_merged(folder: Path) -> None:
    write(
        {
            "conf/guardrail.yaml": "include: [parts/tools.yaml]\nsentences: [{pattern: b, means: empty}]\n"
            "tools: {'*': {effect: write}}\ntasks: {t: {inputs: {a: integer}, expect: nothing}}\n",
            "conf/parts/tools.yaml": "include: [../stores.yaml]\nsentences: [{pattern: a, means: empty}]\n"
            "tools: {get_*: {effect: read}}\ndrain: 1m\n",
            "conf/stores.yaml": "stores: {shop: {url: shop.db}}\n",
        }
    )

    loaded = load("conf/guardrail.yaml")

    assert list(loaded.tools) == ["get_*", "*"]
    assert [sentence.pattern for sentence in loaded.sentences] == ["a", "b"]
    assert (loaded.drain, loaded.stores["shop"].url, list(loaded.tasks)) == ("1m", "shop.db", ["t"])


def test_a_file_that_two_include_is_read_once(folder: Path) -> None:
    write(
        {
            "guardrail.yaml": "include: [a.yaml, b.yaml, ./a.yaml]\n",
            "a.yaml": "include: [shop.yaml]\n",
            "b.yaml": "include: [shop.yaml]\n",
            "shop.yaml": "stores: {shop: {url: shop.db}}\n",
        }
    )

    assert list(load("guardrail.yaml").stores) == ["shop"]


def test_an_included_file_may_come_from_the_environment(folder: Path) -> None:
    write({"guardrail.yaml": "include: ['${env:STAGE}.yaml']\n", "test.yaml": "drain: 1s\n"})

    assert load("guardrail.yaml", {"STAGE": "test"}).drain == "1s"


def test_a_missing_part_hides_no_mistake_and_makes_none_up(folder: Path) -> None:
    write(
        {
            "guardrail.yaml": "include: [stores.yaml]\ntools:\n  t:\n    effect: wriite\n    requires:\n"
            "      - {store: shop, sql: select 1}\n      - {earlier: lookup}\n      - {cel: nope > 1}\n"
        }
    )

    assert mistakes() == [
        "guardrail.yaml:1: include[0]: stores.yaml: there is no such file",
        "guardrail.yaml:4: tools.t.effect: must be one of read, write, unknown, not 'wriite' (did you mean `write`?)",
        "guardrail.yaml:8: tools.t.requires[2].cel: there is no variable `nope`; there are args, inputs, run",
    ]


def test_a_policy_can_be_a_file_beside_the_configuration(folder: Path) -> None:
    write(
        {
            "conf/guardrail.yaml": "policy: policies/careful.yaml\n",
            "conf/policies/careful.yaml": "name: careful\noutcomes: {error: stop}\n",
        }
    )

    assert load("conf/guardrail.yaml").policy == Policy(name="careful", outcomes=Outcomes(error="stop"))


def test_a_policy_can_stand_in_the_configuration(folder: Path) -> None:
    write({"guardrail.yaml": "policy: {name: own, retries: 1}\n"})

    assert load("guardrail.yaml").policy == Policy(name="own", retries=1)


# The environment


def test_the_environment_is_filled_into_texts_and_nothing_else_is(folder: Path) -> None:
    write(
        {
            "guardrail.yaml": "stores:\n  shop: {url: 'sqlite:///${env:DIR}/${env:NAME}.db'}\n  raw: {url: '${NAME} $NAME'}\n"
        }
    )

    stores = load("guardrail.yaml", {"DIR": "/data", "NAME": "${env:DIR}"}).stores

    assert stores["shop"].url == "sqlite:////data/${env:DIR}.db"
    assert stores["raw"].url == "${NAME} $NAME"


def test_the_process_environment_is_the_default(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(os.environ, "GUARDRAIL_TEST_URL", "shop.db")
    write({"guardrail.yaml": "stores: {shop: {url: '${env:GUARDRAIL_TEST_URL}'}}\n"})

    assert load("guardrail.yaml").stores["shop"].url == "shop.db"


@given(secret=st.text("abcdefghijkl0123456789:/@$'\"\\", min_size=8, max_size=20))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_what_the_environment_says_is_in_no_message(folder: Path, secret: str) -> None:
    write(
        {
            "guardrail.yaml": "stores: {shop: {url: shop.db, timeout: '${env:S}'}}\n"
            "tools: {t: {root: '${env:S}', args: {a: {type: decimal, equals: '${env:S}'}, b: {matches: '(${env:S}'}},\n"
            "            requires: [{store: shop, sql: 'selec ${env:S}'}, {cel: 'args.a > ${env:S} >'}]}}\n"
            "tasks: {u: {expect: [{inserted: '${env:S}', values: {a: {matches: '[${env:S}'}}}]}}\n"
        }
    )

    found = "\n".join(mistakes(environ={"S": secret})).lower()

    assert not any(secret.lower()[at : at + 6] in found for at in range(len(secret) - 5))


def test_a_url_is_not_shown_with_the_configuration() -> None:
    configuration = Configuration(stores={"shop": StoreDeclaration(url="postgres://me:hunter2@host/shop")})

    assert "hunter2" not in repr(configuration)


# Broken files (case B19: "a broken policy file means: no rules")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        pytest.param("tools: [refund", "guardrail.yaml:1: is not YAML", id="syntax error at start"),
        pytest.param("tols: {}", "guardrail.yaml:1: tols: unknown key `tols`", id="valid YAML, unknown key"),
        pytest.param("", "guardrail.yaml: is empty", id="empty file"),
        pytest.param("null", "guardrail.yaml:1: must be a mapping, and is empty", id="null"),
        pytest.param("[]", "guardrail.yaml:1: must be a mapping, not a list", id="a list"),
        pytest.param("tools:\n  t:\n    on: error\n", ":3: tools.t.on: the key `on` is no text", id="key on unquoted"),
        pytest.param("tools: {t: {data: [NO, SE]}}", "tools.t.data[0]: `NO` is true or false", id="value NO unquoted"),
        pytest.param("ledger: a\nledger: b\n", ":2: ledger: is given twice, first in line 1", id="duplicate key"),
        pytest.param("version: 1.10", ":1: version: must be 1, the only version there is, not 1.10", id="version 1.10"),
        pytest.param("tools: {t: {args: {id: 012}}}", "`012` has a leading zero", id="a leading zero"),
        pytest.param("drain: 12:30:45", "drain: must be a duration", id="a sexagesimal number"),
    ],
)
def test_a_broken_file_is_refused_with_file_and_line(folder: Path, text: str, says: str) -> None:
    write({"guardrail.yaml": text})

    (found,) = mistakes()

    assert says in found


def test_when_the_second_of_two_files_is_broken_nothing_is_loaded(folder: Path) -> None:
    write({"guardrail.yaml": "include: [broken.yaml]\npolicy: strict\n", "broken.yaml": "tools: {a: [\n"})

    (found,) = mistakes()

    assert found.startswith("broken.yaml:")


def test_number_like_texts_keep_what_was_written(folder: Path) -> None:
    write({"guardrail.yaml": "tools: {t: {args: {at: 12:30:45, id: '012', code: 1_000, v: 1.10}}}\n"})

    args = load("guardrail.yaml").tools["t"].args

    assert {name: str(value) for name, value in args.items()} == {
        "at": "12:30:45",
        "id": "012",
        "code": "1_000",
        "v": "1.10",
    }


def test_a_file_that_is_not_there_is_refused() -> None:
    assert mistakes("nowhere.yaml") == ["nowhere.yaml: there is no such file"]


def test_the_error_counts_its_mistakes(folder: Path) -> None:
    write({"guardrail.yaml": "tols: {}\nmode: x\n"})

    with pytest.raises(ConfigurationError) as caught:
        load("guardrail.yaml")

    assert str(caught.value).splitlines()[0] == "the configuration has 2 mistakes:"


# Any text


NAMES = st.sampled_from(
    [
        "version",
        "include",
        "policy",
        "mode",
        "outcomes",
        "stores",
        "shop",
        "url",
        "tools",
        "t",
        "effect",
        "read",
        "write",
        "empty",
        "args",
        "requires",
        "cel",
        "sql",
        "store",
        "earlier",
        "at",
        "is",
        "tasks",
        "inputs",
        "watch",
        "shop.orders",
        "key",
        "where",
        "expect",
        "nothing",
        "updated",
        "inserted",
        "values",
        "any_of",
        "when",
        "checks",
        "let",
        "rows",
        "each",
        "as",
        "$id",
        "$each.a",
        "${env:X}",
        "on",
        "1",
        "5s",
        "select",
    ]
)
EMPTY: list[Any] = [[], {}, "", "select 1", "a = 1"]
PLAIN = NAMES | st.none() | st.booleans() | st.integers(-1, 3) | st.sampled_from(EMPTY)
TREES = st.recursive(PLAIN, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=4))


@given(tree=st.dictionaries(NAMES, TREES, max_size=5))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=150, deadline=None)
def test_any_file_loads_or_is_refused_with_mistakes(folder: Path, tree: dict[str, Any]) -> None:
    write({"guardrail.yaml": json.dumps(tree)})

    found = mistakes_if_any()

    assert found is None or (found and len(set(found)) == len(found))
    assert all(mistake.file == "guardrail.yaml" and mistake.what for mistake in found or ())


def mistakes_if_any() -> tuple[Mistake, ...] | None:
    """What is wrong with the file; None when it loads."""
    try:
        load("guardrail.yaml", {})
    except ConfigurationError as error:
        return error.mistakes
    return None


@given(data=st.data())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=150, deadline=None)
def test_a_damaged_configuration_loads_or_is_refused_with_mistakes(folder: Path, data: st.DataObject) -> None:
    tree = load(DESIGN, {"SHOP_URL": "shop.db"}).model_dump(by_alias=True, exclude_unset=True)
    whole: Any = json.loads(as_yaml(tree))

    damage(whole, data)
    write({"guardrail.yaml": json.dumps(whole)})

    assert mistakes_if_any() != ()


def damage(value: Any, data: st.DataObject) -> None:
    """Replace or remove one thing somewhere inside a value."""
    steps: list[Any] = list(value) if hasattr(value, "keys") else list(range(len(value)))
    if not steps:
        return
    step = data.draw(st.sampled_from(steps))
    if isinstance(value[step], (dict, list)) and data.draw(st.integers(0, 3)):
        damage(value[step], data)
    elif data.draw(st.booleans()):
        del value[step]
    else:
        value[step] = data.draw(PLAIN)


# Written in Python


def test_a_mistake_of_python_is_named_with_its_field() -> None:
    configuration = Configuration(
        policy="strikt",
        stores={"shop": StoreDeclaration(url="redis://x")},
        tools={"t": Tool(effect="read", once_per=("id",), requires=(EarlierRequirement(earlier="nobody"),))},
        tasks={"u": Task(expect=(Inserted(inserted="crm.notes", values={"a": "$b"}),))},
    )

    assert [str(mistake) for mistake in check(configuration)] == [
        "<python>: policy: there is no bundled policy `strikt` (did you mean `strict`?)",
        "<python>: stores.shop.url: has another scheme than sqlite, postgres, mysql, mariadb, http or https",
        "<python>: tools.t.once_per: names an operation that is done once, and the tool only reads",
        "<python>: tools.t.requires[0].earlier: there is no tool `nobody` (the tools are t)",
        "<python>: tasks.u.expect[0].inserted: there is no store `crm` (the stores are shop)",
        "<python>: tasks.u.expect[0].values.a: `$b` is not an input, a `let` or an `as` of the task",
    ]


def test_a_configuration_of_defaults_holds_together() -> None:
    assert check(Configuration()) == ()
    assert all(check(Configuration(policy=name)) == () for name in bundled.names())


def test_a_tool_that_a_pattern_speaks_of_is_declared() -> None:
    tools = {"get_*": Tool(effect="read"), "t": Tool(requires=(EarlierRequirement(earlier="get_order"),))}

    assert check(Configuration(tools=tools)) == ()


def test_inputs_are_open_to_expressions_where_a_task_takes_any() -> None:
    tools = {"t": Tool(requires=(CelRequirement(cel="inputs.a == 1"),))}
    stores = {"shop": StoreDeclaration(url="shop.db")}
    closed, open_ = Task(inputs={"b": "integer"}, expect="nothing"), Task(expect="nothing")

    assert check(Configuration(tools=tools)) == ()
    assert check(Configuration(tools=tools, stores=stores, tasks={"u": closed, "v": open_})) == ()
    assert len(check(Configuration(tools=tools, stores=stores, tasks={"u": closed}))) == 1


def test_a_task_that_watches_no_table_at_all_is_refused() -> None:
    assert len(check(Configuration(tasks={"t": Task(expect="nothing")}))) == 1
    assert len(check(Configuration(tasks={"t": Task(expect="nothing", stores=())}))) == 1


def test_includes_are_for_files() -> None:
    (mistake,) = check(Configuration(include=("tools.yaml",)))

    assert mistake.field == "include"


@pytest.mark.parametrize(
    ("url", "dialect"),
    [
        ("sqlite:///shop.db", "sqlite"),
        ("shop.db", "sqlite"),
        ("C:\\shop.db", "sqlite"),
        ("postgresql+psycopg://host/shop", "postgres"),
        ("postgres://host/shop", "postgres"),
        ("MySQL://host/shop", "mysql"),
        ("mariadb://host/shop", "mysql"),
        ("redis://host", None),
        ("https://host", None),
    ],
)
def test_the_scheme_of_a_url_gives_the_dialect(url: str, dialect: str | None) -> None:
    assert StoreDeclaration(url=url).dialect == dialect
