"""ONNX Pow."""

from __future__ import annotations

import numpy as np

from deep500.operators.library._elementwise import BinaryOperator
from deep500.operators.library._tensors import is_float
from deep500.operators.operator import Array

__all__ = ["Pow"]


class Pow(BinaryOperator):
    r"""Power, :math:`z = x^y`, with broadcasting.

    X and Z have one dtype, a float, int32 or int64; Y may have another one, a float or an integer. An integer raised to
    a float or to a negative integer is computed in float64 and rounded towards zero; integers wrap around.

    The gradient by Y, :math:`g\,z \ln x`, is 0 where :math:`x = 0` and :math:`y > 0`, and NaN where :math:`x < 0`.

    Source: ONNX Pow, version 15.
    """

    input_names = ("X", "Y")
    one_dtype = False

    def value(self, a: Array, b: Array) -> Array:
        """Return ``a ** b`` in the dtype of ``a``."""
        if is_float(a.dtype):
            return np.asarray(np.power(a, b.astype(a.dtype, copy=False)))
        if b.dtype.kind in "iu" and not (b < 0).any():
            return np.asarray(np.power(a, b.astype(a.dtype, copy=False)))
        return np.power(a.astype(np.float64), b.astype(np.float64)).astype(a.dtype)

    def slopes_times(self, gradient: Array, a: Array, b: Array, c: Array) -> tuple[Array, Array]:
        """Return the gradient times ``y x^(y - 1)`` and times ``z ln(x)``."""
        exponent = b.astype(a.dtype, copy=False)
        zero = a.dtype.type(0)
        # With an exponent 0 the power is constant, also at x = 0, where x^(y - 1) is infinite.
        by_a = np.where(exponent == 0, zero, gradient * exponent * np.power(a, exponent - 1))
        by_b = np.where((a == 0) & (exponent > 0), zero, gradient * c * np.log(a))
        return by_a, by_b
