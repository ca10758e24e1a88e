"""The adapters' tests: each group of frameworks that agree on their dependencies has an environment of its own.

`nox` runs all of them, `nox -s frameworks-main -- -k langchain` some.
"""

from __future__ import annotations

from pathlib import Path

import nox

nox.needs_version = ">=2025.2"
nox.options.default_venv_backend = "uv"
nox.options.reuse_existing_virtualenvs = True

CONSTRAINTS = Path("adapters/constraints")
ENVIRONMENTS: dict[str, tuple[str, ...]] = {
    "adk": ("google_adk", "strands"),
    "crewai": ("crewai", "semantic_kernel"),
    "main": ("langchain",),
}
"""The frameworks by environment. google-adk and strands want an older opentelemetry, crewai and semantic-kernel MCP 1."""


@nox.session(python=None, name="frameworks")
@nox.parametrize("environment", [nox.param(name, id=name) for name in ENVIRONMENTS])
def frameworks(session: nox.Session, environment: str) -> None:
    """The contract of adapters, and the types of their code, with the real frameworks."""
    wanted = ENVIRONMENTS[environment]
    extras = ",".join(name.replace("_", "-") for name in wanted)
    session.install(
        "--constraints", str(CONSTRAINTS / f"{environment}.txt"), "--editable", f".[{extras}]", "--group", "adapters"
    )
    env = {"GUARDRAIL_FRAMEWORKS": ",".join(wanted)}
    session.run("pytest", "tests/adapters", "--numprocesses", "auto", "--dist", "worksteal", *session.posargs, env=env)
    if not session.posargs:
        packages = [f"adapters/guardrail_{name}" for name in wanted]
        session.run("mypy", *packages, *(f"tests/support/kits/{name}.py" for name in wanted))
