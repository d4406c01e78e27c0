"""Drawing a measurement into a file: PNG or SVG, the same bytes for the same measurement."""

from __future__ import annotations

from os import PathLike
from typing import TYPE_CHECKING

from deep500.core.errors import PluginError
from deep500.core.files import check_writable, write_atomically
from deep500.core.registry import Registry
from deep500.measure.rendering import picture_format, rendered

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from deep500.measure.results.document import Measurement

__all__ = ["PICTURES", "check_picture", "draw"]

#: The kinds of pictures, one file each in ``deep500/measure/pictures``: a function from a measurement, and the name of
#: one of its metrics or ``None`` for the first, to a ``matplotlib.figure.Figure``.
PICTURES = Registry("picture", "deep500.measure.pictures")


def check_picture(kind: str, path: str | PathLike[str]) -> None:
    """Check, before anything is measured, that :func:`draw` will be able to write the picture.

    Raises:
        UnknownNameError: There is no picture of this kind.
        MeasurementError: The file's name ends with no known format.
        FileWriteError: The file cannot be written.
    """
    PICTURES.get(kind)
    picture_format(path)
    check_writable(path, "picture")


def draw(measurement: Measurement, kind: str, path: str | PathLike[str], metric: str | None = None) -> None:
    """Draw a measurement into a file; it appears whole or not at all.

    The same measurement gives the same bytes, whatever the user's settings of matplotlib are; no window is opened, and
    nothing of matplotlib's state is changed.

    Args:
        measurement: What to draw.
        kind: ``"violin"`` or ``"ecdf"``, or a picture that another distribution brings.
        path: Where to; its name ends with ``.png`` or ``.svg``.
        metric: Which metric; by default the first, which is the one that decides.

    Raises:
        UnknownNameError: There is no picture of this kind.
        MeasurementError: The file's name ends with no known format, or the samples cannot be summarised.
        FileWriteError: The file cannot be written.
    """
    picture = PICTURES.get(kind)
    suffix = picture_format(path)

    def make() -> Figure:
        from matplotlib.figure import Figure

        figure = picture(measurement, metric)
        if not isinstance(figure, Figure):
            raise PluginError(f"The picture {kind!r} returned a {type(figure).__name__}, not a matplotlib Figure.")
        return figure

    write_atomically(path, rendered(make, suffix), "picture")
