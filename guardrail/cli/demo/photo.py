"""A picture of the demo's terminal for the documentation: `guardrail demo --svg docs/demo.svg`."""

from __future__ import annotations

import re
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Final

from rich.console import Console

from guardrail.cli.demo.scenes import WIDEST, show

if TYPE_CHECKING:
    from collections.abc import Sequence

    from guardrail.cli.demo.place import Place
    from guardrail.cli.demo.playing import Played

_FONT: Final = re.compile(r"\s*@font-face \{.*?\}", re.DOTALL)
"""What a picture would fetch from another host."""


def photograph(file: Path, place: Place, played: Sequence[Played]) -> None:
    """Write what a colour terminal of 100 columns shows as SVG."""
    console = Console(
        record=True, file=StringIO(), width=WIDEST, force_terminal=True, no_color=False, color_system="truecolor"
    )
    show(console, place, played)
    file.write_text(_FONT.sub("", console.export_svg(title="guardrail demo", unique_id="demo")), "utf-8")
