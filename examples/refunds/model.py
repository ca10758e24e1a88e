"""A model that plays a script, so that the example needs no key: your call of a chat API stands here."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

Message: TypeAlias = dict[str, Any]

STORIES: dict[str, dict[str, Any]] = json.loads(Path(__file__).with_name("stories.json").read_text("utf-8"))
"""What five customers ask for, and what the model makes of it."""


def scripted(story: dict[str, Any]) -> Callable[[list[Message]], Message]:
    """A model that makes the story's calls one by one, whatever it is told, and then gives the story's answer."""

    def model(messages: list[Message]) -> Message:
        said = sum(message["role"] == "assistant" for message in messages)
        if said == len(story["calls"]):
            return {"role": "assistant", "content": story["answer"]}
        name, arguments = story["calls"][said]
        call = {"name": name, "arguments": json.dumps(arguments)}
        return {"role": "assistant", "tool_calls": [{"id": f"call_{said + 1}", "type": "function", "function": call}]}

    return model
