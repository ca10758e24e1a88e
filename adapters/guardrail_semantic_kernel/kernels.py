"""Semantic Kernel's kernels and agents, guarded in the functions that a model calls and in front of their chat services."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any, TypeVar, cast

from semantic_kernel import Kernel
from semantic_kernel.agents import Agent
from semantic_kernel.connectors.ai.chat_completion_client_base import ChatCompletionClientBase
from semantic_kernel.filters import FilterTypes

from guardrail.run.adapter import Runs
from guardrail.run.gates import Gated, gate
from guardrail_semantic_kernel.filters import Calls, of_function, of_model

K = TypeVar("K", bound=Kernel | Agent)


def guarded(kernel: K, runs: Runs) -> K:
    """Guard the functions that a model calls by a kernel, or by that of an agent, and give it back: it is the same object.

    `runs` is a guard, whose open run each call then belongs to, or one run. Do it last, when the kernel has its other
    filters and its services. A stop leaves the kernel or agent as `RunHalted`, and no chat service that the kernel has
    is asked again; `RunStopped` leaves `guard.run()`. Raises `TypeError` for what is neither.
    """
    calls = Calls(runs)
    found = cast("object", kernel.kernel if isinstance(kernel, Agent) else kernel)
    if not isinstance(found, Kernel):
        raise TypeError(f"what is guarded is a Kernel, or an Agent that has one, and not {type(found).__name__}")
    its = cast("Any", found)
    for filters in (its.auto_function_invocation_filters, its.function_invocation_filters):
        filters[:] = [one for one in filters if getattr(one[1], "__module__", None) != of_model.__module__]
    its.add_filter(FilterTypes.AUTO_FUNCTION_INVOCATION, of_model(calls))
    its.add_filter(FilterTypes.FUNCTION_INVOCATION, of_function(calls))
    for service in its.services.values():
        if isinstance(service, ChatCompletionClientBase):
            gate(service, _Service, calls)
    return kernel


class _Service(Gated):
    """A chat service."""

    async def get_chat_message_contents(self, *args: Any, **options: Any) -> Any:
        self.ask_guards()
        return await self.guarded_class.get_chat_message_contents(self, *args, **options)

    async def get_streaming_chat_message_contents(self, *args: Any, **options: Any) -> AsyncGenerator[Any]:
        self.ask_guards()
        async with aclosing(self.guarded_class.get_streaming_chat_message_contents(self, *args, **options)) as stream:
            async for messages in stream:
                yield messages
