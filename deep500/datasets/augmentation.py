"""The contract of an augmentation: a transformation of minibatches of images."""

from __future__ import annotations

import abc
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deep500.core.errors import DatasetError
from deep500.core.registry import Registry
from deep500.core.texts import shown

__all__ = [
    "AUGMENTATIONS",
    "Augmentation",
    "RandomAugmentation",
    "checked_number",
    "checked_size",
    "computing_dtype",
    "is_floating",
    "rounded_to",
]

#: Augmentations of images, one file each in ``deep500/datasets/augmentations``.
AUGMENTATIONS = Registry("augmentation", "deep500.datasets.augmentations")


class Augmentation(abc.ABC):
    """Changes the images of a minibatch, ``[N, C, H, W]``, uint8 or of a floating dtype.

    It is a transformation that a sampler takes, ``augmentation(minibatch)``. The minibatch that it is given stays as it
    is. Dtypes are kept, unless an augmentation says otherwise.

    A subclass implements :meth:`apply`.

    Attributes:
        input_node: Name of the network's input that the images are for.
        label_node: Name of the network's input that the labels are for; ``None`` when there are none.
    """

    input_node: str = "input"
    label_node: str | None = "label"

    def set_dataset_nodes(self, input_node: str, label_node: str | None) -> None:
        """Say for which inputs of the network images and labels are; a sampler does."""
        self.input_node, self.label_node = input_node, label_node

    def __call__(self, batch: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
        """Return the minibatch with other images.

        Raises:
            DatasetError: There are no images ``[N, C, H, W]``, or they do not fit.
        """
        return {**batch, self.input_node: self.apply(self.images(batch))}

    @abc.abstractmethod
    def apply(self, images: NDArray[Any]) -> NDArray[Any]:
        """Return other images for images ``[N, C, H, W]``, which stay as they are."""

    def images(self, batch: Mapping[str, NDArray[Any]]) -> NDArray[Any]:
        """Return the images of a minibatch.

        Raises:
            DatasetError: There are none, or they are not ``[N, C, H, W]``, uint8 or of a floating dtype.
        """
        if self.input_node not in batch:
            raise DatasetError(
                f"{type(self).__name__} changes the images for the input {self.input_node!r}; the minibatch has "
                f"{', '.join(batch) or 'nothing'}."
            )
        images = np.asarray(batch[self.input_node])
        if images.ndim != 4 or 0 in images.shape[1:] or not (images.dtype == np.uint8 or is_floating(images.dtype)):
            raise DatasetError(
                f"{type(self).__name__} was given {images.dtype} of the shape {list(images.shape)}; accepted are "
                f"images [N, C, H, W], uint8 or of a floating dtype."
            )
        return images


class RandomAugmentation(Augmentation):
    """An augmentation that makes random choices, all from the generator that it is given for each minibatch."""

    _stream: np.random.Generator | None = None

    def set_random_stream(self, stream: np.random.Generator) -> None:
        """Give the generator for the next minibatch; a sampler does."""
        self._stream = stream

    @property
    def stream(self) -> np.random.Generator:
        """The generator that was given.

        Raises:
            DatasetError: None was.
        """
        if self._stream is None:
            raise DatasetError(
                f"{type(self).__name__} has no random numbers yet. Pass it to a sampler "
                f"(transformations=[...]), or call set_random_stream(generator) before."
            )
        return self._stream


#: Longest side of an image: what the JPEG format allows. A slip such as 10**9 would use up the memory.
_MOST_PIXELS = 65_535


def checked_size(name: str, value: Any, least: int = 1) -> tuple[int, int]:
    """Return a size in pixels, given as a whole number or as a pair (height, width), as a pair.

    Raises:
        DatasetError: It is none, or smaller or larger than accepted.
    """
    pair = tuple(value) if isinstance(value, (tuple, list)) else (value, value)
    are_numbers = all(isinstance(n, (int, np.integer)) and type(n) is not bool for n in pair)
    if len(pair) != 2 or not are_numbers or not all(least <= n <= _MOST_PIXELS for n in pair):
        raise DatasetError(
            f"{name} was given as {shown(value)}; accepted are a whole number from {least} to {_MOST_PIXELS}, and a "
            f"pair (height, width) of such."
        )
    return int(pair[0]), int(pair[1])


def checked_number(name: str, value: Any, low: float = -math.inf, high: float = math.inf) -> float:
    """Return a finite number from ``low`` to ``high``.

    Raises:
        DatasetError: It is none.
    """
    is_number = isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
    if not is_number or not (math.isfinite(value) and low <= value <= high):
        limits = " ".join(f"{word} {limit:g}" for word, limit in (("from", low), ("to", high)) if math.isfinite(limit))
        raise DatasetError(f"{name} was given as {shown(value)}; accepted are finite numbers {limits}".rstrip() + ".")
    return float(value)


def computing_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the dtype in which images of a dtype are computed with: float64 for float64, else float32."""
    return np.dtype(np.float64 if dtype == np.float64 else np.float32)


def rounded_to(dtype: np.dtype[Any], values: NDArray[Any]) -> NDArray[Any]:
    """Return computed images in the dtype of the given ones: uint8 by rounding half to even, within 0 to 255."""
    if dtype == np.uint8:
        np.rint(values, out=values)
        np.clip(values, 0, 255, out=values)
    return values.astype(dtype, copy=False)


def is_floating(dtype: np.dtype[Any]) -> bool:
    """Whether a dtype is of floating numbers; ml_dtypes' bfloat16 is of the kind ``"V"`` for NumPy."""
    return dtype.kind == "f" or dtype.name == "bfloat16"
