"""Compressed images that are decoded when they are read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from deep500.core.errors import DatasetError
from deep500.core.tensor_descriptor import TensorDescriptor
from deep500.datasets._contents import Contents
from deep500.datasets._labels import checked_labels
from deep500.datasets.dataset import Dataset, SampleIndex, check_batch, check_index, sample_numbers
from deep500.datasets.decoding import ImageDecoder

__all__ = ["DecodedDataset", "EncodedDataset"]


class DecodedDataset(Dataset):
    """Samples that are made one by one, each straight into its place in the batch.

    A subclass implements :meth:`read_sample`.

    Attributes:
        labels: The labels, ``[N, ...]``; ``None`` without labels.
    """

    def __init__(
        self,
        samples: int,
        shape: tuple[int, ...],
        dtype: str,
        input_node: str,
        labels: ArrayLike | None,
        label_node: str | None,
        classes: int | None,
    ) -> None:
        """Keep what is known of the samples, and the labels.

        Raises:
            DatasetError: There are no samples, or the labels do not fit.
        """
        if samples < 1:
            raise DatasetError("The data set was given no samples; it needs at least one.")
        self.labels: NDArray[Any] | None = None
        if labels is not None:
            if label_node is None:
                raise DatasetError("Labels were given with label_node=None. Name the input that they are for.")
            self.labels, classes = checked_labels(labels, samples, classes)
        elif classes is not None:
            raise DatasetError(f"classes was given as {classes!r} without labels. Give labels too.")
        super().__init__(input_node, None if labels is None else label_node, classes)
        self._samples = samples
        self._shape = tuple(shape)
        self._dtype = dtype

    def read_sample(self, number: int, out: NDArray[Any]) -> None:
        """Write one sample.

        Args:
            number: Its number, from 0.
            out: Where to, an array of :attr:`sample_shape` and :attr:`dtype`.
        """
        raise NotImplementedError

    def __len__(self) -> int:
        return self._samples

    def __getitem__(self, index: SampleIndex) -> dict[str, NDArray[Any]]:
        where = check_index(index, self._samples)
        numbers = sample_numbers(where, self._samples)
        data = np.empty((len(numbers), *self._shape), self._dtype)
        self._read(numbers, data)
        alone = isinstance(where, int)
        batch = {self.input_node: data[0] if alone else data}
        if self.labels is not None and self.label_node is not None:
            batch[self.label_node] = np.array(self.labels[where])
        return batch

    def read_into(self, index: SampleIndex, batch: Mapping[str, NDArray[Any]]) -> None:
        numbers = sample_numbers(check_index(index, self._samples), self._samples)
        count = len(numbers)
        described = {
            name: TensorDescriptor(d.dtype, (count, *(d.shape or ())[1:])) for name, d in self.descriptors.items()
        }
        check_batch(batch, described)
        self._read(numbers, batch[self.input_node])
        if self.labels is not None and self.label_node is not None:
            np.take(self.labels, numbers, axis=0, out=batch[self.label_node])

    def _read(self, numbers: NDArray[np.int64], data: NDArray[Any]) -> None:
        for place, number in enumerate(numbers.tolist()):
            self.read_sample(number, data[place])

    @property
    def sample_shape(self) -> tuple[int, ...]:
        return self._shape

    @property
    def dtype(self) -> str:
        return self._dtype

    @property
    def descriptors(self) -> dict[str, TensorDescriptor]:
        found = {self.input_node: TensorDescriptor(self._dtype, ("batch", *self._shape))}
        if self.labels is not None and self.label_node is not None:
            found[self.label_node] = TensorDescriptor(self.labels.dtype, ("batch", *self.labels.shape[1:]))
        return found


class EncodedDataset(DecodedDataset):
    """Images as files, or as members of archives."""

    def __init__(
        self,
        contents: Contents,
        decoder: ImageDecoder,
        input_node: str,
        labels: ArrayLike | None,
        label_node: str | None,
        classes: int | None,
    ) -> None:
        """Keep where the images lie; none is read.

        Args:
            contents: The images' bytes.
            decoder: What decodes them.
            input_node: Name of the network's input that the images are for.
            labels: One label an image.
            label_node: Name of the network's input that the labels are for.
            classes: Number of classes.

        Raises:
            DatasetError: There are no images, or the labels do not fit.
        """
        super().__init__(len(contents), decoder.shape, decoder.dtype, input_node, labels, label_node, classes)
        self._contents = contents
        self._decoder = decoder

    def read_sample(self, number: int, out: NDArray[Any]) -> None:
        self._decoder.decode_into(self._contents.read(number), out, self._contents.where(number))
