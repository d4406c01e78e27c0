"""Where the bytes of many files come from: a list of files, which is held and pickled as one block."""

from __future__ import annotations

import os
from collections.abc import Iterable
from os import PathLike
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from deep500.core.errors import DatasetError
from deep500.core.files import read_regular
from deep500.core.texts import shown_path

__all__ = ["Contents", "FileTable"]


class Contents(Protocol):
    """Files, or what lies like files in archives, by number."""

    def __len__(self) -> int:
        """Return how many there are."""

    def read(self, number: int) -> bytes:
        """Return the bytes of one; a ``DatasetError`` says why that cannot be."""

    def where(self, number: int) -> str:
        """Return what one is called in messages."""


class FileTable:
    """Names of files below a folder.

    A million names are one block of bytes and an array: small, quick to pickle, and not touched by the reference
    counts that would make a forked process copy a list of texts.
    """

    def __init__(self, names: Iterable[str | PathLike[str]], folder: Path | None = None) -> None:
        """Keep names.

        Args:
            names: The names.
            folder: What they are relative to; by default the folder that is current now.
        """
        encoded = [os.fsencode(name) for name in names]
        self._folder = os.fsencode((folder or Path()).absolute())
        self._names = b"".join(encoded)
        self._ends: NDArray[np.int64] = np.cumsum([0, *map(len, encoded)], dtype=np.int64)

    def __len__(self) -> int:
        return len(self._ends) - 1

    def path(self, number: int) -> str:
        """Return the path of one file."""
        name = self._names[self._ends[number] : self._ends[number + 1]]
        return os.fsdecode(os.path.join(self._folder, name))

    def read(self, number: int) -> bytes:
        """Return the bytes of one file.

        Raises:
            DatasetError: It cannot be read.
        """
        try:
            return read_regular(self.path(number))
        except OSError as error:
            raise DatasetError(f"{self.where(number)} cannot be read: {error.strerror or error}.") from error

    def where(self, number: int) -> str:
        """Return the file's path for a message."""
        return shown_path(self.path(number))
