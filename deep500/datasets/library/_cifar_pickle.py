"""Reading the Python version of CIFAR without running what a pickle says.

The published files are pickles that Python 2 wrote: a dictionary with an array of bytes ``[N, 3072]`` and lists of
labels. A pickle is a program; here it can name nothing but the three parts that make up an array, and for each it gets
a stand-in that only keeps what it is given.
"""

from __future__ import annotations

import io
import pickle
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deep500.core.errors import DatasetError
from deep500.datasets.library._cifar import IMAGE_SHAPE, check_labels

__all__ = ["parse_pickle"]

_PIXELS_A_IMAGE = 3 * 32 * 32


class _Dtype:
    """Stands in for NumPy's dtype."""

    def __init__(self, *arguments: Any) -> None:
        self.name = _text(arguments[0]) if arguments else ""

    def __setstate__(self, state: Any) -> None:
        """Leave out byte order and the like: bytes have none."""


class _Array:
    """Stands in for NumPy's array."""

    state: Any = None

    def __setstate__(self, state: Any) -> None:
        self.state = state

    def bytes(self) -> NDArray[np.uint8]:
        """Return the array, if it is one of bytes ``[N, 3072]`` in the order of rows.

        Raises:
            ValueError: It is not.
        """
        _, shape, dtype, columns_first, content = self.state
        if not isinstance(dtype, _Dtype) or dtype.name not in ("u1", "|u1", "uint8") or columns_first:
            raise ValueError("its data are not bytes in the order of rows")
        if not (isinstance(shape, tuple) and len(shape) == 2 and shape[1] == _PIXELS_A_IMAGE):
            raise ValueError(f"its data have the shape {shape!r} instead of (N, {_PIXELS_A_IMAGE})")
        if isinstance(content, str):
            content = content.encode("latin-1")
        if not isinstance(content, bytes) or len(content) != shape[0] * shape[1]:
            raise ValueError("its data are incomplete")
        return np.frombuffer(content, np.uint8).reshape(-1, *IMAGE_SHAPE)


def _reconstructed(*arguments: Any) -> _Array:
    return _Array()


def _encoded(text: Any, encoding: Any = "latin-1") -> bytes:
    if not isinstance(text, str) or _text(encoding) not in ("latin1", "latin-1"):
        raise ValueError("it encodes something else than bytes")
    return text.encode("latin-1")


#: All that a file may name. Python 3 writes bytes as texts that are encoded, with protocols before the third.
_ALLOWED = {
    ("numpy.core.multiarray", "_reconstruct"): _reconstructed,
    ("numpy._core.multiarray", "_reconstruct"): _reconstructed,
    ("numpy", "ndarray"): _Array,
    ("numpy", "dtype"): _Dtype,
    ("_codecs", "encode"): _encoded,
}


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        try:
            return _ALLOWED[module, name]
        except KeyError:
            raise pickle.UnpicklingError(
                f"it names {module}.{name}, which no published file does; nothing of it was run"
            ) from None

    def persistent_load(self, pid: Any) -> Any:
        raise pickle.UnpicklingError("it refers to objects outside of it, which no published file does")


def parse_pickle(
    data_set: str, label_name: str, classes: int, name: str, content: bytes
) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Return images ``[N, 3, 32, 32]`` and labels ``[N]`` of a file of the Python version.

    Args:
        data_set: The data set's name, for messages.
        label_name: Under which name the file holds the wanted labels, such as ``"fine_labels"``.
        classes: Number of classes.
        name: Name of the file, for messages.
        content: Its bytes.

    Raises:
        DatasetError: The file is truncated, damaged, no such file, or would run something.
    """
    try:
        loaded = _Unpickler(io.BytesIO(content), encoding="bytes").load()
        if not isinstance(loaded, dict):
            raise ValueError("it holds no dictionary")
        parts = {_text(key): value for key, value in loaded.items()}
        missing = [key for key in ("data", label_name) if key not in parts]
        if missing:
            raise ValueError(f"it has no {' and no '.join(missing)}")
        if not isinstance(parts["data"], _Array):
            raise ValueError("its data are no array")
        images = parts["data"].bytes()
        labels = _labels(parts[label_name])
    except (
        pickle.UnpicklingError, EOFError, ValueError, TypeError, KeyError, IndexError, AttributeError, ImportError,
        MemoryError, OverflowError, RecursionError,
    ) as error:  # fmt: skip
        raise DatasetError(
            f"{data_set}'s {name} is truncated, damaged or no such file ({len(content):,} bytes): "
            f"{str(error) or type(error).__name__}. Get it again."
        ) from error
    if len(images) != len(labels) or not len(images):
        raise DatasetError(f"{data_set}'s {name} has {len(images)} images and {len(labels)} labels. Get it again.")
    check_labels(data_set, name, labels, classes)
    return images, labels


def _labels(values: Any) -> NDArray[np.int64]:
    if not isinstance(values, list) or not all(type(value) is int and abs(value) < 2**31 for value in values):
        raise ValueError("its labels are no list of whole numbers")
    return np.array(values, np.int64)


def _text(value: Any) -> str:
    return value.decode("latin-1") if isinstance(value, bytes) else str(value)
