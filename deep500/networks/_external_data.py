"""Values that a model keeps in files beside its own, and only there."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import numpy as np
import onnx
from numpy.typing import NDArray

from deep500.core.errors import InvalidNetworkError
from deep500.core.texts import shown
from deep500.networks._structure import expected_size

__all__ = ["external_size", "is_external", "read_external"]


def is_external(tensor: onnx.TensorProto) -> bool:
    """Whether the values of a tensor are in another file."""
    return bool(tensor.data_location == onnx.TensorProto.EXTERNAL)


def external_size(tensor: onnx.TensorProto) -> int:
    """Return how many bytes of another file a tensor asks for."""
    return expected_size(tensor, f"tensor {tensor.name!r}")


def read_external(tensor: onnx.TensorProto, folder: Path) -> NDArray[np.uint8]:
    """Return the bytes of a tensor from a file in the model's folder, or in a folder within.

    Args:
        tensor: A tensor whose values are in another file.
        folder: The model's folder.

    Raises:
        InvalidNetworkError: The entry leads out of the folder, to no regular file, or to too few bytes.
    """
    entries = {entry.key: entry.value for entry in tensor.external_data}
    place = f"tensor {tensor.name!r}"
    path = _confined(entries.get("location", ""), folder, place)
    size = expected_size(tensor, place)
    offset = _number(entries, "offset", 0, place)
    length = _number(entries, "length", size, place)
    if length != size:
        raise InvalidNetworkError(
            f"{place} has {length} bytes in {path.name!r}, and its type and shape {list(tensor.dims)} ask for {size}."
        )
    try:
        with open(path, "rb") as file:
            available = os.fstat(file.fileno()).st_size
            if offset + size > available:
                raise InvalidNetworkError(
                    f"{place} is said to be at the bytes {offset} to {offset + size} of {path.name!r}, which has "
                    f"{available}."
                )
            file.seek(offset)
            data = np.fromfile(file, np.uint8, size)
    except OSError as error:
        raise InvalidNetworkError(f"{place} cannot be read from {path.name!r}: {error}") from error
    if len(data) != size:
        raise InvalidNetworkError(f"{place} cannot be read from {path.name!r}: the file became shorter.")
    return data


def _number(entries: dict[str, str], key: str, default: int, place: str) -> int:
    text = entries.get(key)
    if text is None:
        return default
    if not (text.isascii() and text.isdigit()) or len(text) > 18:
        raise InvalidNetworkError(f"{place} has the {key} {shown(text)} in its file; accepted is a number of bytes.")
    return int(text)


def _confined(location: str, folder: Path, place: str) -> Path:
    """Return the file of a location, which is relative to the model's folder and stays in it."""
    parts = Path(location).parts
    if not location or "\0" in location or "\\" in location or Path(location).is_absolute() or ".." in parts:
        raise InvalidNetworkError(
            f"{place} is said to be in the file {shown(location)}; accepted is the name of a file in the model's "
            f"folder."
        )
    try:
        home = folder.resolve(strict=True)
        path = (home / location).resolve(strict=True)
        mode = path.stat().st_mode
    except (OSError, RuntimeError, ValueError) as error:
        raise InvalidNetworkError(f"{place} cannot be read from {shown(location)}: {error}") from error
    if not path.is_relative_to(home):
        raise InvalidNetworkError(f"{place} is said to be in {shown(location)}, which leads out of the model's folder.")
    if not stat.S_ISREG(mode):
        raise InvalidNetworkError(f"{place} is said to be in {shown(location)}, which is no regular file.")
    return path
