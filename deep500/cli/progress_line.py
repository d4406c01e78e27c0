"""One moving line on the standard error, where that is a terminal."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing_extensions import Self

    from deep500.measure.sampling.progress import Progress

__all__ = ["ProgressLine", "progress_text"]

#: Width of the moving sign in front of the text, with the blank after it, and of the last column, which stays empty.
_SPINNER = 3


class ProgressLine:
    """A line that says where a command is; nothing where nobody would see it, or none is wanted.

    It is there within a ``with`` block.
    """

    def __init__(self, quiet: bool) -> None:
        """Say whether to stay quiet on a terminal as well."""
        self._quiet = quiet or sys.stderr is None or not sys.stderr.isatty()
        self._status: Any = None

    def __enter__(self) -> Self:
        """Show the line, empty at first."""
        if not self._quiet:
            from rich.console import Console

            self._status = Console(stderr=True).status("")
            self._status.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Take the line away."""
        if self._status is not None:
            self._status.stop()

    def tell(self, text: str) -> None:
        """Show a text in the place of the last one."""
        if self._status is not None:
            from rich.text import Text

            line = Text(text)
            line.truncate(max(1, self._status.console.width - _SPINNER), overflow="ellipsis")
            self._status.update(line)

    def print(self, text: str) -> None:
        """Write a text on the standard output, above the line.

        The line steps aside meanwhile: while it moves, all that is written to a terminal goes through it, to the
        standard error.
        """
        if self._status is not None:
            self._status.stop()
        print(text, flush=True)
        if self._status is not None:
            self._status.start()


def progress_text(progress: Progress) -> str:
    """Return where a measurement is, for people."""
    samples = f", {progress.samples} samples" if progress.samples else ""
    detail = f": {progress.detail}" if progress.detail else ""
    return f"launch {progress.launch} of {progress.launches}, {progress.phase}{samples}{detail}"
