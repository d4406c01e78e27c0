"""Images of another size."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from deep500.datasets.augmentation import Augmentation, checked_size
from deep500.datasets.augmentations._resampling import check_interpolation, resampled, resampling_matrices

__all__ = ["Resize"]


class Resize(Augmentation):
    """Resamples images to another height and width; the ratio of both is not kept.

    Pixels' centres lie at halves, as in Pillow and in ``torch.nn.functional.interpolate(align_corners=False)``. With
    ``antialias`` (the default), an image that becomes smaller is first smoothed by a triangle filter as wide as two
    pixels of the result, as Pillow does; without, it is read at two points in each direction only. Sums are in float32
    (float64 for float64), and uint8 is rounded once, in the end (Pillow rounds after each direction).
    """

    def __init__(self, size: int | tuple[int, int], interpolation: str = "bilinear", antialias: bool = True) -> None:
        """Set the size.

        Args:
            size: Height and width of the result; one number for both.
            interpolation: ``"bilinear"`` or ``"nearest"``.
            antialias: Whether images that become smaller are smoothed; nothing for ``"nearest"``.

        Raises:
            DatasetError: An argument is not accepted.
        """
        self.size = checked_size("size", size)
        check_interpolation(interpolation, antialias)
        self.interpolation, self.antialias = interpolation, antialias

    def apply(self, images: NDArray[Any]) -> NDArray[Any]:
        """Return the images, ``[N, C, *size]``."""
        rows, columns = (
            resampling_matrices(np.zeros(1), np.array([source]), source, target, self.interpolation, self.antialias)
            for source, target in zip(images.shape[2:], self.size)
        )
        return resampled(images, rows, columns)
