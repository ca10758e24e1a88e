"""Which kits there are, and which of them this environment can play."""

from __future__ import annotations

import os
import warnings
from importlib import import_module

from support.kits.stage import Kit

FRAMEWORKS: dict[str, str] = {
    "anthropic": "anthropic",
    "langchain": "langchain",
    "openai": "openai",
    "openai_agents": "agents",
    "agent_framework": "agent_framework",
    "dspy": "dspy",
    "haystack": "haystack",
    "llama_index": "llama_index.core",
    "smolagents": "smolagents",
    "claude_agent": "claude_agent_sdk",
    "fastmcp": "fastmcp",
    "mcp": "mcp",
    "pydantic_ai": "pydantic_ai",
    "crewai": "crewai",
    "google_adk": "google.adk",
    "semantic_kernel": "semantic_kernel",
    "strands": "strands",
}
"""The modules of kits, each with the package that must be there for it."""

WANTED = tuple(filter(None, os.environ.get("GUARDRAIL_FRAMEWORKS", "").split(",")))
"""The frameworks of this environment. Without the variable there are none: they come in environments of their own."""


def kits() -> list[Kit]:
    """The kits of the wanted frameworks. Raises `ImportError` where one is not there."""
    found: list[Kit] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # frameworks warn of their own doings, some while they are imported
        for name in WANTED:
            found += import_module(f"support.kits.{name}").KITS
    return found
