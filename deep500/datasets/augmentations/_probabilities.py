"""Class numbers as probabilities of the classes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from deep500.core.counts import check_count
from deep500.core.errors import DatasetError
from deep500.core.texts import shown

__all__ = ["checked_classes", "class_probabilities"]

#: Most classes. A slip such as 10**9 would use up the memory.
_MOST_CLASSES = 2**24


def checked_classes(classes: Any) -> int:
    """Return a number of classes.

    Raises:
        DatasetError: It is not a whole number from 1, or very large.
    """
    count = check_count("classes", classes, least=1, error=DatasetError)
    if count > _MOST_CLASSES:
        raise DatasetError(f"classes was given as {shown(classes)}; accepted are whole numbers up to {_MOST_CLASSES}.")
    return count


def class_probabilities(augmentation: str, labels: NDArray[Any], classes: int) -> NDArray[np.float32]:
    """Return ``[N, classes]`` with a 1 for each label's class.

    Args:
        augmentation: Who asks, for the message.
        labels: Class numbers ``[N]``.
        classes: Number of classes.

    Raises:
        DatasetError: They are no class numbers, or one is out of range.
    """
    if labels.ndim != 1 or labels.dtype.kind not in "iu" or ((labels < 0) | (labels >= classes)).any():
        raise DatasetError(
            f"{augmentation} with {classes} classes needs labels [N] from 0 to {classes - 1}; received "
            f"{labels.dtype} of the shape {list(labels.shape)}"
            + (f" from {labels.min()} to {labels.max()}." if labels.size else ".")
        )
    probabilities: NDArray[np.float32] = (labels[:, None] == np.arange(classes)).astype(np.float32)
    return probabilities
