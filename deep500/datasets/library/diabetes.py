"""How a disease went on, from ten measurements of each patient."""

from __future__ import annotations

import numpy as np

from deep500.core.errors import DatasetError
from deep500.datasets.library._table import split_rows, standardized
from deep500.datasets.numpy_dataset import NumpyDataset

__all__ = ["diabetes"]


def diabetes(
    input_node: str = "input",
    label_node: str = "label",
    *,
    test_samples: int = 88,
    split_seed: int = 0,
    standardize_labels: bool = False,
) -> tuple[NumpyDataset, NumpyDataset]:
    """Return scikit-learn's 442 patients, split at random into a training set and a test set (regression).

    Features are float32 ``[10]`` (age, sex, body mass index, blood pressure, six blood serum measurements), each less
    its mean over the training set, divided by its standard deviation there. Labels are float32 ``[1]``: a measure of
    how far the disease went in a year, 25 to 346. The files come with scikit-learn; nothing is downloaded.

    The split has a seed of its own that is not the run's, so that results of different runs compare.

    Args:
        input_node: Name of the network's input that the features are for.
        label_node: Name of the network's input that the labels are for.
        test_samples: Size of the test set, the rest is the training set (354 and 88 by default).
        split_seed: Seed of the split.
        standardize_labels: Whether labels, too, are less their mean and divided by their standard deviation over the
            training set; a mean squared error is then the unexplained share of the training set's variance.

    Returns:
        The training set and the test set.

    Raises:
        DatasetError: One of the sets would be empty.
        InvalidInputError: The seed is not accepted.

    Source: B. Efron, T. Hastie, I. Johnstone, R. Tibshirani, "Least Angle Regression", Annals of Statistics 32(2),
    2004.
    """
    if not isinstance(standardize_labels, bool):
        raise DatasetError(f"standardize_labels was given as {standardize_labels!r}; accepted are True and False.")

    from sklearn.datasets import load_diabetes

    raw = load_diabetes(scaled=False)  # scikit-learn's own scaling would know the test set
    rows = split_rows("diabetes", len(raw.data), test_samples, split_seed)
    features = standardized(raw.data[rows[0]], raw.data[rows[1]])
    targets = tuple(raw.target[numbers].reshape(-1, 1) for numbers in rows)
    labels = standardized(*targets) if standardize_labels else tuple(part.astype(np.float32) for part in targets)
    train, test = (NumpyDataset(part, input_node, y, label_node) for part, y in zip(features, labels))
    return train, test
