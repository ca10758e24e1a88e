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
    "lowest": ("anthropic", "langchain", "mcp", "openai"),
    "lowest_agents": ("fastmcp", "openai_agents", "pydantic_ai"),
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
"""The frameworks by environment; google-adk and strands want an older opentelemetry, crewai and semantic-kernel
an older mcp."""

RESOLUTIONS = {"lowest": "lowest-direct", "lowest_agents": "lowest-direct"}
"""Where not the newest versions are wanted, but the oldest that the extras allow, of what they name themselves."""
BESIDE = {
    "lowest": ("langgraph-prebuilt==1.0.8",),
    "lowest_agents": ("openai==2.26.0",),
    "main": ("deepagents",),
}
"""What else is there: what is built upon a framework; or, as later ones claim to fit the oldest versions and do not."""


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
    beside = BESIDE.get(environment, ())
    session.install("--constraints", constraints, "--editable", f".[{extras}]", *beside, "--group", "adapters")
    RESULTS.mkdir(parents=True, exist_ok=True)
    results = {} if session.posargs else {"GUARDRAIL_ADAPTER_RESULTS": str(RESULTS / f"{environment}.json")}
    env = {"GUARDRAIL_FRAMEWORKS": ",".join(wanted), **results}
    session.run("pytest", "tests/adapters", "--numprocesses", "auto", "--dist", "worksteal", *session.posargs, env=env)
    if not session.posargs and environment not in RESOLUTIONS:  # types are checked against what is newest
        packages = [f"adapters/guardrail_{name}" for name in wanted]
        session.run("mypy", *packages, *(f"tests/support/kits/{name}.py" for name in wanted))


@nox.session(venv_backend="none")
def constraints(session: nox.Session) -> None:
    """The exact versions of each environment, as they are newest now."""
    for environment, wanted in ENVIRONMENTS.items():
        extras = [part for name in wanted for part in ("--extra", extra(name))]
        file = str(CONSTRAINTS / f"{environment}.txt")
        beside = Path(session.create_tmp()) / "beside.txt"
        beside.write_text("\n".join(BESIDE.get(environment, ())), "utf-8")
        options = ("--python-version", "3.11", "--no-header", "--no-annotate", "--upgrade", "--quiet")
        which = ("--resolution", RESOLUTIONS.get(environment, "highest"), "--group", "adapters", "-o", file)
        session.run("uv", "pip", "compile", "pyproject.toml", str(beside), *extras, *options, *which)
