"""Snapshots of values: redacted, bounded, plain, and taken without touching the value."""

from __future__ import annotations

import ast
import json
import threading
from collections import OrderedDict, UserDict, deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta, tzinfo
from decimal import Decimal
from enum import Enum, IntEnum, StrEnum
from pathlib import Path, PurePosixPath
from types import MappingProxyType
from typing import Any, NamedTuple
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, Field, SecretStr

from guardrail.telemetry import redaction
from guardrail.telemetry.redaction import snapshot, snapshot_text


def test_what_a_tool_adds_to_its_arguments_is_not_in_the_snapshot() -> None:
    args: dict[str, object] = {"path": "/v1/c/8", "filters": {"active": True}}
    taken = snapshot(args)
    args["_auth"] = "Bearer sk-test-000"
    args["filters"] = args["headers"] = {"X-Api-Key": "sk-test-000"}
    assert taken == {"path": "/v1/c/8", "filters": {"active": True}}


def test_changing_the_snapshot_does_not_change_the_arguments() -> None:
    args = {"nested": [{"a": 1}]}
    taken: Any = snapshot(args)
    taken["nested"][0]["a"] = 2
    assert args == {"nested": [{"a": 1}]}


def test_secrets_in_the_call_itself_are_redacted_at_any_depth() -> None:
    args = {"path": "/x", "api_key": "sk-test-000", "nested": [{"password": "p"}], "headers": {"Authorization": "x"}}
    assert snapshot(args) == {
        "path": "/x",
        "api_key": "[redacted]",
        "nested": [{"password": "[redacted]"}],
        "headers": {"Authorization": "[redacted]"},
    }


def test_a_secret_in_a_harmless_field_is_masked() -> None:
    assert snapshot({"url": "https://u:p@h/x?key=sk-test-000"}) == {"url": "https://[redacted]@h/x?key=[redacted]"}
    assert snapshot("Bearer sk-test-000") == "Bearer [redacted]"
    assert snapshot({"sk-test-000": 1}) == {"[redacted]": 1}


def test_harmless_names_are_left_alone() -> None:
    args = {"token_count": 5, "keyboard": "de", "author": "kim", "monkey": "see"}
    assert snapshot(args) == args


def test_declared_fields_are_redacted_whatever_they_hold() -> None:
    args = {"pregnant": True, "ssn": None, "deep": {"ssn": 123_456_789}, "city": "Bonn"}
    assert snapshot(args, {"ssn", "pregnant"}) == {
        "pregnant": "[redacted]",
        "ssn": "[redacted]",
        "deep": {"ssn": "[redacted]"},
        "city": "Bonn",
    }


def test_null_and_booleans_give_no_secret_away() -> None:
    assert snapshot({"password": None, "has_password": True, "secret": False, "pin": 1234}) == {
        "password": None,
        "has_password": True,
        "secret": False,
        "pin": "[redacted]",
    }


class Client:
    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.password = "hunter2"


def test_objects_are_their_class_name() -> None:
    assert snapshot({"client": Client(), "lock": threading.Lock(), "type": Client, "function": len}) == {
        "client": "<Client>",
        "lock": "<lock>",
        "type": "<type>",
        "function": "<builtin_function_or_method>",
    }


def test_files_and_generators_are_not_consumed(tmp_path: Path) -> None:
    path = tmp_path / "orders.csv"
    path.write_text("17,18")
    numbers = (number for number in range(3))
    with path.open() as file:
        assert snapshot({"f": file, "g": numbers, "m": map(str, [1]), "i": iter([1])}) == {
            "f": "<TextIOWrapper>",
            "g": "<generator>",
            "m": "<map>",
            "i": "<list_iterator>",
        }
        assert file.read() == "17,18"
    assert list(numbers) == [0, 1, 2]


class Colour(Enum):
    RED = "red"


class Level(IntEnum):
    HIGH = 3


class Status(StrEnum):
    PAID = "paid"


class Point(NamedTuple):
    x: int
    password: str


@dataclass
class Order:
    id: int
    token: str = field(default="t", repr=False)
    note: str = field(default="n", repr=False)


@dataclass(slots=True)
class Slotted:
    id: int


class Customer(BaseModel):
    id: int
    password: SecretStr = SecretStr("hunter2")
    birthday: str = Field(default="2001-01-01", repr=False)


class BrokenZone(tzinfo):
    def utcoffset(self, dt: datetime | None) -> timedelta:
        raise RuntimeError

    def dst(self, dt: datetime | None) -> timedelta:
        raise RuntimeError

    def tzname(self, dt: datetime | None) -> str:
        raise RuntimeError


class Ordered(OrderedDict[str, int]):
    def items(self) -> Any:
        raise RuntimeError


class BrokenMapping(Mapping[str, int]):
    def __getitem__(self, name: str) -> int:
        raise RuntimeError

    def __iter__(self) -> Iterator[str]:
        raise RuntimeError

    def __len__(self) -> int:
        return 1


def claimed(self: object) -> type:
    return str


# A proxy that claims to be a text, as lazy translations do.
Claiming = type("Claiming", (), {"__class__": property(claimed)})


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        (None, None),
        (True, True),
        (17, 17),
        (2**63 - 1, 2**63 - 1),
        (2**70, "1180591620717411303424"),
        (10**5000, "[integer of 16610 bits]"),
        (1.5, 1.5),
        (float("nan"), "NaN"),
        (float("-inf"), "-Infinity"),
        (Decimal("19.90"), "19.90"),
        (Decimal("NaN"), "NaN"),
        (datetime(2026, 1, 2, 3, 4, tzinfo=UTC), "2026-01-02T03:04:00+00:00"),
        (datetime(2026, 1, 2, tzinfo=BrokenZone()), "<datetime>"),
        (date(2026, 1, 2), "2026-01-02"),
        (timedelta(seconds=5), "0:00:05"),
        (UUID(int=1), "00000000-0000-0000-0000-000000000001"),
        (PurePosixPath("/etc"), "/etc"),
        (range(3), "range(0, 3)"),
        (b"secret", "[6 bytes]"),
        (bytearray(2), "[2 bytes]"),
        ("a\ud800b", "a\\ud800b"),
        ({3, 1, 2}, [1, 2, 3]),
        (frozenset({"b", "a"}), ["a", "b"]),
        ((1, (2,)), [1, [2]]),
        (deque([1, 2]), [1, 2]),
        (Colour.RED, "red"),
        (Level.HIGH, 3),
        (Status.PAID, "paid"),
        (Point(1, "p"), {"x": 1, "password": "[redacted]"}),
        (Order(1), {"id": 1, "token": "[redacted]", "note": "[redacted]"}),
        (Slotted(1), {"id": 1}),
        (Customer(id=1), {"id": 1, "password": "[redacted]", "birthday": "[redacted]"}),
        (SecretStr("hunter2"), "<SecretStr>"),
        (MappingProxyType({"a": 1}), {"a": 1}),
        (UserDict({"a": 1}), {"a": 1}),
        (Ordered(a=1), {"a": 1}),
        (BrokenMapping(), "<BrokenMapping>"),
        (ValueError("password=hunter2"), "ValueError: password=[redacted]"),
        ({1: "a", b"k": "b", (1, 2): "c", None: "d"}, {"1": "a", "k": "b", "[1,2]": "c", "null": "d"}),
        ({}, {}),
        ([], []),
        ("", ""),
        (Claiming(), "<Claiming>"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_every_value_has_a_plain_picture(value: object, plain: object) -> None:
    assert snapshot(value) == plain
    assert snapshot({"nested": [value]}) == {"nested": [plain]}


def test_cycles_are_told() -> None:
    value: dict[str, object] = {}
    value["d"] = value
    assert snapshot(value) == {"d": "[cycle]"}
    items: list[object] = [1]
    items.append(items)
    assert snapshot(items) == [1, "[cycle]"]


def test_the_same_object_twice_is_no_cycle() -> None:
    shared = {"a": 1}
    assert snapshot([shared, shared]) == [{"a": 1}, {"a": 1}]


def test_depth_is_bounded_and_marked() -> None:
    value: object = 1
    for _ in range(3000):
        value = [value]
    text = snapshot_text(value)
    assert text == "[" * 12 + '"[too deep]"' + "]" * 12


def test_long_lists_and_mappings_are_cut_and_say_how_much_is_missing() -> None:
    listed: Any = snapshot(list(range(1_000_000)))
    assert listed[:3] == [0, 1, 2]
    kept = len(listed) - 1
    assert listed[-1] == f"[truncated: {1_000_000 - kept} more]"
    mapped: Any = snapshot({f"field_{number}": number for number in range(100_000)})
    assert mapped["[truncated]"] == f"{100_000 - len(mapped) + 1} more"


def test_one_long_text_leaves_room_for_the_other_fields() -> None:
    taken: Any = snapshot({"body": "x" * 1_000_000, "order_id": 17})
    assert taken["order_id"] == 17
    assert taken["body"] == "x" * 1024 + "[truncated: 998976 more]"


HOSTILE = [
    "x" * 10_000_000,
    {"a": "\x00" * 1_000_000, "b": ['é"\\\n' * 3000] * 9},
    [[number] * 100 for number in range(1000)],
    {str(number) * 500: number for number in range(1000)},
    [{"password": "p"}] * 10_000,
    ["\ud800" * 10_000] * 100,
    [[[[[["x"] * 9] * 9] * 9] * 9] * 9] * 9,
]


@pytest.mark.parametrize("value", HOSTILE, ids=range(len(HOSTILE)))
def test_a_snapshot_is_about_four_kilobytes_at_most(value: object) -> None:
    text = snapshot_text(value)
    assert len(text) < 5_000
    assert "[truncated" in text


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.decimals() | st.dates() | st.binary(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text() | st.integers(), inner) | st.sets(st.integers()),
    max_leaves=60,
)


@settings(max_examples=200)
@given(PLAIN)
def test_a_snapshot_is_json_that_can_be_encoded_and_is_bounded(value: object) -> None:
    text = snapshot_text(value)
    assert len(text) < 5_000
    text.encode("utf-8")
    json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))


@settings(max_examples=100)
@given(st.dictionaries(st.text(max_size=8), st.integers(-(2**40), 2**40) | st.booleans() | st.text(max_size=20)))
def test_a_snapshot_of_a_snapshot_is_the_same(value: object) -> None:
    once = snapshot(value)
    assert snapshot(once) == once


@settings(max_examples=100)
@given(st.dictionaries(st.sampled_from(["order_id", "amount", "note", "password"]), st.text("ab19-", max_size=20)))
def test_the_quick_way_and_the_thorough_way_agree(value: dict[str, str]) -> None:
    thorough: Any = snapshot([value])
    assert snapshot(value) == thorough[0]


def test_a_dictionary_that_another_thread_changes_is_no_error() -> None:
    shared: dict[str, int] = {f"k{number}": number for number in range(200)}
    done = threading.Event()

    def change() -> None:
        number = 0
        while not done.is_set():
            number += 1
            shared[f"k{number % 400}"] = number
            shared.pop(f"k{(number * 7) % 400}", None)

    thread = threading.Thread(target=change)
    thread.start()
    try:
        for _ in range(200):
            assert isinstance(snapshot(shared), dict)
    finally:
        done.set()
        thread.join()


@pytest.mark.parametrize("module", ["redaction", "secrecy", "canonical", "members"])
def test_redaction_knows_nothing_of_opentelemetry(module: str) -> None:
    source = (Path(redaction.__file__).parent / f"{module}.py").read_text(encoding="utf-8")
    imports = {
        name
        for node in ast.walk(ast.parse(source))
        if isinstance(node, (ast.Import, ast.ImportFrom))
        for name in ([alias.name for alias in node.names] if isinstance(node, ast.Import) else [node.module or ""])
    }
    assert not {name for name in imports if name.startswith(("opentelemetry", "structlog"))}
    ours = {name for name in imports if name.startswith("guardrail.")}
    assert all(name.rpartition(".")[2] in ("members", "secrecy", "canonical") for name in ours)
