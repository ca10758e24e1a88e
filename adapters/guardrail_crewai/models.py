"""CrewAI's models, which are asked only while no run is over: by a guardrail of a task, or what makes a form of an answer, too."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, cast

from crewai.hooks import HookAborted
from crewai.llms.base_llm import BaseLLM

from guardrail.errors import FINAL, RunHalted
from guardrail.run.gates import Gated, gate
from guardrail_crewai.calls import Calls
from guardrail_crewai.twins import AT_WORK, Outside, Twin


def gate_model(model: object, calls: Calls) -> None:
    """Let a model be asked only while the run of these calls is not over; what is no model stays as it is."""
    if isinstance(model, BaseLLM):
        gate(model, _Model, calls)


@contextmanager
def leaving() -> Generator[None]:
    """What leaves a model or an agent is the framework's own signal: it waits for ever for a thread that another leaves."""
    token = AT_WORK.set(True)
    try:
        yield
    except RunHalted as halted:
        raise HookAborted(FINAL, source="guardrail") from halted
    except Outside as outside:
        raise outside.error from None
    finally:
        AT_WORK.reset(token)


class _Model(Gated):
    def call(self, *args: Any, **options: Any) -> Any:
        self.ask_guards()
        return _noted(self.guarded_class.call(self, *args, **options), options.get("from_agent"))

    async def acall(self, *args: Any, **options: Any) -> Any:
        self.ask_guards()
        return _noted(await self.guarded_class.acall(self, *args, **options), options.get("from_agent"))

    def ask_guards(self) -> None:
        with leaving():
            super().ask_guards()


def _noted(answer: Any, agent: object) -> Any:
    """The answer of the model to an agent, which is told what calls it asks for."""
    if isinstance(answer, list) and isinstance(agent, Twin):
        agent.guarding.note(cast("list[object]", answer))
    return cast("Any", answer)
