"""What a reader of outcomes is: one format, told by a look at the beginning of a file."""

from __future__ import annotations

import gzip
import zlib
from abc import ABC, abstractmethod
from pathlib import Path
from typing import TYPE_CHECKING

from deep500.core.errors import FleetError
from deep500.core.files import read_regular
from deep500.core.texts import shown_path
from deep500.fleet.input_report import InputReport, ProblemKind

if TYPE_CHECKING:
    import polars as pl

__all__ = ["Reader", "bytes_of", "head_of", "text_of"]

#: So much of a file is looked at to tell its format.
HEAD_BYTES = 65536

#: A compressed file that holds more is refused: what reads larger ones reads them in pieces.
_LARGEST_BYTES = 4 << 30


class Reader(ABC):
    """One format of outcomes, named for its file. A class is made without arguments and keeps nothing between files."""

    @abstractmethod
    def matches(self, path: Path, head: bytes) -> bool:
        """Whether a file or folder looks like this format; two readers never claim the same.

        Args:
            path: The file or folder.
            head: Its first 64 KiB, decompressed where its name ends with ``.gz``; empty for a folder.
        """

    @abstractmethod
    def read(self, path: Path, report: InputReport) -> pl.DataFrame:
        """Return the outcomes as a data frame with columns of :data:`~deep500.fleet.outcome_table.FIELDS` and labels.

        Whatever cannot be taken as it is is counted in the report. Duplicates and clocks need not be looked at: that
        is done for all readers alike.

        Raises:
            FleetError: Nothing of it can be read.
        """


def head_of(path: Path) -> bytes:
    """Return the first 64 KiB of a file, decompressed where its name ends with ``.gz``; empty for a folder.

    Raises:
        FleetError: The file cannot be read.
    """
    if path.is_dir():
        return b""
    try:
        if not path.is_file():
            raise OSError("It is no regular file" if path.exists() else "There is no such file")
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            return bytes(file.read(HEAD_BYTES))
    except (OSError, EOFError, zlib.error) as error:
        raise FleetError(f"{shown_path(path)} cannot be read: {getattr(error, 'strerror', None) or error}.") from error


def bytes_of(path: Path) -> bytes:
    """Return the bytes of a file, decompressed where its name ends with ``.gz``.

    Raises:
        FleetError: The file cannot be read, or holds more than 4 GiB.
    """
    try:
        data = read_regular(path)
        if path.suffix != ".gz":
            return data
        with gzip.open(path) as file:
            data = file.read(_LARGEST_BYTES + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise FleetError(f"{shown_path(path)} cannot be read: {getattr(error, 'strerror', None) or error}.") from error
    if len(data) > _LARGEST_BYTES:
        raise FleetError(f"{shown_path(path)} holds more than {_LARGEST_BYTES >> 30} GiB; split it.")
    return data


def text_of(path: Path, report: InputReport) -> str:
    """Return the text of a file; bytes that are no UTF-8 are replaced and counted, UTF-16 is known by its mark.

    Raises:
        FleetError: The file cannot be read.
    """
    data = bytes_of(path)
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return data.decode("utf-16", errors="replace")
    text = data.decode("utf-8-sig", errors="replace")
    wrong = text.count("\N{REPLACEMENT CHARACTER}") - data.count("\N{REPLACEMENT CHARACTER}".encode())
    if wrong > 0:
        lines = [n for n, line in enumerate(text.split("\n"), 1) if "\N{REPLACEMENT CHARACTER}" in line][:3]
        report.add(ProblemKind.ENCODING, str(path), wrong, [f"line {n}" for n in lines])
    return text
