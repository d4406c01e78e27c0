"""Division of integers as ONNX has it, and inputs that hold integers."""

from __future__ import annotations

from typing import Any

import numpy as np

from deep500.core.errors import OperatorError
from deep500.operators.operator import Array, OptionalArray

__all__ = ["integer_list", "one_integer", "truncated_quotient"]


def truncated_quotient(a: Array, b: Any) -> Array:
    """Return ``a / b`` rounded towards zero, in integers throughout (floats would lose digits beyond 53 bits).

    Division by zero gives 0, as in NumPy; ONNX leaves it open.
    """
    quotient = np.floor_divide(a, b)
    # Floor and truncation differ by one where the signs differ and something remains.
    differs = ((a < 0) != (b < 0)) & (quotient * b != a) & (np.asarray(b) != 0)
    return np.asarray(quotient + differs.astype(quotient.dtype))


def integer_list(operator: str, name: str, values: OptionalArray, *, minimum: int | None = None) -> list[int]:
    """Return the integers that an input holds.

    Args:
        operator: Name of the operator, for the message.
        name: Name of the input, for the message.
        values: The input, ``[n]`` or a scalar.
        minimum: The smallest value that is accepted.

    Raises:
        OperatorError: It is absent, does not hold integers in one dimension, or one of them is too small.
    """
    if values is None or values.dtype.kind not in "iu" or values.ndim > 1:
        received = "absent" if values is None else f"of {values.dtype} and shape {values.shape}"
        raise OperatorError(f"{operator}: the input {name} is {received}; accepted is int64 of one dimension.")
    found = [int(value) for value in values.reshape(-1)]
    if minimum is not None and any(value < minimum for value in found):
        raise OperatorError(f"{operator}: the input {name} is {found}; accepted are integers from {minimum} on.")
    return found


def one_integer(operator: str, name: str, values: OptionalArray, *, minimum: int | None = None) -> int:
    """Return the only integer that an input holds; see :func:`integer_list`.

    Raises:
        OperatorError: It does not hold exactly one integer.
    """
    found = integer_list(operator, name, values, minimum=minimum)
    if len(found) != 1:
        raise OperatorError(f"{operator}: the input {name} holds {len(found)} integers; accepted is one.")
    return found[0]
