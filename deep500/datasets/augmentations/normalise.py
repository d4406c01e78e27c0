"""Images with mean 0 and standard deviation 1."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deep500.core.errors import DatasetError
from deep500.core.texts import shown
from deep500.datasets.augmentation import Augmentation, checked_number

__all__ = ["Normalise"]


class Normalise(Augmentation):
    r"""Takes the mean off each channel and divides by its standard deviation: :math:`y = (s x - \mu_c) / \sigma_c`.

    Images of uint8 become float32, with :math:`s = 1 / 255` unless told otherwise; floating dtypes are kept, with
    :math:`s = 1`. It is computed as :math:`y = x (s / \sigma_c) - \mu_c / \sigma_c`, whose constants are rounded from
    float64 to the result's dtype (to float32 for float16 and bfloat16).
    """

    def __init__(
        self,
        mean: float | Sequence[float],
        standard_deviation: float | Sequence[float],
        scale: float | None = None,
    ) -> None:
        """Set the statistics, which are those of the scaled images.

        Args:
            mean: Mean of each channel, or of all.
            standard_deviation: Standard deviation of each channel, or of all, above 0.
            scale: What pixels are multiplied with first; by default 1/255 for uint8 and 1 for others.

        Raises:
            DatasetError: An argument is not accepted.
        """
        self.mean = _channels("mean", mean)
        self.standard_deviation = _channels("standard_deviation", standard_deviation)
        if not (self.standard_deviation > 0).all():
            raise DatasetError(
                f"standard_deviation was given as {shown(standard_deviation)}; accepted are numbers above 0."
            )
        if len({len(self.mean), len(self.standard_deviation)} - {1}) > 1:
            raise DatasetError(
                f"mean has {len(self.mean)} channels and standard_deviation {len(self.standard_deviation)}; both must "
                f"have as many as the images."
            )
        self.scale = None if scale is None else checked_number("scale", scale)

    def apply(self, images: NDArray[Any]) -> NDArray[Any]:
        """Return the images, float32 for uint8.

        Raises:
            DatasetError: The images have another number of channels.
        """
        channels = max(len(self.mean), len(self.standard_deviation))
        if channels not in (1, images.shape[1]):
            raise DatasetError(
                f"Normalise has statistics of {channels} channels; the images have {images.shape[1]} "
                f"({list(images.shape)})."
            )
        is_bytes = images.dtype == np.uint8
        scale = self.scale if self.scale is not None else 1 / 255 if is_bytes else 1.0
        result = np.dtype(np.float32) if is_bytes else images.dtype
        dtype = result if result in (np.float32, np.float64) else np.dtype(np.float32)
        factor = (scale / self.standard_deviation).astype(dtype).reshape(-1, 1, 1)
        offset = (self.mean / self.standard_deviation).astype(dtype).reshape(-1, 1, 1)
        normalised: NDArray[Any] = np.multiply(images, factor, dtype=dtype)
        normalised -= offset
        return normalised.astype(result, copy=False)


def _channels(name: str, value: Any) -> NDArray[np.float64]:
    values = value if isinstance(value, (list, tuple, np.ndarray)) else [value]
    if len(values) == 0:
        raise DatasetError(f"{name} was given as {shown(value)}; accepted are a number, and one for each channel.")
    return np.array([checked_number(name, number) for number in values], np.float64)
