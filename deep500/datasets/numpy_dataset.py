"""A data set that lies in memory."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from deep500.core.errors import DatasetError
from deep500.datasets.dataset import Dataset, SampleIndex, check_index

__all__ = ["NumpyDataset"]


class NumpyDataset(Dataset):
    """Samples and labels from NumPy arrays, memory maps included.

    The arrays are not copied; what is read from the data set is.

    Attributes:
        data: The samples, ``[N, ...]``.
        labels: The labels, ``[N, ...]``: int64 class numbers, or floating regression targets; ``None`` without labels.

    Example:
        >>> dataset = NumpyDataset(np.zeros((6, 4), np.float32), "input", [0, 1, 2, 0, 1, 2], "label")
        >>> dataset.classes, dataset.loss, dataset[[1, 4]]["label"].tolist()
        (3, 'SoftmaxCrossEntropyLoss', [1, 1])
    """

    def __init__(
        self,
        data: ArrayLike,
        data_node: str = "input",
        labels: ArrayLike | None = None,
        label_node: str | None = "label",
        classes: int | None = None,
    ) -> None:
        """Wrap arrays.

        Args:
            data: The samples, ``[N, ...]``, numbers of any dtype, which is kept.
            data_node: Name of the network's input that the samples are for.
            labels: One label a sample. Integers are class numbers from 0 and become int64; floating numbers are
                regression targets and keep their dtype.
            label_node: Name of the network's input that the labels are for.
            classes: Number of classes; by default one more than the largest label.

        Raises:
            DatasetError: There are no samples, samples and labels differ in number, the dtype is not of numbers, a
                class number is not from 0 to ``classes - 1``, or a regression target is NaN.
        """
        self.data = _array("data", data)
        self.labels: NDArray[Any] | None = None
        if len(self.data) == 0:
            raise DatasetError("The data set was given no samples; it needs at least one.")
        if labels is None:
            if classes is not None:
                raise DatasetError(f"classes was given as {classes!r} without labels. Give labels too.")
            super().__init__(data_node, None)
            return
        if label_node is None:
            raise DatasetError("Labels were given with label_node=None. Name the network's input that they are for.")
        array = _array("labels", labels)
        if len(array) != len(self.data):
            raise DatasetError(f"There are {len(self.data)} samples and {len(array)} labels; both must be as many.")
        if array.dtype.kind in "iu":
            numbers = array.astype(np.int64, copy=False)
            super().__init__(data_node, label_node, int(numbers.max()) + 1 if classes is None else classes)
            _check_class_numbers(numbers, self.classes or 0)
            self.labels = numbers
            return
        if array.dtype.kind == "b" or classes is not None:
            raise DatasetError(
                f"Labels were given as {array.dtype.name}; class numbers must be integers. Convert them first, for "
                f"example with labels.astype('int64')."
            )
        if np.isnan(array).any():
            raise DatasetError("A label is NaN; regression targets must be numbers.")
        self.labels = array
        super().__init__(data_node, label_node)

    def __len__(self) -> int:
        """Return the number of samples."""
        return len(self.data)

    def __getitem__(self, index: SampleIndex) -> dict[str, NDArray[Any]]:
        """Return copies of one sample or several; see :meth:`Dataset.__getitem__`."""
        where = check_index(index, len(self))
        sample = {self.input_node: _copied(self.data, where)}
        if self.labels is not None and self.label_node is not None:
            sample[self.label_node] = _copied(self.labels, where)
        return sample


def _check_class_numbers(labels: NDArray[np.int64], classes: int) -> None:
    wrong = np.argwhere((labels < 0) | (labels >= classes))
    if wrong.size:
        place = tuple(int(i) for i in wrong[0])
        raise DatasetError(
            f"The label of sample {place[0]} is {labels[place]}; with {classes} classes, accepted are 0 to "
            f"{classes - 1}."
        )


def _copied(array: NDArray[Any], where: int | slice | NDArray[np.int64]) -> NDArray[Any]:
    # An integer array copies by itself; a view would let a transformation change the data set.
    return array[where] if isinstance(where, np.ndarray) else np.array(array[where])


def _array(argument: str, values: ArrayLike) -> NDArray[Any]:
    try:
        array = np.asarray(values)
    except ValueError as error:
        raise DatasetError(f"{argument} is not an array: {error}") from error
    # "V" is how NumPy sees the dtypes of ml_dtypes, such as bfloat16.
    if array.ndim == 0 or array.dtype.kind not in "biufV":
        raise DatasetError(
            f"{argument} was given as {array.dtype.name} of shape {array.shape}; accepted are arrays of numbers whose "
            f"first dimension counts the samples."
        )
    return array
