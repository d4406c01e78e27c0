"""Random numbers made from the raw output of a bit generator, so that they are the same under every NumPy."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

__all__ = ["uniform", "whole_numbers"]


def uniform(stream: np.random.Generator, *shape: int) -> NDArray[np.float64]:
    """Return multiples of 2**-53 from 0 to below 1, all equally likely.

    NumPy keeps the raw output of its bit generators for good, but may change ``Generator.random``.

    Args:
        stream: Generator of the purpose, from :func:`deep500.core.random.random_stream`.
        *shape: Shape of the result.
    """
    raw: NDArray[np.uint64] = stream.bit_generator.random_raw(math.prod(shape)).reshape(shape)
    return (raw >> np.uint64(11)).astype(np.float64) * np.float64(2.0**-53)


def whole_numbers(stream: np.random.Generator, bound: int, *shape: int) -> NDArray[np.int64]:
    """Return whole numbers from 0 to ``bound - 1``, equally likely but for ``bound`` parts in 2**53."""
    return (uniform(stream, *shape) * bound).astype(np.int64)
