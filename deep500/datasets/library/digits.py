"""Handwritten digits, 8 x 8."""

from __future__ import annotations

import numpy as np

from deep500.core.errors import DatasetError
from deep500.core.random import random_stream
from deep500.datasets.numpy_dataset import NumpyDataset
from deep500.datasets.shuffling import shuffled_order

__all__ = ["digits"]

#: Number of images that scikit-learn brings.
_SAMPLES = 1797

#: The largest pixel value: each pixel counts the set points in a block of 4 x 4.
_PIXEL_MAXIMUM = 16.0


def digits(
    input_node: str = "input", label_node: str = "label", *, test_samples: int = 360, split_seed: int = 0
) -> tuple[NumpyDataset, NumpyDataset]:
    """Return scikit-learn's 1,797 handwritten digits, split at random into a training set and a test set.

    Images are float32 ``[1, 8, 8]`` from 0 to 1: the pixel counts, 0 to 16, divided by 16, which is exact. Labels are
    int64 from 0 to 9. The files come with scikit-learn; nothing is downloaded.

    The split has a seed of its own that is not the run's, so that results of different runs compare.

    Args:
        input_node: Name of the network's input that the images are for.
        label_node: Name of the network's input that the labels are for.
        test_samples: Size of the test set, the rest is the training set (1,437 and 360 by default).
        split_seed: Seed of the split.

    Returns:
        The training set and the test set.

    Raises:
        DatasetError: One of the sets would be empty.
        InvalidInputError: The seed is not accepted.

    Source: E. Alpaydin, C. Kaynak, "Optical Recognition of Handwritten Digits", UCI Machine Learning Repository, 1998
    (its test set); licence CC BY 4.0.
    """
    if type(test_samples) is not int or not 1 <= test_samples < _SAMPLES:
        raise DatasetError(
            f"test_samples was given as {test_samples!r}; accepted are whole numbers from 1 to {_SAMPLES - 1}."
        )
    order = shuffled_order(random_stream(split_seed, "dataset", "digits", "split"), _SAMPLES)

    from sklearn.datasets import load_digits

    raw = load_digits()
    images = (raw.images[order] / _PIXEL_MAXIMUM).astype(np.float32).reshape(_SAMPLES, 1, 8, 8)
    labels = raw.target[order].astype(np.int64)
    test = NumpyDataset(images[:test_samples], input_node, labels[:test_samples], label_node, classes=10)
    train = NumpyDataset(images[test_samples:], input_node, labels[test_samples:], label_node, classes=10)
    return train, test
