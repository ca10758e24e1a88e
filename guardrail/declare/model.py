"""The base of every declaration: frozen, and closed to unknown keys."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Declaration(BaseModel):
    """A declaration is frozen, takes no unknown keys and does not convert text to numbers silently."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", strict=False, arbitrary_types_allowed=True, protected_namespaces=()
    )
