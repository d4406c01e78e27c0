"""Squares cut out of images."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from deep500.datasets.augmentation import RandomAugmentation, checked_number, checked_size
from deep500.datasets.draws import whole_numbers

__all__ = ["Cutout"]


class Cutout(RandomAugmentation):
    r"""Sets a rectangle of each image to a constant.

    Its centre is any pixel, each as likely, so that part of it may lie outside of the image. With the size
    :math:`s`, it covers the pixels from :math:`c - \lfloor s / 2 \rfloor` to
    :math:`c - \lfloor s / 2 \rfloor + s - 1` around the centre :math:`c`.

    Source: T. DeVries, G. W. Taylor, "Improved regularization of convolutional neural networks with cutout",
    arXiv:1708.04552, 2017.
    """

    def __init__(self, size: int | tuple[int, int], value: float = 0) -> None:
        """Set the size.

        Args:
            size: Height and width of the rectangle; one number for a square.
            value: The constant, in the images' own scale: after Normalise, 0 is the mean.

        Raises:
            DatasetError: An argument is not accepted.
        """
        self.size = checked_size("size", size)
        self.value = checked_number("value", value)

    def apply(self, images: NDArray[Any]) -> NDArray[Any]:
        """Return the images with their rectangles; rows of the centres are drawn first, then columns."""
        count, _, height, width = images.shape
        rows = _covered(whole_numbers(self.stream, height, count), height, self.size[0])
        columns = _covered(whole_numbers(self.stream, width, count), width, self.size[1])
        cut = np.array(images)
        np.copyto(cut, np.asarray(self.value).astype(cut.dtype), where=(rows[:, :, None] & columns[:, None])[:, None])
        return cut


def _covered(centre: NDArray[np.int64], pixels: int, size: int) -> NDArray[np.bool_]:
    """Return which pixels of a line are covered, ``[N, pixels]``."""
    first = centre[:, None] - size // 2
    place = np.arange(pixels)
    covered: NDArray[np.bool_] = (place >= first) & (place < first + size)
    return covered
