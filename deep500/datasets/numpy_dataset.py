"""A data set that lies in memory."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from deep500.core.errors import DatasetError
from deep500.datasets._labels import as_array, checked_labels, has_nan
from deep500.datasets._memory import MappedPart, mapped_part, reopened
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
        *,
        allow_nan: bool = False,
    ) -> None:
        """Wrap arrays.

        Args:
            data: The samples, ``[N, ...]``, numbers of any dtype, which is kept.
            data_node: Name of the network's input that the samples are for.
            labels: One label a sample. Integers are class numbers from 0 and become int64; floating numbers are
                regression targets and keep their dtype.
            label_node: Name of the network's input that the labels are for.
            classes: Number of classes; by default one more than the largest label.
            allow_nan: Whether samples may hold NaN.

        Raises:
            DatasetError: There are no samples, samples and labels differ in number, the dtype is not of numbers, a
                class number is not from 0 to ``classes - 1``, or a sample or regression target is NaN. (Samples in a
                memory map are checked when they are read.)
        """
        self.data = as_array("data", data)
        self.labels: NDArray[Any] | None = None
        if len(self.data) == 0:
            raise DatasetError("The data set was given no samples; it needs at least one.")
        # A memory map is not read as a whole for this; its samples are checked as they are read.
        self._checks_reading = isinstance(self.data, np.memmap) and not allow_nan
        if not allow_nan and not self._checks_reading and has_nan(self.data):
            raise DatasetError(f"The data {_first_nan(self.data)}; repair it, or accept it with allow_nan=True.")
        if labels is None:
            if classes is not None:
                raise DatasetError(f"classes was given as {classes!r} without labels. Give labels too.")
            super().__init__(data_node, None)
            return
        if label_node is None:
            raise DatasetError("Labels were given with label_node=None. Name the network's input that they are for.")
        array, count = checked_labels(labels, len(self.data), classes)
        super().__init__(data_node, label_node, count)
        self.labels = array

    def __len__(self) -> int:
        """Return the number of samples."""
        return len(self.data)

    def __getitem__(self, index: SampleIndex) -> dict[str, NDArray[Any]]:
        """Return copies of one sample or several; see :meth:`Dataset.__getitem__`."""
        where = check_index(index, len(self))
        sample = {self.input_node: _copied(self.data, where)}
        if self._checks_reading and has_nan(sample[self.input_node]):
            raise DatasetError(f"The data {_first_nan(self.data)}; repair it, or accept it with allow_nan=True.")
        if self.labels is not None and self.label_node is not None:
            sample[self.label_node] = _copied(self.labels, where)
        return sample

    def __getstate__(self) -> dict[str, Any]:
        """Replace memory maps by their places in files, so that worker processes get no copies of them."""
        return {name: (mapped_part(v) or v) if isinstance(v, np.ndarray) else v for name, v in self.__dict__.items()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Map the files again."""
        self.__dict__.update({name: reopened(v) if isinstance(v, MappedPart) else v for name, v in state.items()})


def _first_nan(data: NDArray[Any]) -> str:
    for number, sample in enumerate(data):
        wrong = np.argwhere(np.isnan(np.atleast_1d(sample)))
        if wrong.size:
            return f"is NaN in sample {number}, element {tuple(int(i) for i in wrong[0])}"
    return "holds NaN"


def _copied(array: NDArray[Any], where: int | slice | NDArray[np.int64]) -> NDArray[Any]:
    if isinstance(where, np.ndarray):  # a minibatch, for which this is the quickest way; it copies
        return np.asarray(array.take(where, axis=0))
    return np.array(array[where])  # a view would let a transformation change the data set
