"""The example that the demo plays: `examples/refunds`, which the wheel carries along."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any, Final

_ROOTS: Final = Path(__file__).parents[2:4]
"""Where `examples` lies: in the installed package, or at the top of a checkout."""

CODE: Final = "examples/refunds"
FOLDER: Final = next(root / CODE for root in _ROOTS if (root / CODE).is_dir())
CONFIGURATION: Final = FOLDER / "guardrail.yaml"
TASK: Final = "refund_order"


@dataclass(frozen=True, slots=True)
class Story:
    """What a customer asks for, and what the scripted model makes of it; `script` is as the example has it."""

    id: str
    title: str
    request: str
    answer: str
    inputs: Mapping[str, Any]
    script: Mapping[str, Any]


def stories() -> tuple[Story, ...]:
    """The stories in the order in which they are told."""
    told: Mapping[str, Mapping[str, Any]] = json.loads((FOLDER / "stories.json").read_text("utf-8"))
    return tuple(
        Story(name, script["title"], script["request"], script["answer"], script["inputs"], script)
        for name, script in told.items()
    )


@cache
def module(name: str) -> Any:
    """A module of the example. They lie outside of the package, as code to copy, and are loaded from their files."""
    spec = spec_from_file_location(f"guardrail_example_{name}", FOLDER / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    loaded = module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded
