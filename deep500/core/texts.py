"""Texts for people: one line, nothing that a terminal would act on, never an error of their own."""

from __future__ import annotations

import os
from os import PathLike
from typing import Any

__all__ = ["counted", "encodable", "escaped", "message_of", "one_line", "shown", "shown_path"]

#: Longest message, in characters; what is longer (a value of a million characters) is cut in the middle.
_LONGEST = 2000

#: Longest value that a message shows, in characters.
_LONGEST_VALUE = 60


def escaped(text: str) -> str:
    r"""Return a text in which line breaks and control characters are escapes such as ``\n`` and ``\x1b``."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def counted(number: int, what: str, plural: str | None = None) -> str:
    """Return a number with what it counts.

    Args:
        number: How many.
        what: What, in the singular.
        plural: The plural, where that is not the singular with an s.

    Example:
        >>> counted(1, "cluster"), counted(1832, "job"), counted(2, "launch", "launches")
        ('1 cluster', '1,832 jobs', '2 launches')
    """
    return f"{number:,} {what if number == 1 else plural or what + 's'}"


def one_line(text: str) -> str:
    """Return a message as one line of bearable length."""
    line = escaped(" ".join(text.split()))
    half = _LONGEST // 2
    return line if len(line) <= _LONGEST else f"{line[:half]} [...] {line[-half:]}"


def message_of(error: BaseException) -> str:
    """Return an error's message in one line, also when asking for it fails: an error may be a recipe's own class."""
    try:
        text = str(error)
    except Exception:  # noqa: BLE001, RUF100 - a foreign __str__ may raise anything
        text = ""
    return one_line(text) or "no message"


def shown(value: Any) -> str:
    """Return a value as a message shows it: as Python writes it, or its type where that is long or fails."""
    try:
        text = repr(value)
    except Exception:  # noqa: BLE001, RUF100 - a foreign __repr__ may raise anything, and so do numbers of 5000 digits
        text = ""
    if 0 < len(text) <= _LONGEST_VALUE:
        return escaped(text)
    if isinstance(value, str):
        return f"a text of {len(value)} characters"
    name = escaped(type(value).__name__)
    return f"{'an' if name[:1].lower() in 'aeiou' else 'a'} {name}"


def encodable(text: str, encoding: str | None) -> str:
    """Return a text that a stream of this encoding can write: what the encoding lacks becomes an escape."""
    name = encoding or "utf-8"
    return text.encode(name, "backslashreplace").decode(name)


def shown_path(path: str | PathLike[str]) -> str:
    """Return a path as a message shows it: as it is, or quoted with escapes when it has odd characters."""
    text = os.fspath(path)
    return text if text.isprintable() else repr(text)
