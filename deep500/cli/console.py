"""What the command writes by itself: tables, and errors in one line each."""

from __future__ import annotations

import contextlib
import sys
import traceback
from collections.abc import Iterable, Sequence

from deep500.core.texts import escaped, message_of, one_line

__all__ = ["OWN_FAULT", "print_error", "print_table", "print_traceback"]


#: What is said after the traceback of an error that should not be.
OWN_FAULT = "this is a fault of Deep500, not of what you typed; please report it with the lines above."


def print_error(message: object) -> None:
    """Write a mistake of the user as one line on the standard error; where that is not possible, write nothing."""
    text = message_of(message) if isinstance(message, BaseException) else one_line(str(message))
    with contextlib.suppress(OSError, ValueError):  # a full disk, a stream that is closed: the exit code has to do
        print(f"Error: {text}", file=sys.stderr, flush=True)


def print_traceback() -> None:
    """Write the traceback of the exception being handled on the standard error, where that is possible."""
    with contextlib.suppress(OSError, ValueError):
        traceback.print_exc()


def print_table(rows: Iterable[Sequence[str]]) -> None:
    """Write rows with aligned columns; the last column may be of any length.

    Control characters, which names that were read may hold, are shown as escapes.
    """
    rows = [[escaped(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
