"""Figures as files: PNG or SVG, the same bytes for the same figure, whatever the user's settings are."""

from __future__ import annotations

import io
import os
import warnings
from collections.abc import Callable
from os import PathLike
from pathlib import PurePath
from typing import TYPE_CHECKING

from deep500.core.errors import Deep500Error, MeasurementError
from deep500.core.texts import shown

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["FORMATS", "picture_format", "rendered"]

#: What a file's name may end with, and what is left out of the file so that it is the same at another time.
FORMATS: dict[str, dict[str, None]] = {".png": {"Software": None}, ".svg": {"Date": None, "Creator": None}}

#: Dots per inch of a PNG.
_RESOLUTION = 150


def picture_format(path: str | PathLike[str], error: type[Deep500Error] = MeasurementError) -> str:
    """Return what a picture's name ends with, a key of :data:`FORMATS`.

    Args:
        path: The name.
        error: What is raised when it is none.

    Raises:
        Deep500Error: Of the kind ``error``: the name ends with no known format.
    """
    suffix = PurePath(os.fspath(path)).suffix.lower()
    if suffix not in FORMATS:
        raise error(
            f"A picture cannot be written to {shown(os.fspath(path))}: accepted are names that end with "
            f"{' or '.join(FORMATS)}."
        )
    return suffix


def rendered(make: Callable[[], Figure], suffix: str) -> bytes:
    """Return a figure as the bytes of a file; no window is opened, and nothing of matplotlib's state is changed.

    Args:
        make: Makes the figure.
        suffix: A key of :data:`FORMATS`.
    """
    import matplotlib
    import matplotlib.style

    buffer = io.BytesIO()
    with (
        matplotlib.style.context("default", after_reset=True),
        # Names within an SVG would be random without a salt of their own.
        matplotlib.rc_context({"svg.hashsalt": "deep500"}),
        warnings.catch_warnings(),
    ):
        warnings.filterwarnings("ignore", message="Glyph .* missing from")  # boxes stand for what the font lacks
        make().savefig(buffer, format=suffix[1:], dpi=_RESOLUTION, metadata=FORMATS[suffix])
    return buffer.getvalue()
