"""Resampling of images as two products with matrices, one for each direction."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from deep500.core.errors import DatasetError
from deep500.core.texts import shown
from deep500.datasets.augmentation import computing_dtype, rounded_to

__all__ = ["INTERPOLATIONS", "check_interpolation", "resampled", "resampling_matrices"]

INTERPOLATIONS = ("bilinear", "nearest")


def check_interpolation(interpolation: Any, antialias: Any) -> None:
    """Refuse what is no interpolation.

    Raises:
        DatasetError: It is none.
    """
    if interpolation not in INTERPOLATIONS:
        raise DatasetError(
            f"interpolation was given as {shown(interpolation)}; accepted are {', '.join(INTERPOLATIONS)}."
        )
    if not isinstance(antialias, bool):
        raise DatasetError(f"antialias was given as {shown(antialias)}; accepted are True and False.")


def resampling_matrices(
    starts: NDArray[Any], lengths: NDArray[Any], source: int, target: int, interpolation: str, antialias: bool
) -> NDArray[np.float64]:
    r"""Return the weights of the source's pixels in each pixel of the target, ``[N, target, source]``.

    With the scale :math:`s = l / t`, pixel :math:`i` of the target has its centre at :math:`c = (i + 1/2) s` of the
    window (pixels' centres lie at halves). Bilinear weights are
    :math:`\max(0, 1 - |j + 1/2 - c| / f)` of the pixels :math:`j` in the window, divided by their sum, with
    :math:`f = \max(s, 1)` where there is an antialiasing filter, else 1. The nearest pixel is
    :math:`\lfloor c \rfloor`.

    Args:
        starts: First pixel of each window, ``[N]``.
        lengths: Pixels of each window, ``[N]``.
        source: Pixels of the source.
        target: Pixels of the target.
        interpolation: ``"bilinear"`` or ``"nearest"``.
        antialias: Whether bilinear weights reach over as many pixels as become one.
    """
    scale = (lengths / target)[:, None, None]
    centre = (np.arange(target) + 0.5)[:, None] * scale  # [N, target, 1]
    pixel = np.arange(source) - np.asarray(starts)[:, None, None]  # [N, 1, source], counted in the window
    if interpolation == "nearest":
        nearest: NDArray[np.float64] = (pixel == np.floor(centre)).astype(np.float64)
        return nearest
    width = np.maximum(scale, 1.0) if antialias else np.ones_like(scale)
    weights = np.maximum(0.0, 1.0 - np.abs(pixel + 0.5 - centre) / width)
    weights *= (pixel >= 0) & (pixel < np.asarray(lengths)[:, None, None])
    normalised: NDArray[np.float64] = weights / weights.sum(axis=2, keepdims=True)
    return normalised


def resampled(images: NDArray[Any], rows: NDArray[np.float64], columns: NDArray[np.float64]) -> NDArray[Any]:
    """Return ``rows @ image @ columns.T`` of each channel, in the images' dtype.

    Args:
        images: ``[N, C, H, W]``.
        rows: ``[N or 1, target height, H]``.
        columns: ``[N or 1, target width, W]``.
    """
    dtype = computing_dtype(images.dtype)
    vertical = rows.astype(dtype)[:, None]
    horizontal = columns.astype(dtype)[:, None].swapaxes(2, 3)
    return rounded_to(images.dtype, vertical @ images.astype(dtype, copy=False) @ horizontal)
