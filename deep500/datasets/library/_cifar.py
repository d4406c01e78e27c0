"""Reading CIFAR-10 and CIFAR-100, in their binary and Python versions, unpacked or as the published archive."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from deep500.core.errors import DatasetError
from deep500.core.texts import shown_path
from deep500.datasets._archives import read_tar_members
from deep500.datasets._memory import LazyArrays
from deep500.datasets.download import RemoteFile, file_sha256, obtain
from deep500.datasets.folder import data_folder, may_download

__all__ = ["IMAGE_SHAPE", "Parts", "Version", "read_cifar", "records"]

#: Channels (red, green, blue), rows, columns.
IMAGE_SHAPE = (3, 32, 32)

_IMAGE_BYTES = 3 * 32 * 32

#: Images ``[N, 3, 32, 32]`` and labels ``[N]`` of a file's contents; the arguments are its name and its bytes.
Parser = Callable[[str, bytes], tuple[NDArray[np.uint8], NDArray[np.int64]]]


@dataclass(frozen=True)
class Version:
    """One of the forms in which the data set is published.

    Attributes:
        data_set: The data set's name, for messages.
        archive: The published archive.
        folder: The folder in the archive that holds the files.
        training_files: Names of the files of the training set, in order.
        test_file: Name of the file of the test set.
        digests: Published checksum of each file.
        digest: Name of the checksum, as :mod:`hashlib` knows it.
        published_bytes: Published size of each file.
    """

    data_set: str
    archive: RemoteFile
    folder: str
    training_files: tuple[str, ...]
    test_file: str
    digests: Mapping[str, str]
    digest: str
    published_bytes: Mapping[str, int]

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all files."""
        return (*self.training_files, self.test_file)


@dataclass(frozen=True)
class Parts:
    """What was read.

    Attributes:
        train: Images and labels of the training set.
        test: Images and labels of the test set.
        source: Where they were read, for messages.
    """

    train: LazyArrays
    test: LazyArrays
    source: str


def read_cifar(
    versions: Mapping[str, tuple[Version, Parser]], folder: str | PathLike[str] | None, *, verify: bool, download: bool
) -> Parts:
    """Find and read a data set.

    Each version is looked for unpacked, in its own folder and in the folder itself, and as its archive. Where there is
    none, the first version's archive is downloaded.

    Args:
        versions: The versions that are accepted, and what makes arrays of their files.
        folder: What the user named.
        verify: Whether the files must be the published ones.
        download: Whether the archive may be downloaded.

    Raises:
        DatasetError: There is nothing, a file is missing, damaged, or not the published one.
    """
    base = data_folder(folder).absolute()
    for version, parse in versions.values():
        for place in (base / version.folder, base, base / version.archive.name):
            if _is_there(version, place):
                return _parts(version, parse, place, verify)
    version, parse = next(iter(versions.values()))
    archive = obtain(version.data_set, version.archive, base, download=may_download(folder, download))
    return _parts(version, parse, archive, verify)


def records(
    data_set: str, name: str, content: bytes, *, label_bytes: int, label_at: int, classes: int
) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Return images ``[N, 3, 32, 32]`` and labels ``[N]`` of a file of the binary version.

    Each record is a few bytes of labels and 3,072 bytes, the image: red, green, then blue, each row by row.

    Args:
        data_set: The data set's name, for messages.
        name: Name of the file, for messages.
        content: Its bytes.
        label_bytes: How many bytes are labels.
        label_at: Which of them is wanted.
        classes: Number of classes.

    Raises:
        DatasetError: The file does not end with a record, or a label is out of range.
    """
    size = label_bytes + _IMAGE_BYTES
    if not content or len(content) % size:
        raise DatasetError(
            f"{data_set}'s {name} has {len(content):,} bytes, which is no multiple of the {size:,} bytes of a record: "
            f"it is truncated, or no such file. Get it again."
        )
    rows = np.frombuffer(content, dtype=np.uint8).reshape(-1, size)
    labels = rows[:, label_at].astype(np.int64)
    check_labels(data_set, name, labels, classes)
    return rows[:, label_bytes:].reshape(-1, *IMAGE_SHAPE), labels


def check_labels(data_set: str, name: str, labels: NDArray[np.int64], classes: int) -> None:
    """Check the labels of a file.

    Raises:
        DatasetError: One is out of range.
    """
    wrong = np.flatnonzero((labels < 0) | (labels >= classes))
    if wrong.size:
        raise DatasetError(
            f"{data_set}'s {name} has the label {labels[wrong[0]]} in record {wrong[0]}; labels are 0 to "
            f"{classes - 1}. Get it again."
        )


def _is_there(version: Version, place: Path) -> bool:
    if place.name == version.archive.name:
        return place.is_file()
    missing = [name for name in version.names if not (place / name).is_file()]
    if missing and len(missing) < len(version.names):
        raise DatasetError(
            f"{version.data_set} is incomplete: {shown_path(place)} lacks {', '.join(missing)}. {_advice(version)}"
        )
    return not missing


def _parts(version: Version, parse: Parser, place: Path, verify: bool) -> Parts:
    contents = _contents(version, place, version.names, verify)
    loaded = {
        names: _arrays(parse, {name: contents[name] for name in names})
        for names in (version.training_files, (version.test_file,))
    }
    train, test = (
        LazyArrays(functools.partial(_load, version, parse, place, names), arrays) for names, arrays in loaded.items()
    )
    return Parts(train, test, f"{version.data_set} in {shown_path(place)}")


def _load(
    version: Version, parse: Parser, place: Path, names: tuple[str, ...]
) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Read a part again, in another process; it was verified before."""
    return _arrays(parse, _contents(version, place, names, verify=False))


def _arrays(parse: Parser, contents: Mapping[str, bytes]) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    parts = [parse(name, content) for name, content in contents.items()]
    return np.concatenate([part[0] for part in parts]), np.concatenate([part[1] for part in parts])


def _contents(version: Version, place: Path, names: tuple[str, ...], verify: bool) -> dict[str, bytes]:
    if place.name != version.archive.name:
        contents = {name: _bytes(place / name) for name in names}
        where = shown_path(place) + "/"
    else:
        if verify:
            _check_archive(version, place)
        contents = read_tar_members(place, {f"{version.folder}/{name}": name for name in names}, _advice(version))
        where = f"{shown_path(place)}:{version.folder}/"
    if verify:
        for name, content in contents.items():
            _check_file(version, where + name, name, content)
    return contents


def _check_file(version: Version, where: str, name: str, content: bytes) -> None:
    digest = hashlib.new(version.digest, content, usedforsecurity=False).hexdigest()
    if digest == version.digests[name]:
        return
    size, published = "", version.published_bytes.get(name)
    if published is not None and len(content) != published:
        kind = "truncated: " if len(content) < published else ""
        size = f" It is {kind}{len(content):,} bytes instead of {published:,}."
    title = "SHA-256" if version.digest == "sha256" else version.digest.upper()
    raise DatasetError(
        f"{where} is not the published file: its {title} is {digest}, not {version.digests[name]}.{size} Get it again "
        f"from {version.archive.addresses[0]}, or use verify=False for files of your own."
    )


def _check_archive(version: Version, archive: Path) -> None:
    digest = file_sha256(archive)
    if digest != version.archive.sha256:
        raise DatasetError(
            f"{shown_path(archive)} is not the published archive: its SHA-256 is {digest}, not "
            f"{version.archive.sha256} ({archive.stat().st_size:,} bytes instead of {version.archive.size_bytes:,}). "
            f"Get it again from {version.archive.addresses[0]}, or use verify=False for files of your own."
        )


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise DatasetError(f"{shown_path(path)} cannot be read: {error}.") from error


def _advice(version: Version) -> str:
    return f"Get the archive again from {version.archive.addresses[0]} (SHA-256 {version.archive.sha256})."
