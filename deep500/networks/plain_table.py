"""Tables as plain text, whatever the terminal."""

from __future__ import annotations

import io
from collections.abc import Collection, Iterable, Sequence

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

__all__ = ["plain_table"]

#: Wide enough for every table, so that its form does not depend on the terminal.
_WIDTH = 100_000


def plain_table(titles: Sequence[str], rows: Iterable[Sequence[str]], right: Collection[str] = ()) -> list[str]:
    """Return the lines of a table, without blanks at their ends.

    Args:
        titles: The columns' titles.
        rows: The cells. Blanks in front of the first stay, as its indentation.
        right: Titles of the columns that are aligned at the right.
    """
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for title in titles:
        table.add_column(title, justify="right" if title in right else "left", no_wrap=True)
    for cells in rows:
        indent = cells[0][: len(cells[0]) - len(cells[0].lstrip(" "))]
        texts = [" ".join(cell.split()) for cell in cells]
        table.add_row(*(Text(text) for text in (indent + texts[0], *texts[1:])))  # Text: names are no markup
    buffer = io.StringIO()
    console = Console(file=buffer, width=_WIDTH, color_system=None, force_terminal=False, legacy_windows=False)
    console.print(table)
    return [line.rstrip() for line in buffer.getvalue().rstrip().split("\n")]
