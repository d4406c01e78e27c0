"""Small colour photographs of ten kinds of things."""

from __future__ import annotations

from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deep500.core.errors import DatasetError
from deep500.datasets.dataset import Dataset, SampleIndex
from deep500.datasets.folder import data_folder
from deep500.datasets.library._cifar10_files import IMAGE_SHAPE, TEST_FILE, TRAINING_FILES, parse_records, read_files
from deep500.datasets.numpy_dataset import NumpyDataset

__all__ = ["cifar10"]

#: Mean and standard deviation of the published training images, from 0 to 1, for red, green and blue.
_MEAN = (0.4914, 0.4822, 0.4465)
_STANDARD_DEVIATION = (0.2470, 0.2435, 0.2616)


class _PixelDataset(Dataset):
    """Images kept as bytes and converted when they are read, a quarter of the memory."""

    def __init__(
        self,
        images: NDArray[np.uint8],
        labels: NDArray[np.int64],
        input_node: str,
        label_node: str,
        mean: tuple[float, ...],
        standard_deviation: tuple[float, ...],
    ) -> None:
        super().__init__(input_node, label_node, classes=10)
        self._bytes = NumpyDataset(images, input_node, labels, label_node, classes=10)
        self._mean = np.array(mean, np.float32).reshape(-1, 1, 1)
        self._standard_deviation = np.array(standard_deviation, np.float32).reshape(-1, 1, 1)

    def __len__(self) -> int:
        return len(self._bytes)

    def __getitem__(self, index: SampleIndex) -> dict[str, NDArray[Any]]:
        sample = self._bytes[index]
        pixels = sample[self.input_node].astype(np.float32) / np.float32(255)
        sample[self.input_node] = (pixels - self._mean) / self._standard_deviation
        return sample

    @property
    def sample_shape(self) -> tuple[int, ...]:
        return IMAGE_SHAPE

    @property
    def dtype(self) -> str:
        return "float32"


def cifar10(
    input_node: str = "input",
    label_node: str = "label",
    *,
    folder: str | PathLike[str] | None = None,
    normalize: bool = True,
    verify: bool = True,
) -> tuple[Dataset, Dataset]:
    """Return CIFAR-10: 50,000 training and 10,000 test images of 32 x 32 pixels in ten classes.

    Images are float32 ``[3, 32, 32]`` (red, green, blue): the bytes divided by 255, less the channel's mean over the
    training set (0.4914, 0.4822, 0.4465), divided by its standard deviation (0.2470, 0.2435, 0.2616). Labels are int64
    from 0 to 9: airplane, automobile, bird, cat, deer, dog, frog, horse, ship, truck. The test set is the published
    one.

    The binary version of the data set (``cifar-10-binary.tar.gz``) is read from a folder, unpacked
    (``cifar-10-batches-bin``) or as it is; nothing is downloaded, and nothing is written.

    Args:
        input_node: Name of the network's input that the images are for.
        label_node: Name of the network's input that the labels are for.
        folder: Where it lies; by default the environment variable ``DEEP500_DATA``, else the user's cache, see
            :func:`deep500.datasets.folder.data_folder`.
        normalize: Whether to take off the mean and to divide by the standard deviation; else pixels are from 0 to 1.
        verify: Whether the files must be the published ones, by SHA-256. Otherwise any files of the format are
            accepted, with any number of images.

    Returns:
        The training set and the test set.

    Raises:
        DatasetError: The files are not there (the message says how to get them), damaged, or not the published ones.

    Source: A. Krizhevsky, "Learning Multiple Layers of Features from Tiny Images", technical report, 2009;
    https://www.cs.toronto.edu/~kriz/cifar.html.
    """
    for name, value in (("normalize", normalize), ("verify", verify)):
        if not isinstance(value, bool):
            raise DatasetError(f"{name} was given as {value!r}; accepted are True and False.")
    contents = read_files(data_folder(folder), verify=verify)
    mean, deviation = (_MEAN, _STANDARD_DEVIATION) if normalize else ((0.0,) * 3, (1.0,) * 3)

    def dataset(names: tuple[str, ...]) -> Dataset:
        parts = [parse_records(name, contents[name]) for name in names]
        images = np.concatenate([part[0] for part in parts])
        labels = np.concatenate([part[1] for part in parts])
        return _PixelDataset(images, labels, input_node, label_node, mean, deviation)

    return dataset(TRAINING_FILES), dataset((TEST_FILE,))
