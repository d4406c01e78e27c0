"""Reading CIFAR-10's binary files, from a folder or from the published archive, which is never unpacked to disk."""

from __future__ import annotations

import gzip
import hashlib
import tarfile
import zlib
from pathlib import Path, PurePosixPath

import numpy as np
from numpy.typing import NDArray

from deep500.core.errors import DatasetError
from deep500.core.texts import shown_path

__all__ = ["ARCHIVE", "BATCH_FOLDER", "IMAGE_SHAPE", "TEST_FILE", "TRAINING_FILES", "parse_records", "read_files"]

URL = "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz"
ARCHIVE = "cifar-10-binary.tar.gz"
ARCHIVE_SHA256 = "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd"

BATCH_FOLDER = "cifar-10-batches-bin"
TRAINING_FILES = tuple(f"data_batch_{number}.bin" for number in range(1, 6))
TEST_FILE = "test_batch.bin"

SHA256 = {
    "data_batch_1.bin": "cee916563c9f80d84e3cc88e17fdc0941787f1244f00a67874d45b261883ada5",
    "data_batch_2.bin": "a591ca11fa1708a91ee40f54b3da4784ccd871ecf2137de63f51ada8b3fa57ed",
    "data_batch_3.bin": "bbe8596564c0f86427f876058170b84dac6670ddf06d79402899d93ceea26f67",
    "data_batch_4.bin": "014e562d6e23c72197cc727519169a60359f5eccd8945ad5a09d710285ff4e48",
    "data_batch_5.bin": "755304fc0b379caeae8c14f0dac912fbc7d6cd469eb67a1029a08a39453a9add",
    "test_batch.bin": "8e2eb146ae340b09e24670f29cabc6326dba54da8789dab6768acf480273f65b",
}

#: Channels (red, green, blue), rows, columns.
IMAGE_SHAPE = (3, 32, 32)

_RECORD_BYTES = 1 + 3 * 32 * 32
_PUBLISHED_BYTES = 10_000 * _RECORD_BYTES
_CLASSES = 10


def read_files(folder: Path, *, verify: bool) -> dict[str, bytes]:
    """Return the contents of the six files by name.

    They are looked for in ``folder/cifar-10-batches-bin``, in ``folder`` itself, and in
    ``folder/cifar-10-binary.tar.gz``, in this order.

    Args:
        folder: Where the data set lies.
        verify: Whether each file, or the archive, must have its published SHA-256.

    Raises:
        DatasetError: There is nothing, a file is missing, or one is not the published one.
    """
    names = (*TRAINING_FILES, TEST_FILE)
    for place in (folder / BATCH_FOLDER, folder):
        missing = [name for name in names if not (place / name).is_file()]
        if len(missing) < len(names):
            if missing:
                raise DatasetError(
                    f"CIFAR-10 is incomplete: {shown_path(place)} lacks {', '.join(missing)}. {_how_to_get(folder)}"
                )
            contents = {name: _bytes(place / name) for name in names}
            if verify:
                for name, content in contents.items():
                    _check_file(shown_path(place / name), name, content)
            return contents
    archive = folder / ARCHIVE
    if not archive.is_file():
        raise DatasetError(
            f"CIFAR-10 is not there: {shown_path(folder)} holds no {BATCH_FOLDER} and no {ARCHIVE}. "
            f"{_how_to_get(folder)}"
        )
    if verify:
        _check_archive(archive)
    contents = _read_archive(archive, names)
    if verify:
        for name, content in contents.items():
            _check_file(f"{shown_path(archive)}:{BATCH_FOLDER}/{name}", name, content)
    return contents


def parse_records(name: str, content: bytes) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Return images ``[N, 3, 32, 32]`` and labels ``[N]`` of a file.

    Each record is one byte, the label, and 3,072 bytes, the image: red, green, then blue, each row by row.

    Args:
        name: Name of the file, for messages.
        content: Its bytes.

    Raises:
        DatasetError: The file does not end with a record, or a label is above 9.
    """
    if not content or len(content) % _RECORD_BYTES:
        raise DatasetError(
            f"CIFAR-10's {name} has {len(content):,} bytes, which is no multiple of the {_RECORD_BYTES:,} bytes of a "
            f"record: it is truncated, or no such file. Get it again."
        )
    records = np.frombuffer(content, dtype=np.uint8).reshape(-1, _RECORD_BYTES)
    labels = records[:, 0].astype(np.int64)
    wrong = np.flatnonzero(labels >= _CLASSES)
    if wrong.size:
        raise DatasetError(
            f"CIFAR-10's {name} has the label {labels[wrong[0]]} in record {wrong[0]}; labels are 0 to 9. Get it again."
        )
    return records[:, 1:].reshape(-1, *IMAGE_SHAPE), labels


def _read_archive(archive: Path, names: tuple[str, ...]) -> dict[str, bytes]:
    wanted = {f"{BATCH_FOLDER}/{name}": name for name in names}
    contents: dict[str, bytes] = {}
    try:
        with gzip.open(archive) as stream, tarfile.open(fileobj=stream, mode="r:") as tar:
            for member in tar:
                path = PurePosixPath(member.name)
                # Nothing is written to disk, so this could do no harm here; but it is not what was published.
                if path.is_absolute() or ".." in path.parts:
                    raise DatasetError(
                        f"{shown_path(archive)} holds {member.name!r}, which leads out of it. {_not_published()}"
                    )
                name = wanted.get(path.as_posix())
                if name is None:
                    continue
                file = tar.extractfile(member) if member.isreg() else None
                if file is None or name in contents:
                    kind = "twice" if name in contents else "as something else than a plain file"
                    raise DatasetError(f"{shown_path(archive)} holds {member.name!r} {kind}. {_not_published()}")
                contents[name] = file.read()
            while stream.read(1 << 20):  # gzip checks its sum at the end, which tarfile does not read
                continue
    except (tarfile.TarError, EOFError, zlib.error, OSError) as error:
        raise DatasetError(f"{shown_path(archive)} cannot be read: {error}. {_not_published()}") from error
    missing = [name for name in names if name not in contents]
    if missing:
        raise DatasetError(f"{shown_path(archive)} lacks {', '.join(missing)}. {_not_published()}")
    return contents


def _check_file(where: str, name: str, content: bytes) -> None:
    digest = hashlib.sha256(content).hexdigest()
    if digest == SHA256[name]:
        return
    size = ""
    if len(content) != _PUBLISHED_BYTES:
        kind = "truncated: " if len(content) < _PUBLISHED_BYTES else ""
        size = f" It is {kind}{len(content):,} bytes instead of {_PUBLISHED_BYTES:,}."
    raise DatasetError(
        f"{where} is not the published file: its SHA-256 is {digest}, not {SHA256[name]}.{size} Get it again from "
        f"{URL}, or use verify=False for files of your own."
    )


def _check_archive(archive: Path) -> None:
    digest = _file_sha256(archive)
    if digest != ARCHIVE_SHA256:
        raise DatasetError(
            f"{shown_path(archive)} is not the published archive: its SHA-256 is {digest}, not {ARCHIVE_SHA256} "
            f"({archive.stat().st_size:,} bytes). Get it again from {URL}, or use verify=False for files of your own."
        )


def _file_sha256(path: Path) -> str:
    digest = hashlib.sha256()
    try:
        with path.open("rb") as file:
            while block := file.read(1 << 20):
                digest.update(block)
    except OSError as error:
        raise DatasetError(f"{shown_path(path)} cannot be read: {error}.") from error
    return digest.hexdigest()


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise DatasetError(f"{shown_path(path)} cannot be read: {error}.") from error


def _how_to_get(folder: Path) -> str:
    return (
        f"Get {URL} (SHA-256 {ARCHIVE_SHA256}) and put it, as it is or unpacked, in {shown_path(folder)}; another "
        f"folder can be named with folder=... or the environment variable DEEP500_DATA."
    )


def _not_published() -> str:
    return f"Get the archive again from {URL} (SHA-256 {ARCHIVE_SHA256})."
