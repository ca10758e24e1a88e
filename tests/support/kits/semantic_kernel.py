"""Semantic Kernel: a `ChatCompletionAgent`, and a kernel whose prompt is asked."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable
from typing import Any

from openai import AsyncOpenAI
from semantic_kernel import Kernel
from semantic_kernel.agents import ChatCompletionAgent
from semantic_kernel.connectors.ai.function_choice_behavior import FunctionChoiceBehavior
from semantic_kernel.connectors.ai.open_ai import OpenAIChatCompletion, OpenAIChatPromptExecutionSettings
from semantic_kernel.functions import KernelArguments, kernel_function

from guardrail_semantic_kernel import guarded
from support.kits.stage import Awaited, Mode, Scene, Script
from support.kits.wire import endpoint


class SemanticKernel(Awaited):
    """An agent."""

    name = "semantic_kernel agent"

    async def aplay(self, scene: Scene, mode: Mode) -> str:
        agent = self.agent(scene, mode)
        if mode != "async stream":
            return str(await agent.get_response("Do it."))
        return "".join([str(part) async for part in agent.invoke_stream("Do it.")])

    def agent(self, scene: Scene, mode: Mode) -> ChatCompletionAgent:
        agent = ChatCompletionAgent(name="clerk", kernel=self.kernel(scene, mode))
        return agent if scene.runs is None else guarded(agent, scene.runs)

    def kernel(self, scene: Scene, mode: Mode) -> Kernel:
        """A kernel with the shop's functions; the other agent, if there is one, is a function too."""
        kernel = Kernel()
        kernel.add_service(self.service(scene.script))
        functions = {function.__name__: tool(function) for function in scene.functions(mode)}
        if scene.inner is not None:
            inner = Scene(scene.tools, scene.inner, scene.runs, scene.folder)
            functions["ask_clerk"] = clerk(self.agent(inner, mode))
        kernel.add_plugin(functions, plugin_name="shop")
        return kernel

    def service(self, script: Script) -> OpenAIChatCompletion:
        client = AsyncOpenAI(base_url=f"{endpoint(script)}/v1", api_key="none")
        return OpenAIChatCompletion(ai_model_id="scripted", async_client=client)


class Prompted(SemanticKernel):
    """A kernel whose prompt is asked."""

    name = "semantic_kernel prompt"

    async def aplay(self, scene: Scene, mode: Mode) -> str:
        kernel = self.kernel(scene, mode)
        if scene.runs is not None:
            guarded(kernel, scene.runs)
        settings = OpenAIChatPromptExecutionSettings(function_choice_behavior=FunctionChoiceBehavior.Auto())
        arguments = KernelArguments(settings=settings)
        if mode != "async stream":
            return str(await kernel.invoke_prompt("Do it.", arguments=arguments))
        stream = kernel.invoke_prompt_stream("Do it.", arguments=arguments)
        return "".join([str(part) async for parts in stream for part in parts])


def tool(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function as a kernel takes it."""
    if asyncio.iscoroutinefunction(function):
        return kernel_function(function)

    @functools.wraps(function)
    def plain(**args: Any) -> Any:
        return function(**args)

    return kernel_function(plain)


def clerk(agent: ChatCompletionAgent) -> Callable[..., Any]:
    @kernel_function
    async def ask_clerk(question: str) -> str:
        """Ask the clerk."""
        return str(await agent.get_response(question))

    return ask_clerk


KITS = [SemanticKernel(), Prompted()]
