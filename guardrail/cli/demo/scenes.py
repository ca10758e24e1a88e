"""How the demo looks on the terminal: a panel a run, a table of all, and where to look next."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from rich.console import Console, Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from guardrail.cli.demo.example import Story
from guardrail.cli.demo.place import Place
from guardrail.cli.histories import state_and_stop  # placeholder
