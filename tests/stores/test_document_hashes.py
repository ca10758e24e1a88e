"""What the hash of a row tells of its JSON documents: what whole rows tell, on every database."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from decimal import Context, Decimal
from pathlib import Path
from typing import Any, Final, TypeAlias, cast

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from guardrail.pictures import Picture, Unanswered
from guardrail.state.comparison import Comparison
from guardrail.stores.opening import open_store
from guardrail.stores.store import Photograph, Store
from support.databases import KINDS, Database, Kind, opened


@dataclass(frozen=True)
class Number:
    """A number, so many tens to that power."""

    digits: int
    power: int = 0


@dataclass(frozen=True)
class Object:
    """An object, in which a name may stand twice."""

    members: tuple[tuple[str, Node], ...]


_EXACT: Final = Context(prec=1_000)

Node: TypeAlias = "Object | tuple[Node, ...] | Number | str | bool | None"

names = st.sampled_from(["a", "b", "aa", "é", "A", '"', "\\", "u0061", "😀", ""])
texts = st.text(st.sampled_from([*'ab"\\/ue0{[:,', "\0", "\x1f", "\n", "é", "😀", "\u2028", "\x7f"]), max_size=4)
numbers = st.builds(
    Number,
    st.sampled_from([0, 1, -1, 10, 15, 100, 10**18, 2**63, 2**63 + 1, 10**30, 10**30 + 1, 123456789012345678901234567]),
    st.integers(-3, 3) | st.sampled_from([-400, 30, 400]),
)
leaves = st.none() | st.booleans() | numbers | texts
nodes: st.SearchStrategy[Any] = st.recursive(
    leaves,
    lambda inner: (
        st.lists(inner, max_size=3).map(tuple) | st.lists(st.tuples(names, inner), max_size=3).map(tuple).map(Object)
    ),
    max_leaves=6,
)


@st.composite
def altered(draw: st.DrawFn, node: Any) -> Any:
    """A document that differs from another in one place, or in the order of something."""
    parts = cast("tuple[Any, ...]", node.members if isinstance(node, Object) else node)
    if not isinstance(node, Object | tuple) or not parts:
        return draw(leaves | st.just(()) | st.just(Object(())))
    place = draw(st.integers(0, len(parts) - 1))
    before, part, behind = parts[:place], parts[place], parts[place + 1 :]
    match draw(st.sampled_from(["within", "within", "gone", "backwards", "twice"])):
        case "gone":
            parts = (*before, *behind)
        case "backwards":
            parts = parts[::-1]
        case "twice":
            parts = (*parts, part)
        case _ if isinstance(node, Object):
            name, value = part
            new = (draw(names), value) if draw(st.booleans()) else (name, draw(altered(value)))
            parts = (*before, new, *behind)
        case _:
            parts = (*before, draw(altered(part)), *behind)
    return Object(parts) if isinstance(node, Object) else parts


Choose: TypeAlias = Callable[[Sequence[str]], str]


def written(node: Node, choose: Choose) -> str:
    """The text of a document, in one of the many ways to write it."""
    blank = choose(("", "", " ", "\n", "\t\r "))
    match node:
        case Object(members):
            inside = [f"{string(name, choose)}{blank}:{written(member, choose)}" for name, member in members]
            if len(dict(members)) == len(members) and choose(("", "backwards")):
                inside.reverse()
            text = "{" + blank + ",".join(inside) + "}"
        case tuple():
            text = "[" + ",".join(written(item, choose) for item in node) + blank + "]"
        case str():
            text = string(node, choose)
        case Number(digits, power):
            text = choose(spellings(digits, power))
        case _:
            text = {None: "null", True: "true", False: "false"}[node]
    return f"{blank}{text}{choose(('', '', ' '))}"


def string(text: str, choose: Choose) -> str:
    return '"' + "".join(choose(escapes(sign)) for sign in text) + '"'


def escapes(sign: str) -> list[str]:
    """The ways to write a sign in a string."""
    units = sign.encode("utf-16-be")
    code = "".join(rf"\u{units[place : place + 2].hex()}" for place in range(0, len(units), 2))
    short = {'"': r"\"", "\\": r"\\", "/": r"\/", "\n": r"\n"}.get(sign)
    plain = [] if sign < " " or sign in '"\\' else [sign, sign]
    return [*plain, *([short] if short else []), code, code.replace(r"\u", "!").upper().replace("!", r"\u")]


def spellings(digits: int, power: int) -> list[str]:
    """The ways to write a number."""
    plain = format(Decimal(digits).scaleb(power, _EXACT), "f")
    point = "0" if "." in plain else ".0"
    same = [plain, plain + point, f"{digits}e{power}", f"{digits * 10}E{power - 1:+}", f"{digits}.00e{power:+03}"]
    return [*same, "-0", "-0.0", "-0e7"] if digits == 0 else same


@st.composite
def writings(draw: st.DrawFn) -> tuple[str, str]:
    """Two texts, often of one document or of two that are nearly alike."""

    def choose(among: Sequence[str]) -> str:
        return draw(st.sampled_from(among))

    one = draw(nodes)
    other = draw(st.just(one) | altered(one) | nodes)
    return written(one, choose), written(other, choose)


@dataclass(frozen=True)
class Documents:
    """A table of documents on some database, and a store that looks at it."""

    database: Database
    store: Store

    def seen(self, documents: Sequence[str]) -> list[tuple[object, bytes]]:
        """These documents as whole rows hold them, and the hashes of the rows."""
        rows = [("insert into items values (?, 'open', ?)", *row) for row in enumerate(documents)]
        self.database.transact(("delete from items",), *rows)
        whole, hashed = self.store.look([Photograph("shop.items", "items", hashed=form) for form in (False, True)])
        assert isinstance(whole, Picture), whole
        assert isinstance(hashed, Picture), hashed
        assert hashed.hashes is not None
        assert whole.columns == ("id", "state", "document")
        assert whole.kinds["document"] == "json"
        return [(whole.rows[number,][2], hashed.hashes[number,]) for number in range(len(documents))]


TABLES: Final[tuple[tuple[Kind, str], ...]] = (*((kind, "document") for kind in KINDS), ("postgres", "json"))
"""The databases, and the types that the tests have for a document there; `json` is a `jsonb`."""

Everywhere: TypeAlias = dict[tuple[Kind, str], Documents]


@pytest.fixture(scope="module")
def everywhere(tmp_path_factory: pytest.TempPathFactory, postgres_folder: Path) -> Iterator[Everywhere]:
    with ExitStack() as opening:
        made: Everywhere = {}
        for kind, type_ in TABLES:
            database = opening.enter_context(opened(kind, tmp_path_factory.mktemp(kind), postgres_folder))
            columns = f"id {{integer}} primary key, state {{text}}, document {{{type_}}}"
            database.script(f"create table items ({columns})")
            store = opening.enter_context(closing(open_store("shop", database.url, 30)))
            made[kind, type_] = Documents(database, store)
        yield made


def is_refused_by_jsonb(*documents: str) -> bool:
    """Whether a document holds the one letter that texts of PostgreSQL do not have."""
    return any(r"\u0000" in document.replace(r"\\", "") for document in documents)


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(st.lists(writings(), min_size=1, max_size=8))
@example([('{"a":1,"a":2}', '{"a":2,"a":1}'), ('{"a":2,"a":1}', '{"a":1}'), ('{"a":1,"a":2}', '{"a":2,"a":2}')])
@example([('[{"a":[1,2],"a":[2,1]}]', '[{"a":[2,1],"a":[1,2]}]'), ('{"a":{"b":1},"a":{}}', '{"a":{},"a":{"b":1}}')])
@example([("1", "1.0"), ("1.0", "1e0"), ("1", "true"), ("0", "false"), ("-0", "0.0"), ('"1"', "1"), ("[]", "{}")])
@example(
    [(f"{2**63}", f"{2**63 + 1}"), (f"{10**30}", "1e30"), (f"{10**30 + 1}", "1e30"), ("0.1", "0.10000000000000001")]
)
@example([(r'"\u00e9"', '"é"'), (r'"\ud83d\ude00"', '"😀"'), (r'"\u0000"', r'"\\u0000"'), (r'"\u0000"', r'"\u0001"')])
@example(
    [(r'{"a":{"y":[1,{"d":1,"c":2}],"x":0}}', '{"a": {"x": 0, "y": [1.0, {"c": 2, "d": 1}]}}'), ("null", "[null]")]
)
@example([('{"a":{"b":1},"c":2}', '{"a":{"b":1,"c":2}}'), ("[[1],2]", "[[1,2]]"), ("[[],[],1]", "[1]"), ("0", "[0]")])
def test_the_hash_tells_of_a_document_what_whole_rows_tell(
    everywhere: Everywhere, pairs: list[tuple[str, str]]
) -> None:
    same = Comparison("json", precise=True).same
    for (kind, type_), documents in everywhere.items():
        held = [pair for pair in pairs if type_ == "document" or not is_refused_by_jsonb(*pair)]
        before, after = (documents.seen([pair[place] for pair in held]) for place in (0, 1))
        for (old, one), (new, other), texts in zip(before, after, held, strict=True):
            told_by_its_text = kind == "postgres" and is_refused_by_jsonb(*texts)
            assert (one == other) == (old == new if told_by_its_text else same(old, new)), (kind, type_, *texts)


@pytest.mark.parametrize("kind", KINDS)
def test_a_picture_that_takes_too_long_says_what_to_do_and_holds_nobody_up(
    kind: Kind, tmp_path: Path, postgres_folder: Path
) -> None:
    with opened(kind, tmp_path, postgres_folder) as database:
        database.script("create table items (id {integer} primary key, document {document})")
        database.execute("insert into items values (0, ?)", json.dumps([number / 7 for number in range(100)]))
        for doubled in range(15):
            database.execute(f"insert into items select id + {2**doubled}, document from items")
        with closing(open_store("shop", database.url, 0.2)) as store:
            [found] = store.look([Photograph("shop.items", "items", hashed=True)])
        ended = time.monotonic()
        database.execute("drop table items")
        assert time.monotonic() - ended < 30
    assert isinstance(found, Unanswered)
    assert found.why.startswith("shop.items could not be looked at: it took longer than ")
    assert (
        "; narrow the question (a watched table by `where`, and `ignore` its long columns, JSON kept as text above all), or raise the"
        in found.why
    )
