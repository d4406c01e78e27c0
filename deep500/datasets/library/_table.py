"""Tables of features: splitting and standardising."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from deep500.core.errors import DatasetError
from deep500.core.random import random_stream
from deep500.datasets.shuffling import shuffled_order

__all__ = ["split_rows", "standardized"]


def split_rows(name: str, rows: int, test_samples: int, split_seed: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the numbers of the rows of the training set and of the test set.

    Args:
        name: The data set's name, which the random stream is named for.
        rows: Number of rows.
        test_samples: Size of the test set.
        split_seed: Seed of the split.

    Raises:
        DatasetError: One of the sets would be empty.
        InvalidInputError: The seed is not accepted.
    """
    if type(test_samples) is not int or not 1 <= test_samples < rows:
        raise DatasetError(
            f"test_samples was given as {test_samples!r}; accepted are whole numbers from 1 to {rows - 1}."
        )
    order = shuffled_order(random_stream(split_seed, "dataset", name, "split"), rows)
    return order[test_samples:], order[:test_samples]


def standardized(train: NDArray[Any], test: NDArray[Any]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    r"""Return both parts as float32: :math:`(x - mean) / deviation`, column by column, of the training part alone.

    A column that never changes is divided by 1.
    """
    mean, deviation = train.mean(axis=0, dtype=np.float64), train.std(axis=0, dtype=np.float64)
    deviation = np.where(deviation > 0, deviation, 1.0)
    first, second = (((part - mean) / deviation).astype(np.float32) for part in (train, test))
    return first, second
