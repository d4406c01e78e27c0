"""Arrays that go to another process without their contents: as a file's name, or as the way to read them again."""

from __future__ import annotations

import mmap
import os
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["LazyArrays", "MappedPart", "mapped_part", "reopened"]


class LazyArrays:
    """Arrays that are read when they are first asked for, and anew in a process that they are pickled to."""

    def __init__(
        self, load: Callable[[], tuple[NDArray[Any], ...]], arrays: tuple[NDArray[Any], ...] | None = None
    ) -> None:
        """Keep how the arrays are read.

        Args:
            load: Reads them; it can be pickled, such as a ``functools.partial`` of a module's function.
            arrays: What it would return, when that is there already.
        """
        self._load = load
        self._arrays = arrays
        self._lock = threading.Lock()

    def get(self) -> tuple[NDArray[Any], ...]:
        """Return the arrays."""
        if self._arrays is None:
            with self._lock:
                if self._arrays is None:
                    self._arrays = self._load()
        return self._arrays

    def __getstate__(self) -> dict[str, Any]:
        return {"load": self._load}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._load = state["load"]
        self._arrays = None
        self._lock = threading.Lock()


@dataclass(frozen=True)
class MappedPart:
    """Where an array lies in a file.

    Attributes:
        path: The file.
        dtype: The array's dtype.
        shape: Its shape.
        offset_bytes: Where its first element lies.
        strides: Distance of neighbours along each dimension, in bytes.
    """

    path: str
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    offset_bytes: int
    strides: tuple[int, ...]


def mapped_part(array: NDArray[Any]) -> MappedPart | None:
    """Return where a memory map, or a view of one, lies in its file; ``None`` for arrays in memory.

    A copy-on-write map may differ from its file, so it counts as memory.
    """
    opened: Any = getattr(array, "_mmap", None)  # NumPy's annotations do not know it
    if not isinstance(array, np.memmap) or not isinstance(opened, mmap.mmap):
        return None
    if array.mode == "c" or array.filename is None or not array.size or any(s < 0 for s in array.strides):
        return None
    start = np.frombuffer(opened, np.uint8).__array_interface__["data"][0]
    distance = array.__array_interface__["data"][0] - start
    if not 0 <= distance < len(opened):
        return None
    # NumPy maps from a multiple of the granularity below the offset; views keep the offset of the whole map.
    beginning = array.offset - array.offset % mmap.ALLOCATIONGRANULARITY
    path = os.path.abspath(os.fspath(array.filename))
    return MappedPart(path, array.dtype, array.shape, beginning + distance, array.strides)


def reopened(part: MappedPart) -> NDArray[Any]:
    """Map the part of the file again, for reading."""
    last = sum((size - 1) * stride for size, stride in zip(part.shape, part.strides))
    raw = np.memmap(part.path, np.uint8, "r", part.offset_bytes, (last + part.dtype.itemsize,))
    first = raw[: part.dtype.itemsize].view(part.dtype)
    # With the subclass, so that the view can be pickled again.
    return np.lib.stride_tricks.as_strided(first, part.shape, part.strides, subok=True, writeable=False)
