"""Random windows of random size, all resampled to one size."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deep500.core.errors import DatasetError
from deep500.core.texts import shown
from deep500.datasets.augmentation import RandomAugmentation, checked_number, checked_size
from deep500.datasets.augmentations._resampling import check_interpolation, resampled, resampling_matrices
from deep500.datasets.draws import uniform

__all__ = ["RandomResizedCrop"]

#: How many windows are drawn for an image; the first that lies in it is taken.
_TRIES = 10


class RandomResizedCrop(RandomAugmentation):
    """Cuts a window of random area and shape out of each image, and resamples it to a fixed size.

    The window's area is a fraction of the image's, drawn evenly from ``scale``; its width over its height is drawn from
    ``ratio``, evenly in the logarithm; both sides are rounded; each place is as likely. Ten windows are drawn; the
    first that is not larger than the image is taken, and where none is, the largest one in the middle whose shape is in
    ``ratio``. Resampling is that of :class:`Resize`; pixels outside of the window have no part in it.

    Source: C. Szegedy et al., "Going deeper with convolutions", CVPR 2015, section 6; ten tries and the last resort as
    in torchvision.
    """

    def __init__(
        self,
        size: int | tuple[int, int],
        scale: tuple[float, float] = (0.08, 1.0),
        ratio: tuple[float, float] = (3 / 4, 4 / 3),
        interpolation: str = "bilinear",
        antialias: bool = True,
    ) -> None:
        """Set sizes.

        Args:
            size: Height and width of the result; one number for both.
            scale: Least and largest fraction of the image's area.
            ratio: Least and largest width over height.
            interpolation: ``"bilinear"`` or ``"nearest"``.
            antialias: Whether windows that become smaller are smoothed.

        Raises:
            DatasetError: An argument is not accepted.
        """
        self.size = checked_size("size", size)
        self.scale = _interval("scale", scale, 1.0)
        self.ratio = _interval("ratio", ratio, math.inf)
        check_interpolation(interpolation, antialias)
        self.interpolation, self.antialias = interpolation, antialias

    def apply(self, images: NDArray[Any]) -> NDArray[Any]:
        """Return the windows' contents, ``[N, C, *size]``."""
        top, left, height, width = self.windows(len(images), images.shape[2], images.shape[3])
        how = (self.interpolation, self.antialias)
        rows = resampling_matrices(top, height, images.shape[2], self.size[0], *how)
        columns = resampling_matrices(left, width, images.shape[3], self.size[1], *how)
        return resampled(images, rows, columns)

    def windows(self, count: int, height: int, width: int) -> tuple[NDArray[np.int64], ...]:
        """Draw windows: first row, first column, height and width, ``[count]`` each."""
        low, high = self.scale
        area = height * width * (low + (high - low) * uniform(self.stream, count, _TRIES))
        low, high = map(math.log, self.ratio)
        shape = np.exp(low + (high - low) * uniform(self.stream, count, _TRIES))
        places = uniform(self.stream, 2, count)
        widths = np.rint(np.sqrt(area * shape)).astype(np.int64)
        heights = np.rint(np.sqrt(area / shape)).astype(np.int64)
        fits = (widths >= 1) & (widths <= width) & (heights >= 1) & (heights <= height)
        first = fits.argmax(axis=1, keepdims=True)
        fitting = fits.any(axis=1)
        last_height, last_width = self._last_resort(height, width)
        heights = np.where(fitting, np.take_along_axis(heights, first, 1)[:, 0], last_height)
        widths = np.where(fitting, np.take_along_axis(widths, first, 1)[:, 0], last_width)
        top = np.where(fitting, (places[0] * (height - heights + 1)).astype(np.int64), (height - heights) // 2)
        left = np.where(fitting, (places[1] * (width - widths + 1)).astype(np.int64), (width - widths) // 2)
        return top, left, heights, widths

    def _last_resort(self, height: int, width: int) -> tuple[int, int]:
        if width / height < self.ratio[0]:
            return min(height, max(1, round(width / self.ratio[0]))), width
        if width / height > self.ratio[1]:
            return height, min(width, max(1, round(height * self.ratio[1])))
        return height, width


def _interval(name: str, value: Any, most: float) -> tuple[float, float]:
    if not isinstance(value, (tuple, list)) or len(value) != 2:
        raise DatasetError(f"{name} was given as {shown(value)}; accepted is a pair (least, largest).")
    low, high = (checked_number(name, end, 0.0, most) for end in value)
    if not 0 < low <= high:
        raise DatasetError(f"{name} was given as {shown(value)}; accepted is a pair above 0, the smaller number first.")
    return low, high
