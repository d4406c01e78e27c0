"""A data set that lies in many files."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from deep500.core.errors import DatasetError
from deep500.core.texts import shown_path
from deep500.datasets._contents import FileTable
from deep500.datasets._encoded_dataset import DecodedDataset
from deep500.datasets._labels import has_nan
from deep500.datasets.decoding import ImageDecoder, image_size

__all__ = ["FileListDataset"]


class FileListDataset(DecodedDataset):
    """Samples that are files, one each, read and decoded when they are asked for.

    Only the files' names are held, as one block, so that a data set of a million files is quickly sent to another
    process. :meth:`~deep500.datasets.Dataset.read_into` decodes straight into arrays that are there.
    """

    def __init__(
        self,
        data: Iterable[str | PathLike[str]],
        data_node: str = "input",
        loader: Callable[[str], Any] | None = None,
        labels: ArrayLike | None = None,
        label_node: str | None = "label",
        classes: int | None = None,
        *,
        folder: str | PathLike[str] | None = None,
    ) -> None:
        """Name the files; the first one is read to learn the samples' shape, unless the loader knows it.

        Args:
            data: The files' names.
            data_node: Name of the network's input that the samples are for.
            loader: What makes a sample of a file: an :class:`~deep500.datasets.ImageDecoder`, or any function of a
                path that returns an array (a module's function, if the data set is to be used by several processes).
                By default, files that end with ``.npy`` are arrays, and all others are images, which must have the
                first one's size.
            labels: One label a file: integers are class numbers from 0, floating numbers are regression targets.
            label_node: Name of the network's input that the labels are for.
            classes: Number of classes; by default one more than the largest label.
            folder: What the names are relative to; by default the current folder.

        Raises:
            DatasetError: There are no files, the first one cannot be read, or the labels do not fit.
        """
        if isinstance(data, (str, bytes, PathLike)):
            raise DatasetError(f"data was given as {data!r}; accepted is a sequence of the names of files.")
        self._files = FileTable(data, None if folder is None else Path(folder))
        if not len(self._files):
            raise DatasetError("The data set was given no files; it needs at least one.")
        self._decoder, self._load = self._choose(loader)
        if self._decoder is not None:
            shape, dtype = self._decoder.shape, self._decoder.dtype
        else:
            first = self._loaded(0)
            shape, dtype = first.shape, first.dtype.name
        super().__init__(len(self._files), shape, dtype, data_node, labels, label_node, classes)

    def _choose(self, loader: Any) -> tuple[ImageDecoder | None, Callable[[str], Any] | None]:
        if isinstance(loader, ImageDecoder):
            return loader, None
        if loader is not None:
            if not callable(loader):
                raise DatasetError(f"loader was given as {loader!r}; accepted are ImageDecoder(...) and functions.")
            return None, loader
        if self._files.path(0).endswith(".npy"):
            return None, _load_array
        return ImageDecoder(image_size(self._files.read(0), self._files.where(0)), fit="exact"), None

    def read_sample(self, number: int, out: NDArray[Any]) -> None:
        """Decode one file into an array."""
        if self._decoder is not None:
            self._decoder.decode_into(self._files.read(number), out, self._files.where(number))
            return
        values = self._loaded(number)
        if values.shape != self._shape or values.dtype.name != self._dtype:
            raise DatasetError(
                f"{self._files.where(number)} holds {values.dtype.name} of shape {values.shape}; like the first file "
                f"it must hold {self._dtype} of shape {self._shape}."
            )
        out[...] = values

    def _loaded(self, number: int) -> NDArray[Any]:
        assert self._load is not None
        values = np.asarray(self._load(self._files.path(number)))
        if values.dtype.kind not in "biufV":
            raise DatasetError(
                f"{self._files.where(number)} was loaded as {values.dtype.name}; accepted are arrays of numbers."
            )
        if has_nan(values):
            raise DatasetError(f"{self._files.where(number)} holds NaN; repair or leave out the file.")
        return values


def _load_array(path: str) -> Any:
    try:
        return np.load(path, allow_pickle=False)
    except (OSError, EOFError, ValueError) as error:
        raise DatasetError(
            f"{shown_path(path)} cannot be read as a NumPy array: it is truncated, damaged or holds objects: {error}"
        ) from error
