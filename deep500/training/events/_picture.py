"""Pictures of a training: where they go, and what they have in common."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from os import PathLike
from typing import TYPE_CHECKING, Any, ClassVar

from deep500.core.errors import Deep500Error, TrainingError
from deep500.core.files import check_writable, write_atomically
from deep500.core.texts import escaped, message_of, shown, shown_path
from deep500.measure.rendering import picture_format, rendered
from deep500.training.statistics import TrainingStatistics
from deep500.training.trainer import Trainer
from deep500.training.training_event import RunnerEvent

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["COLOURS", "PictureEvent", "make_logarithmic", "plain", "tidy"]

_logger = logging.getLogger(__name__)

#: Colours that are told apart by people who see few of them.
COLOURS = {"training": "#0072B2", "test": "#D55E00", "grey": "#666666"}


class PictureEvent(RunnerEvent):
    """Draws something into a file: PNG or SVG, whole or not at all.

    That the file can be written is checked before the training. If it cannot be any more later, a warning says so once,
    and the training goes on.
    """

    #: What is drawn, for messages.
    what: ClassVar[str]

    reports = True
    may_stop = False

    def __init__(self, path: str | PathLike[str]) -> None:
        """Set where to.

        Args:
            path: The file; its name ends with ``.png`` or ``.svg``. An older one is replaced.

        Raises:
            TrainingError: It has another ending, or is no path.
        """
        if not isinstance(path, (str, PathLike)):
            raise TrainingError(f"The picture's path was given as {shown(path)}; accepted are paths of files.")
        self._format = picture_format(path, TrainingError)
        self.path = os.fspath(path)
        self._is_broken = False

    def before_training(self, runner: Trainer, training_stats: TrainingStatistics) -> None:
        """Check that the picture can be written.

        Raises:
            FileWriteError: It cannot.
        """
        self._is_broken = False
        check_writable(self.path, "picture")

    def _draw(self, make: Callable[[], Figure]) -> None:
        if self._is_broken:
            return
        try:
            write_atomically(self.path, rendered(make, self._format), "picture")
        except (Deep500Error, OSError) as error:
            self._is_broken = True
            _logger.warning(
                "The %s cannot be drawn into %s any more: %s. The training goes on without.",
                self.what, shown_path(self.path), message_of(error).rstrip("."),
            )  # fmt: skip


def plain(text: Any) -> str:
    """Return a text that matplotlib draws as it is: no control characters, no formulas."""
    return escaped(str(text)).replace("$", r"\$")


def tidy(axes: Axes, *, grid: str = "y") -> None:
    """Give axes a light grid, and take away the lines that say nothing."""
    axes.grid(visible=True, axis=grid, color="#dddddd", linewidth=0.8)  # type: ignore[arg-type] # "x", "y" or "both"
    axes.set_axisbelow(True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


def make_logarithmic(axes: Axes, low: float, high: float) -> None:
    """Give axes a logarithmic scale for values from one to another, with numbers that are read at once."""
    axes.set_yscale("log")
    axes.set_ylim(low / 1.2, high * 1.2)
    # Over few powers of ten, some of the values between have their numbers too.
    labelled = (2, 5) if high < 1000 * low else ()
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.yaxis.set_minor_formatter(lambda value, _: f"{value:g}" if f"{value:e}"[0] in map(str, labelled) else "")
