"""WebDataset shards: tar archives whose members are samples, read where they lie.

The members of a sample follow one another and share a name up to its first dot: ``0001.jpg``, ``0001.cls``. An index of
the image's place and the label is made by one pass over the headers; nothing is extracted.

Source: the WebDataset format, https://github.com/webdataset/webdataset.
"""

from __future__ import annotations

import json
import os
import tarfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deep500.core.errors import DatasetError
from deep500.core.texts import shown_path
from deep500.datasets._archives import check_member_path
from deep500.datasets._contents import FileTable

__all__ = ["Shards"]

_IMAGES = ("jpg", "jpeg", "png", "ppm", "webp")
_LABELS = ("cls", "json")
_BLOCK_BYTES = 512

#: No label is longer; what is, is no label, and is not read.
_LONGEST_LABEL_BYTES = 1 << 20


@dataclass
class _Sample:
    key: str
    shard: int
    image: tuple[int, int] | None = None
    label: int | None = None


class Shards:
    """Images in tar archives, by number, in the order of archives and members.

    Attributes:
        labels: The class number of each image, int64.
    """

    def __init__(self, paths: Sequence[Path]) -> None:
        """Make the index.

        Args:
            paths: The archives, in order.

        Raises:
            DatasetError: An archive is truncated, damaged, or holds something that is no sample.
        """
        self._paths = FileTable([path.absolute() for path in paths])
        found = [sample for number, path in enumerate(paths) for sample in _samples(path, number)]
        self._shards = np.array([sample.shard for sample in found], np.int32)
        self._places: NDArray[np.int64] = np.array([sample.image for sample in found], np.int64).reshape(-1, 2)
        self.labels: NDArray[np.int64] = np.array([sample.label for sample in found], np.int64)
        self._open: dict[int, int] = {}

    def __len__(self) -> int:
        return len(self._shards)

    def read(self, number: int) -> bytes:
        """Return the bytes of one image.

        Raises:
            DatasetError: The archive cannot be read, or is shorter than it was.
        """
        start, size = (int(value) for value in self._places[number])
        try:
            content = os.pread(self._handle(int(self._shards[number])), size, start)
        except OSError as error:
            raise DatasetError(f"{self.where(number)} cannot be read: {error.strerror or error}.") from error
        if len(content) < size:
            raise DatasetError(f"{self.where(number)} cannot be read: the archive was cut after it was indexed.")
        return content

    def where(self, number: int) -> str:
        """Return the archive, and where in it the image lies."""
        return f"{self._paths.where(int(self._shards[number]))}, byte {int(self._places[number, 0]):,}"

    def _handle(self, shard: int) -> int:
        # Reading at a place (pread) moves nothing, so threads and forked processes may share the handle.
        handle = self._open.get(shard)
        if handle is None:
            opened = os.open(self._paths.path(shard), os.O_RDONLY | os.O_CLOEXEC)
            handle = self._open.setdefault(shard, opened)
            if handle != opened:  # another thread was faster
                os.close(opened)
        return handle

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_open": {}}

    def __del__(self) -> None:
        for handle in self.__dict__.get("_open", {}).values():
            os.close(handle)


def _samples(path: Path, shard: int) -> Iterator[_Sample]:
    """Go through one archive."""
    sample: _Sample | None = None
    try:
        with path.open("rb") as file, tarfile.open(fileobj=file, mode="r:") as tar:
            for member in tar:
                name = check_member_path(path, member.name)
                if member.isdir():
                    continue
                if not member.isreg():
                    raise DatasetError(f"{shown_path(path)} holds {member.name!r}, which is no plain file.")
                key, extension = _key(name)
                if sample is None or sample.key != key:
                    if sample is not None:
                        yield _complete(path, sample)
                    sample = _Sample(key, shard)
                _add(path, tar, member, sample, extension)
            _check_end(path, file, tar.offset)
    except (tarfile.TarError, EOFError, OSError) as error:
        raise DatasetError(
            f"{shown_path(path)} cannot be read: {error}. Accepted are tar archives that are not compressed."
        ) from error
    if sample is not None:
        yield _complete(path, sample)


def _add(path: Path, tar: tarfile.TarFile, member: tarfile.TarInfo, sample: _Sample, extension: str) -> None:
    place = f"{shown_path(path)}: {member.name!r}"
    if extension in ("tar", "tgz", "tar.gz"):
        raise DatasetError(
            f"{place} is an archive itself: this is the published archive of archives, not a WebDataset shard. Unpack "
            f"both, to train/CLASS/*.JPEG."
        )
    if extension in _IMAGES:
        if sample.image is not None:
            raise DatasetError(f"{place} is the second image of its sample.")
        sample.image = (member.offset_data, member.size)
    elif extension in _LABELS and sample.label is None:
        if member.size > _LONGEST_LABEL_BYTES:
            raise DatasetError(f"{place} has {member.size:,} bytes, too many for a label.")
        file = tar.extractfile(member)
        sample.label = _label(place, b"" if file is None else file.read(), extension)


def _label(place: str, content: bytes, extension: str) -> int | None:
    try:
        value: Any = int(content) if extension == "cls" else json.loads(content).get("label")
    except (ValueError, AttributeError, RecursionError) as error:
        raise DatasetError(f"{place} holds no label: {error}. Accepted is a whole number.") from error
    if value is None:  # other facts of the sample; the label is in a file of its own
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**31:
        raise DatasetError(f"{place} holds the label {value!r}; accepted are whole numbers from 0.")
    return value


def _complete(path: Path, sample: _Sample) -> _Sample:
    if sample.image is None or sample.label is None:
        lacks = f"image ({', '.join(_IMAGES)})" if sample.image is None else f"label ({', '.join(_LABELS)})"
        raise DatasetError(f"{shown_path(path)}: the sample {sample.key!r} has no {lacks}.")
    return sample


def _key(name: PurePosixPath) -> tuple[str, str]:
    stem, _, extension = name.name.partition(".")
    return (name.parent / stem).as_posix(), extension.lower()


def _check_end(path: Path, file: Any, offset: int) -> None:
    """Check that zeros end the archive: one that was cut between two members looks right but for them."""
    file.seek(max(offset - _BLOCK_BYTES, 0))
    # tarfile stops behind the first block of zeros, or at the end of a file that has none.
    last = file.read(2 * _BLOCK_BYTES)
    if bytes(_BLOCK_BYTES) not in (last[:_BLOCK_BYTES], last[_BLOCK_BYTES:]):
        raise DatasetError(f"{shown_path(path)} is truncated: it lacks the zeros that end a tar archive. Get it again.")
