"""The base of every declaration: frozen, and closed to unknown keys."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, Strict


class Declaration(BaseModel):
    """A declaration is frozen, takes no unknown keys and does not convert text to numbers silently.

    A field whose key in a file is no Python name (`from`, `as`, `in`, `not`, `is`) goes by its Python
    name in Python; a file takes the key only.
    """

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        validate_by_name=True,
        validate_by_alias=True,
        arbitrary_types_allowed=True,
        protected_namespaces=(),
    )


Flag: TypeAlias = Annotated[bool, Strict()]
"""True or false; "yes", 1 and the like are refused."""

Count: TypeAlias = Annotated[int, Strict(), Field(ge=0)]
"""A whole number from 0; true, "3" and 3.0 are refused."""

Positive: TypeAlias = Annotated[int, Strict(), Field(ge=1)]
"""A whole number from 1."""
