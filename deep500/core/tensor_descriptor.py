"""What is known of a tensor without its values: dtype and (possibly symbolic) shape."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from deep500.core.errors import InvalidInputError

__all__ = ["STRING", "Dimension", "TensorDescriptor", "element_type_name", "numpy_dtype", "tensordesc"]

#: A size, the name of a symbolic size, or ``None`` for a size of which nothing is known.
Dimension: TypeAlias = int | str | None

#: Element types that NumPy does not have and the ``ml_dtypes`` package adds.
EXTENDED_DTYPES = (
    "bfloat16",
    "float8_e4m3fn",
    "float8_e4m3fnuz",
    "float8_e5m2",
    "float8_e5m2fnuz",
    "float8_e8m0fnu",
    "float4_e2m1fn",
    "int4",
    "uint4",
    "int2",
    "uint2",
)

#: Name of the element type of texts, which NumPy holds as objects.
STRING = "string"

#: NumPy's letters for bool, integers, floats and complex numbers.
_NUMBER_KINDS = "biufc"


def numpy_dtype(dtype: Any) -> np.dtype[Any]:
    """Return the NumPy dtype for a name (``"float32"``, ``"bfloat16"``), a type or a dtype.

    Raises:
        InvalidInputError: The name is not a dtype.
    """
    name = dtype if isinstance(dtype, str) else getattr(dtype, "name", None)
    if name in EXTENDED_DTYPES:
        import ml_dtypes

        extended: np.dtype[Any] = np.dtype(getattr(ml_dtypes, str(name)))
        return extended
    try:
        found: np.dtype[Any] = np.dtype(dtype)
    except (TypeError, ValueError, SyntaxError):  # SyntaxError: NumPy parses texts with commas as Python
        found = np.dtype(object)
    # NumPy takes None for float64; here it is a dtype that was forgotten.
    if dtype is None or (found.kind not in _NUMBER_KINDS and found.name not in EXTENDED_DTYPES):
        raise InvalidInputError(
            f"{dtype!r} is not a dtype of numbers. Accepted are NumPy's names, such as 'float32' or 'int64', and "
            f"{', '.join(EXTENDED_DTYPES)}."
        )
    return found


def element_type_name(dtype: np.dtype[Any]) -> str:
    """Return the name of an array's element type: NumPy's, but ``"string"`` for texts of every length.

    Arrays of objects are ``"object"``: they may hold texts, and anything else.
    """
    return STRING if dtype.kind in "UST" else str(dtype.name)


@dataclass(frozen=True, init=False)
class TensorDescriptor:
    """Dtype and shape of a tensor.

    Attributes:
        dtype: NumPy's name of the element type, for example ``"float32"`` or ``"bfloat16"``; ``"string"`` for texts.
        shape: One entry a dimension: an ``int``, a symbol's name, or ``None`` where nothing is known. The shape itself
            is ``None`` when not even the rank is known.

    Example:
        >>> TensorDescriptor("float32", ("batch", 3, 32, 32))
        TensorDescriptor(dtype='float32', shape=('batch', 3, 32, 32))
    """

    dtype: str
    shape: tuple[Dimension, ...] | None

    def __init__(self, dtype: Any, shape: Sequence[Dimension] | None = None) -> None:
        """Check and store dtype and shape.

        Args:
            dtype: A NumPy dtype, type or name; ``"bfloat16"`` and the other ONNX types are accepted too.
            shape: Sizes, names of symbolic sizes, or ``None`` each; ``None`` for an unknown rank.

        Raises:
            InvalidInputError: The dtype does not exist or a dimension is neither a size nor a name.
        """
        if isinstance(shape, (str, bytes)) or not (shape is None or isinstance(shape, Iterable)):
            raise InvalidInputError(f"{shape!r} is not a shape. Accepted are tuples such as ('batch', 3, 32, 32).")
        object.__setattr__(self, "dtype", STRING if _is_string(dtype) else numpy_dtype(dtype).name)
        object.__setattr__(self, "shape", None if shape is None else tuple(_dimension(d) for d in shape))

    @property
    def rank(self) -> int | None:
        """Number of dimensions, ``None`` when unknown."""
        return None if self.shape is None else len(self.shape)

    @property
    def is_static(self) -> bool:
        """Whether every size is known."""
        return self.shape is not None and all(isinstance(d, int) for d in self.shape)

    @property
    def numpy_dtype(self) -> np.dtype[Any]:
        """The element type as a NumPy dtype."""
        return np.dtype(object) if self.dtype == STRING else numpy_dtype(self.dtype)

    @property
    def element_count(self) -> int | None:
        """Number of elements, ``None`` while a size is symbolic."""
        if self.shape is None:
            return None
        count = 1
        for dimension in self.shape:
            if not isinstance(dimension, int):
                return None
            count *= dimension
        return count

    @property
    def size_bytes(self) -> int | None:
        """Size of the elements in bytes, ``None`` while a size is symbolic, and for texts."""
        count = self.element_count
        return None if count is None or self.dtype == STRING else count * self.numpy_dtype.itemsize

    def accepts_shape(self, shape: Sequence[int]) -> bool:
        """Whether a concrete shape fits: the rank agrees and so does every known size.

        A symbol that occurs twice must stand for one size.
        """
        if self.shape is None:
            return True
        if len(shape) != len(self.shape):
            return False
        bound: dict[str, int] = {}
        for expected, actual in zip(self.shape, shape):
            if isinstance(expected, int):
                if expected != actual:
                    return False
            elif isinstance(expected, str) and bound.setdefault(expected, actual) != actual:
                return False
        return True

    def __str__(self) -> str:
        """Return a readable form such as ``float32[batch, 3, 32, 32]``."""
        if self.shape is None:
            return f"{self.dtype}[...]"
        return f"{self.dtype}[{', '.join('?' if d is None else str(d) for d in self.shape)}]"


def tensordesc(dtype: Any, *shape: Any) -> TensorDescriptor:
    """Shorthand for :class:`TensorDescriptor`: ``tensordesc("float32", 4, 3)`` or ``tensordesc("float32", (4, 3))``."""
    if len(shape) == 1 and (shape[0] is None or isinstance(shape[0], (tuple, list))):
        return TensorDescriptor(dtype, shape[0])
    return TensorDescriptor(dtype, shape)


def _is_string(dtype: Any) -> bool:
    return (isinstance(dtype, str) and dtype == STRING) or dtype is str


def _dimension(value: Any) -> Dimension:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, (int, np.integer)) and not isinstance(value, (bool, np.bool_)) and value >= 0:
        return int(value)
    raise InvalidInputError(
        f"{value!r} is not a dimension. Accepted are sizes >= 0, names of symbolic sizes, and None for an unknown size."
    )
