"""Small colour photographs of ten kinds of things."""

from __future__ import annotations

import functools
from os import PathLike

from deep500.core.errors import DatasetError
from deep500.datasets._pixels import PixelDataset, PixelScale
from deep500.datasets.dataset import Dataset
from deep500.datasets.download import RemoteFile
from deep500.datasets.library._cifar import Version, read_cifar, records
from deep500.datasets.library._cifar_pickle import parse_pickle

__all__ = ["cifar10"]

#: Mean and standard deviation of the published training images, from 0 to 1, for red, green and blue.
_MEAN = (0.4914, 0.4822, 0.4465)
_STANDARD_DEVIATION = (0.2470, 0.2435, 0.2616)

_BINARY_NAMES = (*(f"data_batch_{number}.bin" for number in range(1, 6)), "test_batch.bin")
_PYTHON_NAMES = (*(f"data_batch_{number}" for number in range(1, 6)), "test_batch")

#: The archive's SHA-256 is also that of TensorFlow Datasets' url_checksums/cifar10.txt.
BINARY = Version(
    data_set="CIFAR-10",
    archive=RemoteFile(
        "cifar-10-binary.tar.gz",
        ("https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",),
        "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd",
        170_052_171,
    ),
    folder="cifar-10-batches-bin",
    training_files=_BINARY_NAMES[:5],
    test_file=_BINARY_NAMES[5],
    digests={
        "data_batch_1.bin": "cee916563c9f80d84e3cc88e17fdc0941787f1244f00a67874d45b261883ada5",
        "data_batch_2.bin": "a591ca11fa1708a91ee40f54b3da4784ccd871ecf2137de63f51ada8b3fa57ed",
        "data_batch_3.bin": "bbe8596564c0f86427f876058170b84dac6670ddf06d79402899d93ceea26f67",
        "data_batch_4.bin": "014e562d6e23c72197cc727519169a60359f5eccd8945ad5a09d710285ff4e48",
        "data_batch_5.bin": "755304fc0b379caeae8c14f0dac912fbc7d6cd469eb67a1029a08a39453a9add",
        "test_batch.bin": "8e2eb146ae340b09e24670f29cabc6326dba54da8789dab6768acf480273f65b",
    },
    digest="sha256",
    published_bytes=dict.fromkeys(_BINARY_NAMES, 30_730_000),
)

#: The archive's SHA-256 is that of Keras (datasets/cifar10.py); of its files, MD5 alone is published (torchvision).
PYTHON = Version(
    data_set="CIFAR-10",
    archive=RemoteFile(
        "cifar-10-python.tar.gz",
        ("https://www.cs.toronto.edu/~kriz/cifar-10-python.tar.gz",),
        "6d958be074577803d12ecdefd02955f39262c83c16fe9348329d7fe0b5c001ce",
        170_498_071,
    ),
    folder="cifar-10-batches-py",
    training_files=_PYTHON_NAMES[:5],
    test_file=_PYTHON_NAMES[5],
    digests={
        "data_batch_1": "c99cafc152244af753f735de768cd75f",
        "data_batch_2": "d4bba439e000b95fd0a9bffe97cbabec",
        "data_batch_3": "54ebc095f3ab1f0389bbae665268c751",
        "data_batch_4": "634d18415352ddfa80567beed471001a",
        "data_batch_5": "482c414d41f54cd18b22e5b47cb7c3cb",
        "test_batch": "40351d587109b95175f43aff81a1287e",
    },
    digest="md5",
    published_bytes={},
)


def cifar10(
    input_node: str = "input",
    label_node: str = "label",
    *,
    folder: str | PathLike[str] | None = None,
    normalize: bool = True,
    verify: bool = True,
    download: bool = True,
) -> tuple[Dataset, Dataset]:
    """Return CIFAR-10: 50,000 training and 10,000 test images of 32 x 32 pixels in ten classes.

    Images are float32 ``[3, 32, 32]`` (red, green, blue): the bytes divided by 255, less the channel's mean over the
    training set (0.4914, 0.4822, 0.4465), divided by its standard deviation (0.2470, 0.2435, 0.2616). Labels are int64
    from 0 to 9: airplane, automobile, bird, cat, deer, dog, frog, horse, ship, truck. The test set is the published
    one.

    The binary version (``cifar-10-binary.tar.gz``) or the Python version (``cifar-10-python.tar.gz``, whose pickles are
    read without running them) is read from a folder, unpacked or as it is. Where there is none, the binary version is
    downloaded.

    Args:
        input_node: Name of the network's input that the images are for.
        label_node: Name of the network's input that the labels are for.
        folder: Where it lies; by default the environment variable ``DEEP500_DATA``, else the user's cache, see
            :func:`deep500.datasets.folder.data_folder`.
        normalize: Whether to take off the mean and to divide by the standard deviation; else pixels are from 0 to 1.
        verify: Whether the files must be the published ones, by SHA-256 (by MD5 those of the unpacked Python version,
            of which no other checksum is published). Otherwise any files of the format are accepted, with any number
            of images.
        download: Whether it may be downloaded where it is missing (170 MB), unless the environment variable
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
    versions = {
        "binary": (BINARY, functools.partial(records, "CIFAR-10", label_bytes=1, label_at=0, classes=10)),
        "python": (PYTHON, functools.partial(parse_pickle, "CIFAR-10", "labels", 10)),
    }
    parts = read_cifar(versions, folder, verify=verify, download=download)
    scale = PixelScale(3, _MEAN if normalize else None, _STANDARD_DEVIATION if normalize else None)
    train, test = (
        PixelDataset(arrays, input_node, label_node, 10, scale, parts.source) for arrays in (parts.train, parts.test)
    )
    return train, test
