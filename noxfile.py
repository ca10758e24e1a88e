"""The adapters' tests: frameworks that agree on what they need share an environment, the others have one of their own.

`nox` runs them all, `nox -s "frameworks(main)" -- -k langchain` some. `nox -s constraints` settles anew which versions
each environment has.
"""

from __future__ import annotations

from pathlib import Path

import nox

nox.needs_version = ">=2025.2"
nox.options.default_venv_backend = "uv"
nox.options.reuse_existing_virtualenvs = True
nox.options.sessions = ["frameworks"]

CONSTRAINTS = Path("adapters/constraints")
RESULTS = Path(".nox/results")
ENVIRONMENTS: dict[str, tuple[str, ...]] = {
    "adk": ("google_adk", "strands"),
    "crewai": ("crewai", "semantic_kernel"),
    "main": (
        "agent_framework",
        "anthropic",
        "claude_agent",
        "dspy",
        "fastmcp",
        "haystack",
        "langchain",
        "llama_index",
        "mcp",
        "openai",
        "openai_agents",
        "pydantic_ai",
        "smolagents",
    ),
}
"""The frameworks by environment; google-adk and strands want an older opentelemetry, crewai and
semantic-kernel an older mcp."""


def extra(framework: str) -> str:
    """The extra that brings a framework."""
    return framework.replace("_", "-")


@nox.session
@nox.parametrize("environment", [nox.param(name, id=name) for name in ENVIRONMENTS])
def frameworks(session: nox.Session, environment: str) -> None:
    """The contract of adapters with the real frameworks, and the types of their code."""
    wanted = ENVIRONMENTS[environment]
    extras = ",".join(map(extra, wanted))
    constraints = str(CONSTRAINTS / f"{environment}.txt")
    session.install("--constraints", constraints, "--editable", f".[{extras}]", "--group", "adapters")
    RESULTS.mkdir(parents=True, exist_ok=True)
    results = {} if session.posargs else {"GUARDRAIL_ADAPTER_RESULTS": str(RESULTS / f"{environment}.json")}
    env = {"GUARDRAIL_FRAMEWORKS": ",".join(wanted), **results}
    session.run("pytest", "tests/adapters", "--numprocesses", "auto", "--dist", "worksteal", *session.posargs, env=env)
    if not session.posargs:
        packages = [f"adapters/guardrail_{name}" for name in wanted]
        session.run("mypy", *packages, *(f"tests/support/kits/{name}.py" for name in wanted))


@nox.session(venv_backend="none")
def constraints(session: nox.Session) -> None:
    """The exact versions of each environment, as they are newest now."""
    for environment, wanted in ENVIRONMENTS.items():
        extras = [part for name in wanted for part in ("--extra", extra(name))]
        file = str(CONSTRAINTS / f"{environment}.txt")
        options = ("--python-version", "3.11", "--no-header", "--no-annotate", "--upgrade", "--quiet")
        session.run("uv", "pip", "compile", "pyproject.toml", *extras, "--group", "adapters", *options, "-o", file)
