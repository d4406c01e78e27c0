"""Heat maps of what differs, element by element: what DiffHeatmap and VarHeatmap have in common."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np

from deep500.core.errors import InvalidInputError
from deep500.core.files import check_writable, write_atomically
from deep500.core.texts import escaped, shown, shown_path
from deep500.measure.metrics._differences import DifferenceMetric, largest
from deep500.measure.rendering import picture_format, rendered

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.image import AxesImage
    from numpy.typing import NDArray

__all__ = ["Grid", "HeatmapMetric", "as_grid", "heatmap_figure"]

#: Largest number of rows and of columns that are drawn; of more, each cell shows the largest of a block.
LARGEST_SIDE = 512

#: Largest number of outputs that are drawn: those with the largest values.
MOST_PANELS = 12

#: A logarithmic scale ends so many times below its largest value; what is less is drawn as "less", like 0.
_LOG_RANGE = 1e16

#: Matplotlib computes with what is drawn, so less is drawn as 0 and more as this; a title has the value itself.
_LEAST_DRAWN, _MOST_DRAWN = 1e-270, 1e290

_COLUMNS = 3
_LONGEST_NAME = 40


class HeatmapMetric(DifferenceMetric):
    """A metric that draws what it measured, one panel for each output, and whose value is the largest of it."""

    #: What the colours stand for.
    colours: str

    def __init__(self, path: str | PathLike[str] | None = None, *, log_scale: bool = False) -> None:
        """Say where to draw.

        Args:
            path: File of the picture, which ends with ``.png`` or ``.svg``; ``None`` draws none. An older one is
                replaced.
            log_scale: Whether the colours have a logarithmic scale; 0 then has the colour of "less".

        Raises:
            InvalidInputError: The path has another ending, or an argument is not accepted.
        """
        if path is not None and not isinstance(path, (str, PathLike)):
            raise InvalidInputError(f"The picture's path is {shown(path)}; accepted are paths and None.")
        if path is not None:
            picture_format(path, InvalidInputError)
        if not isinstance(log_scale, bool):
            raise InvalidInputError(f"log_scale was given as {shown(log_scale)}; accepted are True and False.")
        self._path, self._log_scale = path, log_scale

    def begin(self, inputs: Any = None) -> None:
        """Check, before the work, that the picture can be written.

        Raises:
            FileWriteError: It cannot.
        """
        if self._path is not None:
            check_writable(self._path, "picture")

    def finish(self, values: dict[str, NDArray[np.float64]]) -> float:
        """Draw the values of each output where that was asked for, and return the largest.

        Raises:
            FileWriteError: The picture cannot be written.
        """
        if self._path is not None:
            content = rendered(
                lambda: heatmap_figure(values, self.colours, self._log_scale), picture_format(self._path)
            )
            write_atomically(self._path, content, "picture")
        return largest(np.array([largest(array) for array in values.values()], np.float64))

    def measure_summary(self, inputs: Any, outputs: Any, reference_outputs: Any = None) -> str:
        """Return the largest value, and where the picture is."""
        text = f"{self.measure(inputs, outputs, reference_outputs):.6g}"
        return text if self._path is None else f"{text} (picture: {shown_path(self._path)})"


@dataclass(frozen=True)
class Grid:
    """The cells of a heat map.

    Attributes:
        values: Two-dimensional.
        outside: Which cells stand for no element, at the end of the last row.
        how: How the cells came from the elements, for people; empty where each is one.
    """

    values: NDArray[np.float64]
    outside: NDArray[np.bool_]
    how: str


def as_grid(values: NDArray[np.float64]) -> Grid:
    """Lay out values that are not negative in two dimensions.

    Of more than two dimensions the last two stay, and a cell is the mean over the others. One dimension is broken into
    rows, nearly as many as columns. Of more than :data:`LARGEST_SIDE` rows or columns a cell is the largest of a block,
    so that no single element is lost; a NaN makes its cell NaN.
    """
    how = []
    if values.size == 0:
        return Grid(np.zeros((1, 1)), np.ones((1, 1), np.bool_), "no elements")
    if values.ndim > 2:
        leading = values.shape[:-2]
        with np.errstate(over="ignore", invalid="ignore"):
            values = values.mean(axis=tuple(range(len(leading))))
        how.append(f"mean over {' × '.join(map(str, leading))}")
    outside: NDArray[Any] = np.zeros(values.shape, np.bool_)
    if values.ndim < 2:
        count = values.size
        columns = math.isqrt(count - 1) + 1
        rows = math.ceil(count / columns)
        outside = np.repeat([False, True], [count, rows * columns - count]).reshape(rows, columns)
        values = np.pad(values.reshape(-1), (0, rows * columns - count)).reshape(rows, columns)
        if rows > 1:
            how.append(f"rows of {columns}")
    blocks = tuple(math.ceil(size / LARGEST_SIDE) for size in values.shape)
    if max(blocks) > 1:
        padding = [(0, -size % block) for size, block in zip(values.shape, blocks)]
        values = _blocks(np.pad(values, padding), blocks).max(axis=(1, 3))
        outside = np.asarray(_blocks(np.pad(outside, padding, constant_values=True), blocks).all(axis=(1, 3)))
        how.append(f"largest of {blocks[0]} × {blocks[1]}")
    return Grid(values, outside, ", ".join(how))


def heatmap_figure(values: dict[str, NDArray[np.float64]], colours: str, log_scale: bool) -> Figure:
    """Return the figure: a panel for each output, with a scale of its own.

    Args:
        values: For each output what is drawn of it, none of it negative.
        colours: What the colours stand for.
        log_scale: Whether their scale is logarithmic.
    """
    from matplotlib.figure import Figure

    # Stable, so that of equal outputs the first are drawn; NaN is the worst there can be.
    order = sorted(values, key=lambda name: -_badness(values[name]))[:MOST_PANELS]
    drawn = [name for name in values if name in order]
    columns = min(_COLUMNS, max(1, len(drawn)))
    rows = max(1, math.ceil(len(drawn) / columns))
    figure = Figure(figsize=(5 * columns, 4 * rows), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False).ravel()
    for name, axis in zip(drawn, axes):
        image, extend = _draw_panel(axis, name, values[name], log_scale)
        figure.colorbar(image, ax=axis, label=colours, extend=extend)
    for axis in axes[len(drawn) :]:
        axis.set_axis_off()
    if len(drawn) < len(values):
        figure.suptitle(f"{len(drawn)} of {len(values)} outputs, those with the largest values")
    return figure


def _draw_panel(axis: Axes, name: str, values: NDArray[np.float64], log_scale: bool) -> tuple[AxesImage, str]:
    """Draw one output, and return the image with the ends at which its colour bar goes on."""
    import matplotlib
    from matplotlib.ticker import MaxNLocator

    grid = as_grid(values)
    cells, norm, extend = _scale(grid.values, log_scale)
    colormap = matplotlib.colormaps["viridis"].with_extremes(bad="magenta", under="black")
    image = axis.imshow(
        cells,
        cmap=colormap,
        norm=norm,
        alpha=np.where(grid.outside, 0.0, 1.0),
        interpolation="nearest",
        aspect="auto" if max(cells.shape) > 8 * min(cells.shape) else "equal",
    )
    for side in (axis.xaxis, axis.yaxis):
        side.set_major_locator(MaxNLocator(integer=True))
    missing = int(np.count_nonzero(~np.isfinite(values)))
    notes = [f"largest {largest(values):.3g}", grid.how, f"{missing} NaN or infinite: magenta" if missing else ""]
    title = escaped(name)
    title = title if len(title) <= _LONGEST_NAME else f"{title[: _LONGEST_NAME - 3]}..."
    axis.set_title(f"{title}\n{', '.join(filter(None, notes))}", fontsize=9, parse_math=False)
    return image, extend


def _scale(values: NDArray[np.float64], log_scale: bool) -> tuple[NDArray[np.float64], Any, str]:
    """Return the cells as they are drawn, their norm, and at which ends the colour bar goes on."""
    from matplotlib.colors import LogNorm, Normalize

    finite = np.isfinite(values)
    values = np.where(finite, np.minimum(values, _MOST_DRAWN), values)
    values = np.where(values < _LEAST_DRAWN, 0.0, values)
    cells = np.ma.masked_array(values, ~finite)
    most = float(cells.max()) if cells.count() else 0.0
    if not log_scale or most == 0:
        return cells, Normalize(0.0, most or 1.0), "neither"
    positive = cells[cells > 0]
    least = max(float(positive.min()), most / _LOG_RANGE)
    least = least if least < most else most / 10
    # What is 0 has no logarithm and would look like NaN, so it is drawn as a little less than the scale shows.
    return np.ma.masked_array(np.where(values < least, least / 2, values), ~finite), LogNorm(least, most), "min"


def _badness(values: NDArray[np.float64]) -> float:
    worst = largest(values)
    return math.inf if math.isnan(worst) else worst


def _blocks(array: NDArray[Any], blocks: Sequence[int]) -> NDArray[Any]:
    rows, columns = array.shape
    return array.reshape(rows // blocks[0], blocks[0], columns // blocks[1], blocks[1])
