"""Content blocks, as MCP, chat interfaces and frameworks give them: texts, JSON, pictures, embedded resources."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from guardrail.judge.fields import fields_of, is_list, listed
from guardrail.judge.texts import parse

_MOST_BLOCKS: Final = 10_000
_TEXT_KEYS: Final = frozenset(listed("type text annotations meta _meta id index extras cache_control citations"))


def said(content: object) -> object:
    """What content says: None for no blocks, one answer, a list of answers, one text, or the blocks themselves.

    Content that is no list (a text) is what it is.
    """
    if not is_list(content):
        return content
    blocks = content[:_MOST_BLOCKS]
    parts = [part for block in blocks if (part := _part(block)) is not None]
    if not parts:
        return blocks or None
    return parts[0] if len(parts) == 1 else _joined(parts)


def text_of_blocks(value: Sequence[object]) -> object:
    """What a bare list says that is nothing but text blocks; None for any other list."""
    if not value or (fields_of(value[0]) or {}).get("type") != "text":
        return None
    return said(value) if all(_is_text(block) for block in value[:_MOST_BLOCKS]) else None


def _joined(parts: Sequence[object]) -> object:
    """The JSON documents among several parts, to which the texts beside them are words; without any, one text."""
    answers = [parse(part) if isinstance(part, str) else part for part in parts]
    documents: list[object] = [answer for answer in answers if isinstance(answer, dict | list)]
    if documents:
        return documents[0] if len(documents) == 1 < len(parts) else documents
    return "\n".join(part for part in parts if isinstance(part, str))


def _is_text(block: object) -> bool:
    found = fields_of(block)
    return found is not None and isinstance(found.get("text"), str) and found.keys() <= _TEXT_KEYS


def _part(block: object) -> object:
    """The text of a block, the value of a JSON block, the text of an embedded resource; None for a picture."""
    if isinstance(block, str):
        return block
    found = fields_of(block) or {}
    if isinstance(found.get("text"), str):
        return found["text"]
    if found.keys() <= {"json", "type"}:
        return found.get("json")
    return (fields_of(found.get("resource")) or {}).get("text")
