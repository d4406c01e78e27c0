"""Counting right classifications."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from deep500.core.errors import TrainingError

__all__ = ["count_correct"]


def count_correct(scores: NDArray[Any], labels: NDArray[Any]) -> tuple[int, int]:
    """Return how many samples are classified right, and how many there are.

    A sample is right when the score of its class is larger than every other score of the sample. A tie is wrong, since
    no class was chosen; so is a sample with a NaN among its scores.

    Args:
        scores: One score a class, ``[N, C]`` or ``[N, C, D1, ...]``, of any floating dtype.
        labels: Class numbers from 0, integers ``[N]`` or ``[N, D1, ...]``; or probabilities of the classes, floating
            and of the scores' shape, of which the class with the largest one counts, of equal ones the first.

    Raises:
        TrainingError: The shapes do not fit, labels are neither integers nor probabilities, or a label is not among the
            classes.
    """
    if scores.ndim >= 2 and labels.shape == scores.shape and (labels.dtype.kind == "f" or labels.dtype.kind == "V"):
        probabilities = labels.astype(np.float64 if labels.dtype == np.float64 else np.float32, copy=False)
        if np.isnan(probabilities).any():
            raise TrainingError("A label is NaN; accuracy needs class numbers, or probabilities of the classes.")
        labels = probabilities.argmax(axis=1)
    if scores.ndim < 2 or labels.shape != (scores.shape[0], *scores.shape[2:]) or labels.dtype.kind not in "iu":
        raise TrainingError(
            f"Accuracy needs scores [N, C, ...] and integer labels [N, ...]; received {scores.dtype.name} scores of "
            f"shape {scores.shape} and {labels.dtype.name} labels of shape {labels.shape}. If the network has several "
            f"outputs, give the trainer the class scores' name as network_output."
        )
    classes = scores.shape[1]
    if labels.size and not 0 <= int(labels.min()) <= int(labels.max()) < classes:
        wrong = labels.min() if labels.min() < 0 else labels.max()
        raise TrainingError(f"A label is {wrong}; with {classes} scores a sample, accepted are 0 to {classes - 1}.")
    # float16 and the dtypes of ml_dtypes, which NumPy cannot promote, all fit into float32.
    others = np.array(
        scores, dtype=np.float64 if scores.dtype.kind in "iu" or scores.dtype.itemsize > 4 else np.float32
    )
    chosen = np.expand_dims(labels.astype(np.int64), 1)
    own = np.take_along_axis(others, chosen, axis=1)[:, 0]
    np.put_along_axis(others, chosen, -np.inf, axis=1)
    # The maximum of scores with a NaN is NaN, and nothing is larger than NaN.
    right = own > others.max(axis=1)
    return int(np.count_nonzero(right)), int(labels.size)
