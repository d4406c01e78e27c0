"""The IDX format of MNIST and its kin.

A file is two zero bytes, one byte that names the element type, one that counts the dimensions, the sizes as big-endian
32-bit numbers, and the elements, big-endian, the last dimension running fastest. It may be compressed with gzip.

Source: Y. LeCun, C. Cortes, C. J. C. Burges, "The MNIST database of handwritten digits".
"""

from __future__ import annotations

import gzip
import math
import struct
import zlib
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from deep500.core.errors import DatasetError
from deep500.core.texts import shown_path

__all__ = ["IDX_TYPES", "read_idx"]

#: NumPy's dtype by the byte that names it.
IDX_TYPES = {0x08: ">u1", 0x09: ">i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}

_GZIP_MAGIC = b"\x1f\x8b"


def read_idx(path: Path, dtype: str, dimensions: int) -> NDArray[Any]:
    """Return the array of a file: a memory map of one that is not compressed.

    Args:
        path: The file.
        dtype: Which elements it must have: NumPy's name, such as ``"uint8"``.
        dimensions: How many dimensions it must have.

    Raises:
        DatasetError: The file cannot be read, is truncated, too long, or no IDX file of this kind.
    """
    try:
        with path.open("rb") as file:
            if file.read(2) == _GZIP_MAGIC:
                file.seek(0)
                with gzip.open(file) as unpacked:
                    return _compressed(unpacked, path, dtype, dimensions)
            file.seek(0)
            element, shape, start = _header(file, path, dtype, dimensions)
            size = path.stat().st_size
        _check_size(path, size - start, element, shape, more=False)
        if 0 in shape:
            return np.zeros(shape, element)
        return np.memmap(path, element, "r", start, shape)
    except (OSError, EOFError, zlib.error) as error:
        raise DatasetError(f"{shown_path(path)} cannot be read: {error}. Get it again.") from error


def _compressed(file: gzip.GzipFile, path: Path, dtype: str, dimensions: int) -> NDArray[Any]:
    element, shape, _ = _header(file, path, dtype, dimensions)
    wanted = math.prod(shape) * element.itemsize
    content = bytearray()
    # One byte more than wanted: gzip then checks its sum, and what is too long is seen. Block by block, for a damaged
    # header may promise more than any memory holds.
    while block := file.read(min(wanted + 1 - len(content), 1 << 20)):
        content += block
    _check_size(path, len(content), element, shape, more=len(content) > wanted)
    return np.frombuffer(content, element).reshape(shape)


def _header(
    file: IO[bytes] | gzip.GzipFile, path: Path, dtype: str, dimensions: int
) -> tuple[np.dtype[Any], tuple[int, ...], int]:
    """Return element type, sizes, and where the elements begin."""
    magic = file.read(4)
    expected = next(code for code, name in IDX_TYPES.items() if np.dtype(name).name == dtype)
    if magic != bytes((0, 0, expected, dimensions)):
        raise DatasetError(
            f"{shown_path(path)} begins with {magic.hex(' ') or 'nothing'} instead of 00 00 {expected:02x} "
            f"{dimensions:02x}: it is no IDX file of {dtype} with {dimensions} dimensions. Get it again."
        )
    sizes = file.read(4 * dimensions)
    if len(sizes) < 4 * dimensions:
        raise DatasetError(f"{shown_path(path)} is truncated: it ends within its header. Get it again.")
    return np.dtype(IDX_TYPES[expected]), struct.unpack(f">{dimensions}I", sizes), 4 + 4 * dimensions


def _check_size(path: Path, received: int, element: np.dtype[Any], shape: tuple[int, ...], *, more: bool) -> None:
    expected = math.prod(shape) * element.itemsize
    if received != expected:
        kind = "truncated: it" if received < expected else "no such file: it"
        number = f"more than {expected:,}" if more else f"{received:,}"
        raise DatasetError(
            f"{shown_path(path)} is {kind} holds {number} bytes of elements instead of the {expected:,} of its shape "
            f"{' x '.join(map(str, shape))}. Get it again."
        )
