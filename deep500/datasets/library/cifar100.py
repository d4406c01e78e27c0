"""Small colour photographs of a hundred kinds of things."""

from __future__ import annotations

import functools
from os import PathLike

from deep500.core.errors import DatasetError
from deep500.datasets._pixels import PixelDataset, PixelScale, pixel_statistics
from deep500.datasets.dataset import Dataset
from deep500.datasets.download import RemoteFile
from deep500.datasets.library._cifar import Version, read_cifar, records
from deep500.datasets.library._cifar_pickle import parse_pickle

__all__ = ["cifar100"]

#: Number of classes, and which byte of a record holds the class, by the name of the labels.
_LABELS = {"fine": (100, 1), "coarse": (20, 0)}

#: The archive's SHA-256 is that of TensorFlow Datasets' url_checksums/cifar100.txt, its files' are those of the
#: red-datasets package's CIFAR-100.
BINARY = Version(
    data_set="CIFAR-100",
    archive=RemoteFile(
        "cifar-100-binary.tar.gz",
        ("https://www.cs.toronto.edu/~kriz/cifar-100-binary.tar.gz",),
        "58a81ae192c23a4be8b1804d68e518ed807d710a4eb253b1f2a199162a40d8ec",
        168_513_733,
    ),
    folder="cifar-100-binary",
    training_files=("train.bin",),
    test_file="test.bin",
    digests={
        "train.bin": "f31298fc616915fa142368359df1c4ca2ae984d6915ca468b998a5ec6aeebf29",
        "test.bin": "d8b1e6b7b3bee4020055f0699b111f60b1af1e262aeb93a0b659061746f8224a",
    },
    digest="sha256",
    published_bytes={"train.bin": 153_700_000, "test.bin": 30_740_000},
)

#: The archive's SHA-256 is that of Keras (datasets/cifar100.py); of its files, MD5 alone is published (torchvision).
PYTHON = Version(
    data_set="CIFAR-100",
    archive=RemoteFile(
        "cifar-100-python.tar.gz",
        ("https://www.cs.toronto.edu/~kriz/cifar-100-python.tar.gz",),
        "85cd44d02ba6437773c5bbd22e183051d648de2e7d6b014e1ef29b855ba677a7",
        169_001_437,
    ),
    folder="cifar-100-python",
    training_files=("train",),
    test_file="test",
    digests={"train": "16019d7e3df5f24257cddd939b257f8d", "test": "f0ef6b0ae62326f3e7ffdfab6717acfc"},
    digest="md5",
    published_bytes={},
)


def cifar100(
    input_node: str = "input",
    label_node: str = "label",
    *,
    folder: str | PathLike[str] | None = None,
    labels: str = "fine",
    normalize: bool = True,
    verify: bool = True,
    download: bool = True,
) -> tuple[Dataset, Dataset]:
    """Return CIFAR-100: 50,000 training and 10,000 test images of 32 x 32 pixels in a hundred classes.

    Images are float32 ``[3, 32, 32]`` (red, green, blue): the bytes divided by 255, less the channel's mean over the
    training set, divided by its standard deviation; both are taken from the training files, to four digits. Labels are
    int64 from 0 to 99, in the alphabetical order of the classes' names; or, the coarse ones, from 0 to 19. The test set
    is the published one.

    The binary version (``cifar-100-binary.tar.gz``) or the Python version (``cifar-100-python.tar.gz``, whose pickles
    are read without running them) is read from a folder, unpacked or as it is. Where there is none, the binary version
    is downloaded.

    Args:
        input_node: Name of the network's input that the images are for.
        label_node: Name of the network's input that the labels are for.
        folder: Where it lies; by default, see :func:`deep500.datasets.folder.data_folder`.
        labels: ``"fine"`` for the hundred classes, ``"coarse"`` for the twenty that they belong to.
        normalize: Whether to take off the mean and to divide by the standard deviation; else pixels are from 0 to 1.
        verify: Whether the files must be the published ones, by SHA-256 (by MD5 those of the unpacked Python version,
            of which no other checksum is published). Otherwise any number of images in the format is accepted.
        download: Whether it may be downloaded where it is missing (169 MB), unless the environment variable
            ``DEEP500_OFFLINE`` is set. Nothing is downloaded to a ``folder`` that does not exist.

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
    if labels not in _LABELS:
        raise DatasetError(f"labels was given as {labels!r}; accepted are 'fine' (100 classes) and 'coarse' (20).")
    classes, label_at = _LABELS[labels]
    versions = {
        "binary": (BINARY, functools.partial(records, "CIFAR-100", label_bytes=2, label_at=label_at, classes=classes)),
        "python": (PYTHON, functools.partial(parse_pickle, "CIFAR-100", f"{labels}_labels", classes)),
    }
    parts = read_cifar(versions, folder, verify=verify, download=download)
    mean, deviation = pixel_statistics(parts.train.get()[0]) if normalize else (None, None)
    scale = PixelScale(3, mean, deviation)
    train, test = (
        PixelDataset(arrays, input_node, label_node, classes, scale, parts.source)
        for arrays in (parts.train, parts.test)
    )
    return train, test
