"""Drawing a measurement into a file: PNG or SVG, the same bytes for the same measurement."""

from __future__ import annotations

import io
import os
import warnings
from os import PathLike
from pathlib import PurePath
from typing import TYPE_CHECKING

from deep500.core.errors import MeasurementError, PluginError
from deep500.core.files import check_writable, write_atomically
from deep500.core.registry import Registry
from deep500.core.texts import shown

if TYPE_CHECKING:
    from deep500.measure.results.document import Measurement

__all__ = ["FORMATS", "PICTURES", "check_picture", "draw"]

#: The kinds of pictures, one file each in ``deep500/measure/pictures``: a function from a measurement, and the name of
#: one of its metrics or ``None`` for the first, to a ``matplotlib.figure.Figure``.
PICTURES = Registry("picture", "deep500.measure.pictures")

#: What a file's name may end with, and what is left out of the file so that it is the same at another time.
FORMATS: dict[str, dict[str, None]] = {".png": {"Software": None}, ".svg": {"Date": None, "Creator": None}}

#: Dots per inch of a PNG.
_RESOLUTION = 150


def check_picture(kind: str, path: str | PathLike[str]) -> None:
    """Check, before anything is measured, that :func:`draw` will be able to write the picture.

    Raises:
        UnknownNameError: There is no picture of this kind.
        MeasurementError: The file's name ends with no known format.
        FileWriteError: The file cannot be written.
    """
    PICTURES.get(kind)
    _format(path)
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
    suffix = _format(path)
    import matplotlib
    import matplotlib.style
    from matplotlib.figure import Figure

    with (
        matplotlib.style.context("default", after_reset=True),
        # Names within an SVG would be random without a salt of their own.
        matplotlib.rc_context({"svg.hashsalt": "deep500"}),
        warnings.catch_warnings(),
    ):
        warnings.filterwarnings("ignore", message="Glyph .* missing from")  # boxes stand for what the font lacks
        figure = picture(measurement, metric)
        if not isinstance(figure, Figure):
            raise PluginError(f"The picture {kind!r} returned a {type(figure).__name__}, not a matplotlib Figure.")
        buffer = io.BytesIO()
        figure.savefig(buffer, format=suffix[1:], dpi=_RESOLUTION, metadata=FORMATS[suffix])
    write_atomically(path, buffer.getvalue(), "picture")


def _format(path: str | PathLike[str]) -> str:
    suffix = PurePath(os.fspath(path)).suffix.lower()
    if suffix not in FORMATS:
        raise MeasurementError(
            f"A picture cannot be written to {shown(os.fspath(path))}: accepted are names that end with "
            f"{' or '.join(FORMATS)}."
        )
    return suffix
