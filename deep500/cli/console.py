"""What the command writes by itself: tables, and errors in one line each."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence

__all__ = ["print_error", "print_table"]


def print_error(message: object) -> None:
    """Write a mistake of the user as one line on the standard error."""
    print(f"Error: {' '.join(str(message).split())}", file=sys.stderr)


def print_table(rows: Iterable[Sequence[str]]) -> None:
    """Write rows with aligned columns; the last column may be of any length."""
    rows = list(rows)
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
