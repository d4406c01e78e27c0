"""Random samples of any shape and number, with labels that can be learned."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deep500.core.counts import check_count
from deep500.core.errors import DatasetError
from deep500.core.random import random_stream
from deep500.core.tensor_descriptor import TensorDescriptor
from deep500.datasets.dataset import Dataset, SampleIndex, check_index, sample_numbers

__all__ = ["synthetic"]

#: A class' pattern is repeated after so many elements, so that a thousand classes of images need no gigabyte.
_PATTERN = 1024

#: How much of a sample is its class' pattern, the rest is noise; squares add up to 1.
_SIGNAL = 0.5

_DTYPES = ("float32", "float64")


def synthetic(
    input_node: str = "input",
    label_node: str = "label",
    *,
    shape: Sequence[int] | int = (3, 32, 32),
    classes: int | None = 10,
    samples: int = 10_000,
    test_samples: int = 1_000,
    dtype: str = "float32",
    seed: int = 0,
) -> tuple[Dataset, Dataset]:
    r"""Return random samples that are computed when they are read, from the seed and their number alone.

    Noise is uniform with mean 0 and variance 1. With classes, a label is a random class, int64, and a sample is
    :math:`\sqrt{1 - 0.5^2}` of noise and :math:`0.5` of the class' pattern of :math:`\pm 1`, which repeats after 1,024
    elements. Without classes (regression), a sample is noise, and its label is float32 ``[1]``, a fixed weighted sum of
    the sample with mean 0 and variance 1. Nothing is stored, so that any number of samples costs nothing.

    Args:
        input_node: Name of the network's input that the samples are for.
        label_node: Name of the network's input that the labels are for.
        shape: Shape of a sample.
        classes: Number of classes; ``None`` for regression.
        samples: Size of the training set.
        test_samples: Size of the test set, whose samples follow those of the training set.
        dtype: ``"float32"`` or ``"float64"``.
        seed: Seed of the samples and of the patterns.

    Returns:
        The training set and the test set.

    Raises:
        DatasetError: An argument is not accepted.
        InvalidInputError: The seed is not accepted.
    """
    sizes = (shape,) if isinstance(shape, (int, np.integer)) else shape
    if isinstance(sizes, (str, bytes)) or not isinstance(sizes, Sequence) or not sizes:
        raise DatasetError(f"shape was given as {shape!r}; accepted are whole numbers from 1, such as (3, 32, 32).")
    checked = tuple(check_count("shape", size, least=1, error=DatasetError) for size in sizes)
    counts = [
        check_count(name, value, least=1, error=DatasetError)
        for name, value in (("samples", samples), ("test_samples", test_samples))
    ]
    if sum(counts) >= 2**63:
        raise DatasetError(f"samples and test_samples add up to {sum(counts)}; accepted is less than 2**63.")
    if dtype not in _DTYPES:
        raise DatasetError(f"dtype was given as {dtype!r}; accepted are {' and '.join(map(repr, _DTYPES))}.")
    train, test = (
        _SyntheticDataset(input_node, label_node, checked, classes, first, count, dtype, seed)
        for first, count in ((0, counts[0]), (counts[0], counts[1]))
    )
    return train, test


class _SyntheticDataset(Dataset):
    """See :func:`synthetic`."""

    def __init__(
        self,
        input_node: str,
        label_node: str,
        shape: tuple[int, ...],
        classes: int | None,
        first: int,
        count: int,
        dtype: str,
        seed: int,
    ) -> None:
        super().__init__(input_node, label_node, classes)
        self._shape = shape
        self._first = first
        self._count = count
        self._dtype = dtype
        self._elements = math.prod(shape)
        # One 64-bit number for the label and one for each two elements; a step of Philox' counter makes four.
        self._steps = -(-(1 + -(-self._elements // 2)) // 4)
        stream: Any = random_stream(seed, "dataset", "synthetic", "samples").bit_generator
        self._key = stream.state["state"]["key"]
        bits = random_stream(seed, "dataset", "synthetic", "patterns").bit_generator
        width = min(self._elements, _PATTERN)
        raw = np.asarray(bits.random_raw((self.classes or 1) * width)).reshape(-1, width)
        self._patterns = np.where(raw >> np.uint64(63), np.int8(1), np.int8(-1))

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, index: SampleIndex) -> dict[str, NDArray[Any]]:
        where = check_index(index, self._count)
        raw = self._raw(sample_numbers(where, self._count) + self._first)
        words = raw[:, 1:]
        # 24 bits an element: what float32 holds exactly, so that all machines compute the same.
        halves = np.stack([words & np.uint64(0xFFFFFFFF), words >> np.uint64(32)], axis=-1).reshape(
            len(raw), 2 * words.shape[1]
        )
        uniform = (halves[:, : self._elements] >> np.uint64(8)).astype(self._dtype) * np.dtype(self._dtype).type(2**-24)
        noise = (uniform * 2 - 1) * np.dtype(self._dtype).type(math.sqrt(3))
        repeated = np.arange(self._elements) % self._patterns.shape[1]
        labels: NDArray[Any]
        if self.classes is None:
            # In double precision, so that the rounded sum does not depend on its order.
            sums = (noise.astype(np.float64) * self._patterns[0, repeated]).sum(axis=1, keepdims=True)
            labels = (sums / math.sqrt(self._elements)).astype(np.float32)
        else:
            labels = (raw[:, 0] % np.uint64(self.classes)).astype(np.int64)
            noise *= noise.dtype.type(math.sqrt(1 - _SIGNAL**2))
            noise += noise.dtype.type(_SIGNAL) * self._patterns[labels][:, repeated]
        data = noise.reshape(len(noise), *self._shape)
        assert self.label_node is not None
        if isinstance(where, int):
            return {self.input_node: data[0], self.label_node: np.array(labels[0])}
        return {self.input_node: data, self.label_node: labels}

    def _raw(self, numbers: NDArray[np.int64]) -> NDArray[np.uint64]:
        """Return the random words of samples, ``[N, words]``: each has steps of the counter of its own."""
        out = np.empty((len(numbers), 4 * self._steps), np.uint64)
        # Samples that follow one another are drawn at once.
        ends = [*(np.flatnonzero(np.diff(numbers) != 1) + 1).tolist(), len(numbers)] if len(numbers) else []
        start = 0
        for end in ends:
            generator = np.random.Philox(key=self._key, counter=int(numbers[start]) * self._steps)
            out[start:end] = np.asarray(generator.random_raw((end - start) * 4 * self._steps)).reshape(end - start, -1)
            start = end
        return out

    @property
    def sample_shape(self) -> tuple[int, ...]:
        return self._shape

    @property
    def dtype(self) -> str:
        return self._dtype

    @property
    def descriptors(self) -> dict[str, TensorDescriptor]:
        assert self.label_node is not None
        label = (
            TensorDescriptor("float32", ("batch", 1)) if self.classes is None else TensorDescriptor("int64", ("batch",))
        )
        return {self.input_node: TensorDescriptor(self._dtype, ("batch", *self._shape)), self.label_node: label}
