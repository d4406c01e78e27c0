"""Images, and what every augmentation is asked."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from deep500.core.random import random_stream
from deep500.datasets.augmentation import Augmentation, RandomAugmentation
from deep500.datasets.draws import uniform

DTYPES = [np.uint8, np.float16, np.float32, np.float64, ml_dtypes.bfloat16]
SHAPES = [(5, 3, 7, 10), (4, 1, 8, 8), (3, 3, 1, 1), (2, 3, 1, 9), (0, 3, 6, 6)]


def make_images(shape: tuple[int, ...], dtype: Any = np.float32, seed: int = 0) -> NDArray[Any]:
    values = np.random.default_rng(seed).integers(0, 256, shape)
    return values.astype(dtype) if dtype == np.uint8 else (values / 255).astype(dtype)


def stream(seed: int = 1) -> np.random.Generator:
    return random_stream(seed, "test")


def apply(augmentation: Augmentation, images: NDArray[Any], seed: int = 1) -> NDArray[Any]:
    if isinstance(augmentation, RandomAugmentation):
        augmentation.set_random_stream(stream(seed))
    before = images.copy()
    batch = {"input": images, "label": np.arange(len(images))}
    changed = augmentation(batch)
    np.testing.assert_array_equal(images, before)  # what was given stays as it is
    assert batch["input"] is images
    assert changed["label"] is batch["label"]
    return changed["input"]


def uniforms(*shapes: tuple[int, ...], seed: int = 1) -> list[NDArray[np.float64]]:
    """What an augmentation draws, one array after the other."""
    generator = stream(seed)
    return [uniform(generator, *shape) for shape in shapes]
