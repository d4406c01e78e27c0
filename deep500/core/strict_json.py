"""JSON from elsewhere, held to what JSON is."""

from __future__ import annotations

import json
import math
from typing import Any

from deep500.core.texts import shown

__all__ = ["is_deep", "parse_json"]

#: Nothing that is written is nested deeper; what is, would fail at some place or other.
_DEEPEST = 100

#: Longest number in digits; no float is longer, and a seed is far from it.
_LONGEST_NUMBER = 400


def parse_json(text: str) -> Any:
    """Return the value of a text in JSON.

    Python's own reader also takes NaN and infinities, takes the last of two equal keys, and fails in other ways on what
    is nested without end.

    Raises:
        ValueError: It is no JSON, is nested too deeply, or holds what no computation could use; the message says what.
    """
    try:
        content = json.loads(
            text, object_pairs_hook=_object, parse_constant=_constant, parse_float=_float, parse_int=_integer
        )
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error
    if is_deep(content):
        raise ValueError("it is nested too deeply")
    return content


def is_deep(content: Any) -> bool:
    """Whether a value is nested more than a hundred lists and objects deep."""
    level = [content] if isinstance(content, (dict, list)) else []
    for _ in range(_DEEPEST):
        level = [
            item
            for parent in level
            for item in (parent.values() if isinstance(parent, dict) else parent)
            if isinstance(item, (dict, list))
        ]
        if not level:
            return False
    return True


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(pairs)
    if len(content) < len(pairs):
        names = [key for key, _ in pairs]
        raise ValueError(f"an object has the key {shown(next(key for key in names if names.count(key) > 1))} twice")
    return content


def _constant(name: str) -> Any:
    raise ValueError(f"it holds {name}, which JSON has no word for")


def _float(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise ValueError(f"it holds the number {text[:_LONGEST_NUMBER]}, which is too large to compute with")
    return number


def _integer(text: str) -> int:
    if len(text) > _LONGEST_NUMBER or math.isinf(float(text)):
        raise ValueError(f"it holds a number of {len(text)} digits, which is too large to compute with")
    return int(text)
