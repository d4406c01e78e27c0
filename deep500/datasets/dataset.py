"""The contract of a data set."""

from __future__ import annotations

import abc
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Union

import numpy as np
from numpy.typing import NDArray

from deep500.core.errors import DatasetError
from deep500.core.tensor_descriptor import TensorDescriptor

__all__ = ["Dataset", "DatasetIndexError", "SampleIndex", "check_batch", "check_index", "sample_numbers"]

#: One sample (an integer), or several (a slice, a list or an array of integers).
SampleIndex = Union[int, "np.integer[Any]", slice, Sequence[int], "NDArray[np.integer[Any]]"]


class DatasetIndexError(DatasetError, IndexError):
    """A sample was asked for that the data set does not have."""


class Dataset(abc.ABC):
    """Samples, each a tensor for the network's input and, unless unlabelled, one for its label.

    A subclass implements ``__len__`` and ``__getitem__``; what else is known of the samples is read from the first
    one, unless the subclass knows it.

    Attributes:
        input_node: Name of the network's input that the samples are for.
        label_node: Name of the network's input that the labels are for; ``None`` when there are no labels.
    """

    def __init__(self, input_node: str = "input", label_node: str | None = "label", classes: int | None = None) -> None:
        """Name the network's inputs.

        Args:
            input_node: Name of the network's input that the samples are for.
            label_node: Name of the network's input that the labels are for; ``None`` when there are no labels.
            classes: Number of classes; ``None`` when the labels are not class numbers.

        Raises:
            DatasetError: A name is not a text, both are the same, or the number of classes is not positive.
        """
        for argument, node in (("input_node", input_node), ("label_node", label_node)):
            if not (isinstance(node, str) and node) and not (node is None and argument == "label_node"):
                raise DatasetError(f"{argument} was given as {node!r}; accepted is the name of a network's input.")
        if input_node == label_node:
            raise DatasetError(f"Samples and labels cannot both be for the input {input_node!r}.")
        if classes is not None and (isinstance(classes, bool) or not isinstance(classes, (int, np.integer))):
            raise DatasetError(f"classes was given as {classes!r}; accepted are whole numbers from 1, and None.")
        if classes is not None and classes < 1:
            raise DatasetError(f"classes was given as {classes}; accepted are whole numbers from 1, and None.")
        self.input_node = input_node
        self.label_node = label_node
        self._classes = None if classes is None else int(classes)

    @abc.abstractmethod
    def __len__(self) -> int:
        """Return the number of samples."""

    @abc.abstractmethod
    def __getitem__(self, index: SampleIndex) -> dict[str, NDArray[Any]]:
        """Return one sample, or several stacked along a new first dimension.

        Args:
            index: One sample's number (the tensors then have :attr:`sample_shape`), or a slice or integer array (the
                tensors then are ``[N, *sample_shape]``). Negative numbers count from the end.

        Returns:
            Arrays that the caller may change, by the names of the network's inputs.

        Raises:
            DatasetIndexError: There is no such sample.
            DatasetError: The index is none of these.
        """

    def read_into(self, index: SampleIndex, batch: Mapping[str, NDArray[Any]]) -> None:
        """Read several samples into arrays that are there, as the input pipeline does with shared memory.

        Args:
            index: A slice or integer array.
            batch: Arrays ``[N, ...]`` by the names of the network's inputs, as :meth:`__getitem__` would return them;
                the contents are replaced.

        Raises:
            DatasetError: An array is missing, or not of the samples' dtype and shape.
        """
        values = self[index]
        check_batch(batch, {name: TensorDescriptor(value.dtype, value.shape) for name, value in values.items()})
        for name, value in values.items():
            batch[name][...] = value

    def __iter__(self) -> Iterator[dict[str, NDArray[Any]]]:
        """Iterate once over the samples, one by one."""
        return (self[index] for index in range(len(self)))

    @property
    def sample_shape(self) -> tuple[int, ...]:
        """Shape of one sample, without the batch dimension, such as ``(3, 32, 32)``."""
        return tuple(np.shape(self[0][self.input_node]))

    @property
    def dtype(self) -> str:
        """NumPy's name for the dtype of the samples."""
        return np.asarray(self[0][self.input_node]).dtype.name

    @property
    def classes(self) -> int | None:
        """Number of classes; ``None`` when the labels are not class numbers (regression)."""
        return self._classes

    @property
    def loss(self) -> str:
        """Name of the loss that fits the labels: cross-entropy for class numbers, else the mean squared error.

        Raises:
            DatasetError: There are no labels.
        """
        if self.label_node is None:
            raise DatasetError("The data set has no labels, so there is no loss that fits it.")
        return "MeanSquaredError" if self.classes is None else "SoftmaxCrossEntropyLoss"

    @property
    def descriptors(self) -> dict[str, TensorDescriptor]:
        """Dtype and shape of a batch by name; the number of samples is the symbol ``"batch"``."""
        sample = {name: np.asarray(value) for name, value in self[0].items()}
        return {name: TensorDescriptor(value.dtype, ("batch", *value.shape)) for name, value in sample.items()}


def check_index(index: Any, length: int) -> int | slice | NDArray[np.int64]:
    """Return an index in the form that NumPy takes, after a check.

    Args:
        index: What was asked for.
        length: Number of samples.

    Raises:
        DatasetIndexError: A number is not among the samples.
        DatasetError: It is neither a number, a slice nor a sequence of numbers.
    """
    if isinstance(index, slice):
        return index
    numbers = np.asarray(index) if isinstance(index, (int, np.integer, np.ndarray, list, tuple, range)) else None
    if numbers is not None and numbers.size == 0 and numbers.ndim == 1:
        return np.zeros(0, np.int64)
    if numbers is None or numbers.dtype.kind not in "iu" or numbers.ndim > 1:
        raise DatasetError(
            f"Samples were asked for with {index!r}; accepted are a whole number, a slice, and a sequence or "
            f"one-dimensional array of whole numbers."
        )
    if numbers.min() < -length or numbers.max() >= length:
        outside = numbers[(numbers < -length) | (numbers >= length)]
        raise DatasetIndexError(f"There is no sample {outside.flat[0]}; the data set has {length}, numbered from 0.")
    return int(numbers) if numbers.ndim == 0 else numbers.astype(np.int64, copy=False)


def sample_numbers(where: int | slice | NDArray[np.int64], length: int) -> NDArray[np.int64]:
    """Return the numbers, from 0, of the samples that a checked index stands for."""
    if isinstance(where, slice):
        return np.arange(*where.indices(length), dtype=np.int64)
    numbers = np.atleast_1d(np.asarray(where, np.int64))
    return np.where(numbers < 0, numbers + length, numbers)


def check_batch(batch: Mapping[str, NDArray[Any]], expected: Mapping[str, TensorDescriptor]) -> None:
    """Check that arrays can take samples.

    Args:
        batch: The arrays by name.
        expected: What each must be.

    Raises:
        DatasetError: One is missing, or of another dtype or shape.
    """
    for name, descriptor in expected.items():
        array = batch.get(name)
        if array is None or array.dtype != descriptor.numpy_dtype or array.shape != descriptor.shape:
            received = "nothing" if array is None else f"{array.dtype.name} of shape {array.shape}"
            raise DatasetError(
                f"Samples are to be read into the array {name!r}, which is {received}; it must be {descriptor.dtype} "
                f"of shape {descriptor.shape}."
            )
