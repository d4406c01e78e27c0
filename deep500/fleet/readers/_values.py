"""What fields of any format become: texts that can be written, numbers that are numbers, seconds since 1970."""

from __future__ import annotations

import math
from datetime import datetime, timezone
from typing import Any

__all__ = ["UNKNOWN_WORDS", "number_of", "plain_text", "seconds_of"]

#: Words that stand for a value that is not known, as programs write them into tables.
UNKNOWN_WORDS = ("", "nan", "NaN", "NA", "N/A", "null", "NULL", "None", "\\N", "-")


def plain_text(value: object) -> str:
    """Return a value as a text that can be written in any encoding: halves of characters become escapes."""
    return str(value).encode("utf-8", "backslashreplace").decode("utf-8").strip()


def number_of(value: Any) -> float | None:
    """Return a number, also one that is written as a text; ``None`` for anything else."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    if isinstance(value, str) and len(value) > 400:
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def seconds_of(value: Any) -> float | None:
    """Return a moment in seconds since 1970: a number, or a date and time; one without a zone is taken as UTC.

    ``None`` for anything else.
    """
    number = number_of(value)
    if number is not None or not isinstance(value, str) or len(value) > 64:
        return number
    text = value.strip().replace(" UTC", "+00:00")
    if text.endswith(("Z", "z")):  # Python 3.10 does not know it
        text = f"{text[:-1]}+00:00"
    try:
        moment = datetime.fromisoformat(text)
        return (moment if moment.tzinfo else moment.replace(tzinfo=timezone.utc)).timestamp()
    except (ValueError, OverflowError):
        return None
