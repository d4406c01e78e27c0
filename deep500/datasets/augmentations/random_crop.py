"""Random crops of padded images."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from deep500.core.errors import DatasetError
from deep500.core.texts import shown
from deep500.datasets.augmentation import RandomAugmentation, checked_number, checked_size
from deep500.datasets.draws import whole_numbers

__all__ = ["RandomCrop"]

_MODES = ("constant", "edge", "reflect")


class RandomCrop(RandomAugmentation):
    """Cuts a window of a fixed size out of each padded image; each place is as likely.

    ``RandomCrop(32, padding=4)`` on 32 x 32 images is the usual augmentation of CIFAR-10.

    Source: K. He et al., "Deep residual learning for image recognition", CVPR 2016, section 4.2.
    """

    def __init__(
        self, size: int | tuple[int, int], padding: int | tuple[int, int] = 0, mode: str = "constant", value: float = 0
    ) -> None:
        """Set sizes.

        Args:
            size: Height and width of the window; one number for both.
            padding: Pixels added above and below, and on the left and the right.
            mode: What they are: ``"constant"``, ``"edge"`` (the nearest pixel) or ``"reflect"`` (mirrored without
                repeating the edge).
            value: The constant, in the images' own scale: before Normalise, 0 is black.

        Raises:
            DatasetError: An argument is not accepted.
        """
        self.size = checked_size("size", size)
        self.padding = checked_size("padding", padding, least=0)
        if mode not in _MODES:
            raise DatasetError(f"mode was given as {shown(mode)}; accepted are {', '.join(_MODES)}.")
        self.mode = mode
        self.value = checked_number("value", value)

    def apply(self, images: NDArray[Any]) -> NDArray[Any]:
        """Return windows, ``[N, C, *size]``; per image, its row is drawn, then for all images the columns.

        Raises:
            DatasetError: The padded images are smaller than the window.
        """
        padded = self._padded(images)
        height, width = self.size
        rows, columns = padded.shape[2] - height + 1, padded.shape[3] - width + 1
        if rows < 1 or columns < 1:
            raise DatasetError(
                f"Images of {images.shape[2]} x {images.shape[3]}, padded to {padded.shape[2]} x {padded.shape[3]}, "
                f"have no window of {height} x {width}. Use a smaller size, or more padding."
            )
        count = len(images)
        top = whole_numbers(self.stream, rows, count)
        left = whole_numbers(self.stream, columns, count)
        windows = sliding_window_view(padded, self.size, (2, 3))
        cut: NDArray[Any] = windows[np.arange(count), :, top, left]
        return cut

    def _padded(self, images: NDArray[Any]) -> NDArray[Any]:
        vertical, horizontal = self.padding
        if not (vertical or horizontal):
            return images
        if self.mode == "constant":  # numpy.pad takes three times as long
            number, channels, height, width = images.shape
            shape = (number, channels, height + 2 * vertical, width + 2 * horizontal)
            padded = np.full(shape, self.value, images.dtype) if self.value else np.zeros(shape, images.dtype)
            padded[:, :, vertical : vertical + height, horizontal : horizontal + width] = images
            return padded
        widths = ((0, 0), (0, 0), (vertical, vertical), (horizontal, horizontal))
        return np.pad(images, widths, "edge") if self.mode == "edge" else np.pad(images, widths, "reflect")
