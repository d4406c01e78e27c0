"""The one check of labels."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from deep500.core.errors import DatasetError

__all__ = ["as_array", "check_class_numbers", "checked_labels", "has_nan"]


def checked_labels(labels: ArrayLike, samples: int, classes: int | None) -> tuple[NDArray[Any], int | None]:
    """Return labels as an array, class numbers as int64, and the number of classes (``None`` for targets).

    Args:
        labels: One a sample: integers are class numbers from 0, floating numbers are regression targets.
        samples: Number of samples.
        classes: Number of classes; by default one more than the largest label.

    Raises:
        DatasetError: They are not as many as the samples, not numbers, out of range, or NaN.
    """
    array = as_array("labels", labels)
    if len(array) != samples:
        raise DatasetError(f"There are {samples} samples and {len(array)} labels; both must be as many.")
    if array.dtype.kind in "iu":
        if (
            array.dtype.kind == "u"
            and array.dtype.itemsize == 8
            and array.size
            and array.max() > np.iinfo(np.int64).max
        ):
            raise DatasetError(f"A label is {array.max()}; class numbers must fit in int64.")
        numbers = array.astype(np.int64, copy=False)
        if classes is None:
            classes = max(int(numbers.max()) + 1, 1) if numbers.size else 1
        check_class_numbers(numbers, classes)
        return numbers, classes
    if array.dtype.kind == "b" or classes is not None:
        raise DatasetError(
            f"Labels were given as {array.dtype.name}; class numbers must be integers. Convert them first, for "
            f"example with labels.astype('int64')."
        )
    if np.isnan(array).any():
        raise DatasetError("A label is NaN; regression targets must be numbers.")
    return array, None


def check_class_numbers(labels: NDArray[np.integer[Any]], classes: int, what: str = "") -> None:
    """Check that class numbers are from 0 to ``classes - 1``.

    Args:
        labels: The class numbers.
        classes: Number of classes.
        what: What holds them, for the message.

    Raises:
        DatasetError: One is not.
    """
    # A number that is given wrongly is the business of Dataset.
    limit = int(classes) if isinstance(classes, (int, np.integer)) else 0
    if not labels.size or (limit > 0 and labels.min() >= 0 and labels.max() < limit):
        return
    wrong = np.argwhere((labels < 0) | (labels >= limit))
    if limit > 0 and wrong.size:
        place = tuple(int(i) for i in wrong[0])
        raise DatasetError(
            f"{f'{what}: ' if what else ''}The label of sample {place[0]} is {labels[place]}; with {limit} classes, "
            f"accepted are 0 to {limit - 1}."
        )


def has_nan(values: NDArray[Any]) -> bool:
    """Whether an array of numbers holds NaN, in one pass without a copy where NumPy can."""
    if not values.size or not (values.dtype.kind == "f" or "float" in values.dtype.name):
        return False
    if values.dtype.kind == "f":
        return bool(np.isnan(np.min(values)))
    return bool(np.isnan(values).any())  # bfloat16 and its like have no minimum that keeps NaN


def as_array(argument: str, values: ArrayLike) -> NDArray[Any]:
    """Return an array of numbers whose first dimension counts the samples.

    Raises:
        DatasetError: It is none.
    """
    try:
        array = np.asanyarray(values) if isinstance(values, np.memmap) else np.asarray(values)
    except ValueError as error:
        raise DatasetError(f"{argument} is not an array: {error}") from error
    # "V" is how NumPy sees the dtypes of ml_dtypes, such as bfloat16.
    if array.ndim == 0 or array.dtype.kind not in "biufV":
        raise DatasetError(
            f"{argument} was given as {array.dtype.name} of shape {array.shape}; accepted are arrays of numbers whose "
            f"first dimension counts the samples."
        )
    return array
