"""Shows guarded runs in Phoenix and MLflow: starts both, plays the refunds example into them, reads back what they have.

`make backends` installs the two and runs this; with --stay the servers stay up, for a look at their pages.
"""

from __future__ import annotations

import argparse
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
from play import PROJECT, Played, Target, play
from rich.console import Console
from rich.table import Table

from guardrail.telemetry.evaluations import MlflowEvaluations, PhoenixEvaluations

STARTING = 180.0
"""Seconds that a server may take to answer for the first time."""


@dataclass(frozen=True, slots=True)
class Seen:
    """What a backend shows of a run: its own span, its tools in order, its verdict, and how many findings.

    `verdict` and `findings` are the backend's annotations or assessments, `span` is the verdict on the run's span, and
    `failed` whether that is marked as an error.
    """

    span: str
    failed: bool
    tools: tuple[str, ...]
    verdict: str
    findings: int


def differences(played: Played, seen: Seen) -> list[str]:
    """What a backend does not show as it was."""
    flagged = played.verdict in ("silent_failure", "stopped")
    pairs = {
        "run": (played.verdict, seen.span),
        "mark": (flagged, seen.failed),
        "tools": (played.tools, seen.tools),
        "verdict": (played.verdict, seen.verdict),
        "findings": (played.findings, seen.findings),
    }
    return [f"{what}: {there!r} instead of {was!r}" for what, (was, there) in pairs.items() if was != there]


class Backend(ABC):
    """A backend that listens at `url`."""

    name: str

    def __init__(self, url: str) -> None:
        self.url = url
        self._client = httpx.Client(base_url=url, timeout=30)

    @abstractmethod
    def target(self) -> Target:
        """Where an application sends to."""

    @abstractmethod
    def seen(self, trace: str) -> Seen:
        """What the backend shows of the run in this trace."""

    def get(self, path: str, **asked: Any) -> Any:
        """The JSON at a path."""
        return self._client.get(path, params=asked).raise_for_status().json()


class Phoenix(Backend):
    """Phoenix; evaluations are annotations of spans and traces."""

    name = "Phoenix"

    def target(self) -> Target:
        return Target(f"{self.url}/v1/traces", {}, PhoenixEvaluations(self.url))

    def seen(self, trace: str) -> Seen:
        project = f"/v1/projects/{PROJECT}"
        spans = self.get(f"{project}/spans", limit=1000)["data"]
        spans = sorted((one for one in spans if one["context"]["trace_id"] == trace), key=lambda one: one["start_time"])
        ids = [one["context"]["span_id"] for one in spans]
        annotations = self.get(f"{project}/span_annotations", span_ids=ids, limit=1000)["data"]
        [verdict] = self.get(f"{project}/trace_annotations", trace_ids=[trace])["data"]
        [run] = [one for one in spans if one["span_kind"] == "AGENT"]
        return Seen(
            run["attributes"]["guardrail.verdict"],
            run["status_code"] == "ERROR",
            tuple(one["attributes"]["gen_ai.tool.name"] for one in spans if one["span_kind"] == "TOOL"),
            verdict["result"]["label"],
            sum(one["name"] == "guardrail.state" for one in annotations),
        )


class Mlflow(Backend):
    """MLflow; evaluations are assessments of traces."""

    name = "MLflow"

    def target(self) -> Target:
        made = self._client.post("/api/2.0/mlflow/experiments/create", json={"name": PROJECT}).raise_for_status()
        experiment = made.json()["experiment_id"]
        headers = {"x-mlflow-experiment-id": experiment}
        return Target(f"{self.url}/v1/traces", headers, MlflowEvaluations(self.url))

    def seen(self, trace: str) -> Seen:
        found = self.get("/api/3.0/mlflow/traces/get", trace_id=f"tr-{trace}")["trace"]
        spans = sorted(found["spans"], key=lambda one: one["start_time_unix_nano"])
        told = [_plain(one["attributes"]) for one in spans]
        [run] = [one for one in told if one.get("mlflow.spanType") == "AGENT"]
        assessments = found["trace_info"].get("assessments", [])
        [verdict] = [one for one in assessments if one["assessment_name"] == "guardrail.run"]
        return Seen(
            run["guardrail.verdict"],
            found["trace_info"]["state"] == "ERROR",
            tuple(one["gen_ai.tool.name"] for one in told if one.get("mlflow.spanType") == "TOOL"),
            verdict["feedback"]["value"],
            sum(one["assessment_name"] == "guardrail.state" for one in assessments),
        )


def _plain(attributes: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """OTLP's attributes as JSON, as plain values."""
    return {one["key"]: next(iter(one["value"].values())) for one in attributes}


@contextmanager
def phoenix(program: Path, folder: Path) -> Generator[Phoenix]:
    """Phoenix on ports of its own, with its data in `folder`."""
    port, grpc = _free_port(), _free_port()
    environ = {
        "PHOENIX_HOST": "127.0.0.1",
        "PHOENIX_PORT": str(port),
        "PHOENIX_GRPC_PORT": str(grpc),
        "PHOENIX_WORKING_DIR": str(folder),
        "PHOENIX_TELEMETRY_ENABLED": "false",
    }
    with _served([str(program), "serve"], folder, environ, f"http://127.0.0.1:{port}/healthz"):
        yield Phoenix(f"http://127.0.0.1:{port}")


@contextmanager
def mlflow(program: Path, folder: Path) -> Generator[Mlflow]:
    """MLflow on a port of its own, with its data in `folder`."""
    port = _free_port()
    place = ["--host", "127.0.0.1", "--port", str(port), "--backend-store-uri", "sqlite:///mlflow.db"]
    with _served([str(program), "server", *place], folder, {}, f"http://127.0.0.1:{port}/health"):
        yield Mlflow(f"http://127.0.0.1:{port}")


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@contextmanager
def _served(command: list[str], folder: Path, environ: Mapping[str, str], health: str) -> Generator[None]:
    """A server that answers at `health`, its output in `folder`; it is stopped with all its children."""
    folder.mkdir()
    with (folder / "server.log").open("wb") as log:
        server = subprocess.Popen(
            command,
            cwd=folder,
            env={**os.environ, **environ},
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            _wait_for(health, server, folder / "server.log")
            yield
        finally:
            os.killpg(server.pid, signal.SIGTERM)
            try:
                server.wait(10)
            except subprocess.TimeoutExpired:
                os.killpg(server.pid, signal.SIGKILL)
                server.wait()


def _wait_for(health: str, server: subprocess.Popen[bytes], log: Path) -> None:
    end = time.monotonic() + STARTING
    while server.poll() is None and time.monotonic() < end:
        try:
            if httpx.get(health, timeout=5).is_success:
                return
        except httpx.TransportError:
            time.sleep(0.5)
    tail = "\n".join(log.read_text("utf-8", "replace").splitlines()[-20:])
    raise SystemExit(f"the server does not answer at {health}; its last lines:\n{tail}")


def shown(played: Sequence[Played], backends: Sequence[Backend]) -> tuple[Table, int]:
    """A table of what each backend shows of each run, and how many of them it does not show as they were."""
    table = Table("backend", "story", "tools", "verdict", "findings", "as it was", title="Read back")
    wrong = 0
    for backend in backends:
        for one in played:
            seen = backend.seen(one.trace)
            differs = differences(one, seen)
            wrong += bool(differs)
            said = "; ".join(differs) or "yes"
            table.add_row(backend.name, one.story, "\n".join(seen.tools), seen.verdict, str(seen.findings), said)
    return table, wrong


def main(arguments: Sequence[str] | None = None) -> int:
    """Show it; 0 if every backend shows every run as it was."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--phoenix", type=Path, metavar="PROGRAM", help="the program phoenix; left out if not given")
    parser.add_argument("--mlflow", type=Path, metavar="PROGRAM", help="the program mlflow; left out if not given")
    parser.add_argument("--stay", action="store_true", help="leave the servers up until they are interrupted")
    asked = parser.parse_args(arguments)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        backends: list[Backend] = []
        if asked.phoenix:
            backends.append(stack.enter_context(phoenix(asked.phoenix.absolute(), folder / "phoenix")))
        if asked.mlflow:
            backends.append(stack.enter_context(mlflow(asked.mlflow.absolute(), folder / "mlflow")))
        targets = [backend.target() for backend in backends]
        played = play(folder, targets)
        table, wrong = shown(played, backends)
        dropped = sum(target.evaluations.dropped for target in targets)
        Console().print(table)
        for backend in backends:
            print(f"{backend.name}: {backend.url}")
        print(f"{len(played)} runs, {wrong} not shown as they were, {dropped} evaluations dropped")
        if asked.stay:
            print("The servers stay up until you press Ctrl-C.", flush=True)
            signal.signal(signal.SIGTERM, signal.default_int_handler)
            with suppress(KeyboardInterrupt):
                signal.pause()
        return 1 if wrong or dropped or not backends else 0


if __name__ == "__main__":
    sys.exit(main())
