"""The names under which a host speaks with the guard in MCP's `_meta`, which no model can write."""

from __future__ import annotations

from typing import Final

PREFIX: Final = "guardrail/"
"""With it begins what is the guard's, and is kept from servers."""

RUN_ID: Final = "guardrail/run_id"
"""Said by a host: the run that a call belongs to."""
TASK: Final = "guardrail/task"
"""Said by a host: the run's task."""
INPUTS: Final = "guardrail/inputs"
"""Said by a host: the inputs of the task, an object."""
END: Final = "guardrail/end"
"""Said by a host: true with the last message of a run."""
CALL_ID: Final = "guardrail/call_id"
"""Said by a host: the id that the model gave a call."""

STOPPED: Final = "guardrail/stopped"
"""Said to a host: true where the run is over."""
REFUSED: Final = "guardrail/refused"
"""Said to a host: why a call was not carried out."""
VERDICT: Final = "guardrail/verdict"
"""Said to a host: what the run that ended here came to."""
