"""The one way in which samples are put in a random order."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["shuffled_order"]


def shuffled_order(stream: np.random.Generator, count: int) -> NDArray[np.int64]:
    """Return the numbers from 0 to ``count - 1`` in a random order, each order equally likely.

    They are sorted by 64-bit numbers that the bit generator draws. NumPy keeps the raw output of its bit generators
    for good, but may change ``Generator.permutation``; so this order is the same under every version of NumPy.

    Args:
        stream: Generator of the purpose, from :func:`deep500.core.random.random_stream`.
        count: How many numbers.
    """
    keys = stream.bit_generator.random_raw(count)
    return np.argsort(keys, kind="stable").astype(np.int64, copy=False)
