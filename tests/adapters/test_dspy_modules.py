"""What only DSPy has: modules that run code which a model wrote, and modules whose tools no guard reaches."""

from __future__ import annotations

import functools
import warnings
from pathlib import Path
from typing import Any

import dspy
import pytest

from guardrail import RunStopped
from guardrail_dspy import guarded
from support.kits.dspy import ReAct, Scripted
from support.kits.pages import run_page, shop_of_the_page
from support.kits.stage import Script, asked
from support.kits.theatre import Theatre


class Here:
    """An interpreter of Python that runs what a model wrote in this process."""

    def __init__(self) -> None:
        self.tools: dict[str, Any] = {}
        self._names: dict[str, Any] = {}

    def start(self) -> None:
        """Nothing has to be made ready."""

    def shutdown(self) -> None:
        """Nothing has to be put away."""

    def execute(self, code: str, variables: dict[str, Any] | None = None) -> Any:
        said: list[Any] = []
        self._names.update(variables or {}, **self.tools, print=said.append)
        exec(code, self._names)
        return "\n".join(map(str, said))


class Writing(Scripted):
    """A model that writes code."""

    def forward(self, prompt: Any = None, messages: Any = None, **options: Any) -> Any:
        response = super().forward(prompt, messages, **options)
        _, turn = self.script.next([])
        response.choices[0].message.content = f"[[ ## reasoning ## ]]\nSo.\n\n[[ ## code ## ]]\n{turn}\n"
        return response


class Coding(ReAct):
    """`dspy.RLM`."""

    def model(self, script: Any) -> Scripted:
        return Writing(script)

    def module(self, tools: list[dspy.Tool]) -> dspy.Module:
        return dspy.RLM("task -> answer", tools=tools, interpreter_factory=Here)


def test_code_that_a_model_wrote_does_not_catch_a_stop(tmp_path: Path) -> None:
    careless = "try:\n    {}\nexcept Exception as error:\n    print(error)"
    with Theatre(Coding(), "sync", tmp_path) as theatre:
        played = theatre.play(
            careless.format("print(cancel_order(order_id=17))"),
            careless.format("print(note_order(order_id=17, note='done'))"),
            careless.format("print(lookup_order(order_id=17))"),
        )
        assert isinstance(played.error, RunStopped), played.error
        assert (played.requests, played.begun) == (2, ["cancel_order"])


def test_a_mistake_within_a_decorated_tool_is_no_misfit(tmp_path: Path) -> None:
    def with_session(tool: Any) -> Any:
        @functools.wraps(tool)
        def called(**args: Any) -> object:
            return tool(session="s", **args)

        return called

    @with_session
    def ship_order(session: str, order_id: int) -> str:
        raise ValueError("the carrier broke off after the booking")

    class Direct(dspy.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            tool = dspy.Tool(ship_order, name="ship_order", args={"order_id": {"type": "integer"}})
            self.tools = {"ship_order": tool}

        def forward(self, order_id: int) -> object:
            return self.tools["ship_order"](order_id=order_id)

    with Theatre(ReAct(), "sync", tmp_path) as theatre:
        guard = theatre.guard(theatre.tools())
        with guard.run() as run:
            with pytest.raises(ValueError, match="after the booking"):
                guarded(Direct(), guard)(order_id=17)
            assert run.open_holds == 1


@pytest.mark.parametrize(
    ("kind", "tools", "error"),
    [("CodeAct", True, TypeError), ("ReAct", False, ValueError)],
    ids=["CodeAct", "no tools"],
)
def test_a_module_that_cannot_be_guarded_is_refused(
    tmp_path: Path, kind: str, tools: bool, error: type[Exception]
) -> None:
    def lookup_order(order_id: int) -> int:
        return order_id

    with warnings.catch_warnings(), Theatre(ReAct(), "sync", tmp_path) as theatre:
        warnings.simplefilter("ignore")
        module = getattr(dspy, kind)("task -> answer", tools=[lookup_order] if tools else [])
        with pytest.raises(error):
            guarded(module, theatre.guard(theatre.tools()))


def test_the_code_of_the_page_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    shop = shop_of_the_page(tmp_path)
    script = Script([asked("refund_order", order_id=17, amount="19.90")], "Refunded.")
    with dspy.context(lm=Scripted(script)):
        run_page("dspy", lookup_order=shop.lookup_order, refund_order=shop.refund_order)
    assert capsys.readouterr().out == "verified\n"
