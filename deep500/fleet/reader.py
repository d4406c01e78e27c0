"""What a reader of outcomes is: one format, told by a look at the beginning of a file."""

from __future__ import annotations

import gzip
import os
import stat
import zlib
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, cast

from deep500.core.errors import FleetError
from deep500.core.texts import shown_path
from deep500.fleet.input_report import InputReport, ProblemKind

if TYPE_CHECKING:
    import polars as pl

__all__ = ["Reader", "blocks_of", "bytes_of", "head_of", "head_text", "opened", "text_of"]

#: So much of a file is looked at to tell its format.
HEAD_BYTES = 65536

#: A file that holds more is refused by what reads it whole; what reads larger ones reads them in pieces.
_LARGEST_BYTES = 4 << 30

#: A compressed file that grows to more than this, and by more than this factor, holds nothing that anyone wrote:
#: tables and logs grow five- to fiftyfold, a file of zeros a thousandfold.
_BOMB_BYTES = 256 << 20
_BOMB_FACTOR = 200

_BLOCK_BYTES = 8 << 20
_GZIP = b"\x1f\x8b"
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")
_REPLACED = "\N{REPLACEMENT CHARACTER}"


class Reader(ABC):
    """One format of outcomes, named for its file. A class is made without arguments and keeps nothing between files."""

    @abstractmethod
    def matches(self, path: Path, head: bytes) -> bool:
        """Whether a file or folder looks like this format; two readers never claim the same.

        Args:
            path: The file or folder.
            head: Its first 64 KiB, decompressed where it is compressed by gzip; empty for a folder.
        """

    @abstractmethod
    def read(self, path: Path, report: InputReport) -> pl.DataFrame:
        """Return the outcomes as a data frame with columns of :data:`~deep500.fleet.outcome_table.FIELDS` and labels.

        Whatever cannot be taken as it is is counted in the report. Duplicates and clocks need not be looked at: that
        is done for all readers alike.

        Raises:
            FleetError: Nothing of it can be read.
        """


@contextmanager
def opened(path: Path) -> Iterator[IO[bytes]]:
    """Open a regular file to be read once, decompressed where it begins as gzip writes; others are never waited for.

    Raises:
        FleetError: The file cannot be read, at the beginning or further on.
    """
    try:
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
        with open(handle, "rb") as file:
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                raise OSError("It is no regular file")
            packed = file.read(2) == _GZIP
            file.seek(0)
            if packed:
                with gzip.GzipFile(fileobj=file) as unpacked:
                    yield cast(IO[bytes], unpacked)
            else:
                yield file
    except (OSError, EOFError, zlib.error, ValueError) as error:
        if isinstance(error, FleetError):
            raise
        raise FleetError(f"{shown_path(path)} cannot be read: {getattr(error, 'strerror', None) or error}.") from error


def head_of(path: Path) -> bytes:
    """Return the first 64 KiB of a file, decompressed where it is compressed; empty for a folder.

    Raises:
        FleetError: The file cannot be read.
    """
    if path.is_dir():
        return b""
    with opened(path) as file:
        return bytes(file.read(HEAD_BYTES))


def head_text(head: bytes) -> str:
    """Return the beginning of a file as text; what cannot be decoded, such as the half of a character, is replaced."""
    if head.startswith(_UTF_16):
        return head.decode("utf-16", errors="replace")
    return head.decode("utf-8-sig", errors="replace")


def blocks_of(path: Path) -> Iterator[bytes]:
    """Yield the bytes of a file in blocks that end with a line where lines are of bearable length.

    Raises:
        FleetError: The file cannot be read, or grows without measure when it is decompressed.
    """
    with opened(path) as file:
        size, read = path.stat().st_size, 0
        while block := file.read(_BLOCK_BYTES):
            block += file.readline(1 << 20)
            read += len(block)
            if read > max(_BOMB_BYTES, _BOMB_FACTOR * size):
                raise FleetError(
                    f"{shown_path(path)} has {size:,} bytes and grows to more than {_BOMB_FACTOR} times as many when "
                    "it is decompressed, which no table does; decompress it yourself if it is one."
                )
            yield block


def bytes_of(path: Path) -> bytes:
    """Return the bytes of a file, decompressed where it is compressed.

    Raises:
        FleetError: The file cannot be read, holds more than 4 GiB, or grows without measure when it is decompressed.
    """
    blocks, size = [], 0
    for block in blocks_of(path):
        size += len(block)
        if size > _LARGEST_BYTES:
            raise FleetError(f"{shown_path(path)} holds more than {_LARGEST_BYTES >> 30} GiB; split it.")
        blocks.append(block)
    return b"".join(blocks)


def text_of(path: Path, report: InputReport) -> str:
    """Return the text of a file; bytes that are no UTF-8 are replaced and counted, UTF-16 is known by its mark.

    Raises:
        FleetError: The file cannot be read.
    """
    data = bytes_of(path)
    encoding = "utf-16" if data.startswith(_UTF_16) else "utf-8-sig"
    try:
        return data.decode(encoding)
    except UnicodeDecodeError:
        text = data.decode(encoding, errors="replace")
    wrong = max(1, text.count(_REPLACED) - data.count(_REPLACED.encode()))
    lines = [number for number, line in enumerate(text.split("\n"), 1) if _REPLACED in line][:3]
    report.add(ProblemKind.ENCODING, str(path), wrong, [f"line {number}" for number in lines])
    return text
