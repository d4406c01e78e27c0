"""Measurements of cell nuclei, benign or malignant."""

from __future__ import annotations

import numpy as np

from deep500.datasets.library._table import split_rows, standardized
from deep500.datasets.numpy_dataset import NumpyDataset

__all__ = ["breast_cancer"]


def breast_cancer(
    input_node: str = "input", label_node: str = "label", *, test_samples: int = 114, split_seed: int = 0
) -> tuple[NumpyDataset, NumpyDataset]:
    """Return scikit-learn's 569 tumours, split at random into a training set and a test set.

    Features are float32 ``[30]``, each less its mean over the training set, divided by its standard deviation there.
    Labels are int64: 0 malignant, 1 benign. The files come with scikit-learn; nothing is downloaded.

    The split has a seed of its own that is not the run's, so that results of different runs compare.

    Args:
        input_node: Name of the network's input that the features are for.
        label_node: Name of the network's input that the labels are for.
        test_samples: Size of the test set, the rest is the training set (455 and 114 by default).
        split_seed: Seed of the split.

    Returns:
        The training set and the test set.

    Raises:
        DatasetError: One of the sets would be empty.
        InvalidInputError: The seed is not accepted.

    Source: W. Wolberg, O. Mangasarian, N. Street, W. Street, "Breast Cancer Wisconsin (Diagnostic)", UCI Machine
    Learning Repository, 1993; licence CC BY 4.0.
    """
    from sklearn.datasets import load_breast_cancer

    raw = load_breast_cancer()
    rows = split_rows("breast_cancer", len(raw.data), test_samples, split_seed)
    features = standardized(raw.data[rows[0]], raw.data[rows[1]])
    train, test = (
        NumpyDataset(part, input_node, raw.target[numbers].astype(np.int64), label_node, classes=2)
        for part, numbers in zip(features, rows)
    )
    return train, test
