"""General matrix product."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from deep500.core.errors import OperatorError
from deep500.operators import attributes
from deep500.operators.custom.cpp_op import CppOp
from native_ops._checks import differs, shape_text

__all__ = ["Gemm"]


class Gemm(CppOp):
    r"""General matrix product.

    .. math::
        Y = \alpha\, A' B' + \beta\, C

    with :math:`A'` the transpose of A where ``trans_a`` is 1, and B likewise. Inputs A ``[M, K]`` (``[K, M]``), B
    ``[K, N]`` (``[N, K]``) and C, which may be ``None`` and broadcasts to ``[M, N]``; output Y ``[M, N]``. All have one
    dtype: float32, float64, bfloat16 or float16; 16-bit floats are multiplied and added in float32. With ``beta`` 0, C
    is not read. Differentiable by A, B and C; the sums of the gradient by C are accumulated in float64.

    Example:
        >>> import numpy as np
        >>> Gemm(alpha=2.0, trans_b=1)(np.array([[1.0, 2.0]]), np.array([[3.0, 4.0]]), np.array(0.5))
        array([[22.5]])

    Source: ONNX Gemm, version 13.
    """

    name = "gemm"
    source = "gemm.cpp"
    cuda_source = "gemm.cu"
    dtypes = ("float32", "float64", "bfloat16", "float16")

    def __init__(self, *, alpha: float = 1.0, beta: float = 1.0, trans_a: int = 0, trans_b: int = 0) -> None:
        """Set the attributes.

        Args:
            alpha: Factor of the product, rounded to float32.
            beta: Factor of C, rounded to float32.
            trans_a: 1 to transpose A.
            trans_b: 1 to transpose B.

        Raises:
            OperatorError: An attribute is not what is accepted.
        """
        super().__init__(
            alpha=attributes.real("gemm", "alpha", alpha),
            beta=attributes.real("gemm", "beta", beta),
            trans_a=attributes.flag("gemm", "trans_a", trans_a),
            trans_b=attributes.flag("gemm", "trans_b", trans_b),
        )

    def example_inputs(self, rng: np.random.Generator, dtype: str, large: bool = False) -> list[Any]:
        """Return A, B and C; see :meth:`CustomOp.example_inputs`."""
        m, n, k = (384, 320, 256) if large else (5, 4, 3)
        a = rng.standard_normal((k, m) if self._given["trans_a"] else (m, k))
        b = rng.standard_normal((n, k) if self._given["trans_b"] else (k, n))
        return [a, b, rng.standard_normal(n)]

    def infer(self, shapes: Sequence[Any], dtypes: Sequence[Any]) -> tuple[Any, Any]:
        """Return shape and dtype of Y.

        Raises:
            OperatorError: A and B are not matrices that can be multiplied, or C does not broadcast.
        """
        a, b, c = shapes
        if len(a) != 2 or len(b) != 2:
            raise self._refusal(a, b)
        (m, k), (rows, n) = a[:: -1 if self._given["trans_a"] else 1], b[:: -1 if self._given["trans_b"] else 1]
        if differs(k, rows):
            raise self._refusal(a, b)
        broadcast = c is None or (
            len(c) <= 2 and not any(differs(size, 1) and differs(size, whole) for size, whole in zip(c[::-1], (n, m)))
        )
        if not broadcast:
            raise OperatorError(
                f"gemm: C has the shape {shape_text(c)}; accepted are shapes that broadcast to {shape_text((m, n))}."
            )
        return [(m, n)], [dtypes[0]]

    def _refusal(self, a: Sequence[Any], b: Sequence[Any]) -> OperatorError:
        return OperatorError(
            f"gemm: A has the shape {shape_text(a)} and B {shape_text(b)}, with trans_a={int(self._given['trans_a'])} "
            f"and trans_b={int(self._given['trans_b'])}; accepted are matrices A' [M, K] and B' [K, N]."
        )
