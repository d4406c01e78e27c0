"""Pixels: bytes that are kept as they are and become numbers when they are read, a quarter of the memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deep500.core.errors import DatasetError
from deep500.core.tensor_descriptor import TensorDescriptor
from deep500.datasets._labels import check_class_numbers
from deep500.datasets._memory import LazyArrays
from deep500.datasets.dataset import Dataset, SampleIndex, check_index

__all__ = ["PixelDataset", "PixelScale", "pixel_statistics"]


class PixelScale:
    r"""Makes numbers of bytes: :math:`(x / 255 - mean_c) / deviation_c` in float32, or leaves the bytes alone.

    There are only 256 bytes, so the numbers are looked up: they are those of the formula, bit for bit.
    """

    def __init__(
        self, channels: int, mean: Sequence[float] | None, deviation: Sequence[float] | None, dtype: str = "float32"
    ) -> None:
        """Make the tables.

        Args:
            channels: Number of channels.
            mean: What is taken off each channel, from 0 to 1; ``None`` for zeros.
            deviation: What each channel is divided by; ``None`` for ones.
            dtype: ``"float32"``, or ``"uint8"`` for the bytes themselves, which are not scaled.

        Raises:
            DatasetError: The dtype is another, or there are not as many numbers as channels.
        """
        if dtype not in ("float32", "uint8"):
            raise DatasetError(f"dtype was given as {dtype!r}; accepted are 'float32' and 'uint8'.")
        if dtype == "uint8" and (mean is not None or deviation is not None):
            raise DatasetError("Images of dtype 'uint8' are not normalised; leave out mean and standard_deviation.")
        for name, values in (("mean", mean), ("standard_deviation", deviation)):
            _check_channels(name, values, channels)
        self.channels = channels
        self.dtype = dtype
        bytes_ = np.arange(256, dtype=np.float32) / np.float32(255)
        shift = np.zeros(channels, np.float32) if mean is None else np.asarray(mean, np.float32)
        scale = np.ones(channels, np.float32) if deviation is None else np.asarray(deviation, np.float32)
        self._tables: NDArray[np.float32] = (bytes_ - shift[:, np.newaxis]) / scale[:, np.newaxis]

    def apply(self, pixels: NDArray[np.uint8], out: NDArray[Any]) -> None:
        """Write the numbers of bytes ``[..., C, H, W]`` to an array of the same shape and of :attr:`dtype`."""
        if self.dtype == "uint8":
            np.copyto(out, pixels)
            return
        for channel, table in enumerate(self._tables):
            # With "clip" (nothing is, there are 256 entries) NumPy writes to `out` without a buffer.
            np.take(table, pixels[..., channel, :, :], out=out[..., channel, :, :], mode="clip")


def _check_channels(name: str, values: Sequence[float] | None, channels: int) -> None:
    if values is None:
        return
    array = np.asarray(values)
    if array.shape != (channels,) or array.dtype.kind not in "iuf" or not np.isfinite(array).all():
        raise DatasetError(f"{name} was given as {values!r}; accepted are {channels} numbers, one a channel.")
    if name != "mean" and not (array > 0).all():
        raise DatasetError(f"{name} was given as {values!r}; accepted are positive numbers.")


class PixelDataset(Dataset):
    """Images in memory, or in a memory map, as bytes ``[N, C, H, W]``."""

    def __init__(
        self, arrays: LazyArrays, input_node: str, label_node: str, classes: int, scale: PixelScale, source: str
    ) -> None:
        """Wrap images and labels.

        Args:
            arrays: The images, uint8 ``[N, C, H, W]``, and the labels, int64 ``[N]``.
            input_node: Name of the network's input that the images are for.
            label_node: Name of the network's input that the labels are for.
            classes: Number of classes.
            scale: What makes numbers of the bytes.
            source: What the labels were read from, for messages.

        Raises:
            DatasetError: There are no images, images and labels differ in number, or a label is out of range.
        """
        super().__init__(input_node, label_node, classes)
        images, labels = arrays.get()
        if len(images) == 0 or len(images) != len(labels):
            raise DatasetError(
                f"{source}: there are {len(images)} images and {len(labels)} labels; both must be as many."
            )
        check_class_numbers(labels, classes, source)
        self._arrays = arrays
        self._scale = scale
        self._shape = images.shape

    def __len__(self) -> int:
        return int(self._shape[0])

    def __getitem__(self, index: SampleIndex) -> dict[str, NDArray[Any]]:
        where = check_index(index, len(self))
        images, labels = self._arrays.get()
        pixels = images[where]
        numbers = np.empty(pixels.shape, self.dtype)
        self._scale.apply(pixels, numbers)
        assert self.label_node is not None
        return {self.input_node: numbers, self.label_node: np.array(labels[where])}

    @property
    def sample_shape(self) -> tuple[int, ...]:
        return tuple(int(size) for size in self._shape[1:])

    @property
    def dtype(self) -> str:
        return self._scale.dtype

    @property
    def descriptors(self) -> dict[str, TensorDescriptor]:
        assert self.label_node is not None
        return {
            self.input_node: TensorDescriptor(self.dtype, ("batch", *self.sample_shape)),
            self.label_node: TensorDescriptor("int64", ("batch",)),
        }


def pixel_statistics(images: NDArray[np.uint8]) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return mean and standard deviation of each channel of images ``[N, C, H, W]``, from 0 to 1, to four digits.

    They come from whole numbers (how often each byte occurs), so they do not depend on the order of a sum. A channel
    that never changes has the deviation 1.
    """
    means, deviations = [], []
    values = np.arange(256)
    for channel in range(images.shape[1]):
        counts = np.zeros(256, np.int64)
        for start in range(0, len(images), 4096):  # bincount makes eight bytes of each
            counts += np.bincount(images[start : start + 4096, channel].reshape(-1), minlength=256)
        count, total, squares = int(counts.sum()), int(counts @ values), int(counts @ values**2)
        variance = max(squares * count - total**2, 0) / (255 * count) ** 2
        means.append(round(total / count / 255, 4))
        deviations.append(round(variance**0.5, 4) or 1.0)
    return tuple(means), tuple(deviations)
