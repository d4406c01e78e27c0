"""ONNX Gemm."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from deep500.core.errors import OperatorError
from deep500.operators import attributes
from deep500.operators.library._broadcast import broadcast_shape, unbroadcast
from deep500.operators.library._tensors import check_dtypes, compute_dtype, is_float, present, returned, take_inputs
from deep500.operators.operator import Array, Operator, OptionalArray

__all__ = ["Gemm"]


class Gemm(Operator):
    r"""General matrix product.

    .. math::
        Y = \alpha\, A' B' + \beta\, C

    with :math:`A'` the transpose of A where ``transA`` is 1, and B likewise. Inputs A ``[M, K]`` (``[K, M]``), B
    ``[K, N]`` (``[N, K]``) and optionally C, which broadcasts to ``[M, N]``; output Y ``[M, N]``. One dtype: a float,
    or an integer of 32 or 64 bits; 16-bit floats are accumulated in float32. For integers :math:`\alpha A' B'` and
    :math:`\beta C` are each rounded towards zero where the factor is not 1. With ``beta`` 0, C is not read.

    Source: ONNX Gemm, version 13.
    """

    def __init__(self, *, alpha: float = 1.0, beta: float = 1.0, transA: int = 0, transB: int = 0) -> None:  # noqa: N803
        """Set the attributes.

        Args:
            alpha: Factor of the product.
            beta: Factor of C.
            transA: 1 to transpose A.
            transB: 1 to transpose B.

        Raises:
            OperatorError: An attribute is not what is accepted.
        """
        self.alpha = attributes.real("Gemm", "alpha", alpha)
        self.beta = attributes.real("Gemm", "beta", beta)
        self.trans_a = attributes.flag("Gemm", "transA", transA)
        self.trans_b = attributes.flag("Gemm", "transB", transB)

    @np.errstate(all="ignore")
    def forward(self, inputs: Sequence[OptionalArray]) -> tuple[Array, ...]:
        """Compute Y.

        Raises:
            OperatorError: A and B are not matrices that can be multiplied, C does not broadcast, or dtypes differ.
        """
        a, b, c = self._read(inputs)
        y = _times(np.matmul(a, b), self.alpha)
        if c is not None and self.beta != 0:
            y = y + _times(c.astype(y.dtype, copy=False), self.beta)
        return (y.astype(np.asarray(inputs[0]).dtype, copy=False),)

    @np.errstate(all="ignore")
    def backward(
        self, grads: Sequence[OptionalArray], fwd_inputs: Sequence[OptionalArray], fwd_outputs: Sequence[OptionalArray]
    ) -> tuple[OptionalArray, ...]:
        """Compute the gradients by A, B and C."""
        a, b, c = self._read(fwd_inputs)
        if grads[0] is None or not is_float(np.asarray(fwd_inputs[0]).dtype):
            return (None,) * len(fwd_inputs)
        gradient = np.asarray(grads[0]).astype(a.dtype, copy=False)
        by_product = _times(gradient, self.alpha)
        by_a, by_b = np.matmul(by_product, b.T), np.matmul(a.T, by_product)
        by_c = None if c is None else unbroadcast(_times(gradient, self.beta), c.shape)
        return returned([by_a.T if self.trans_a else by_a, by_b.T if self.trans_b else by_b, by_c], fwd_inputs)

    def _read(self, inputs: Sequence[OptionalArray]) -> tuple[Array, Array, OptionalArray]:
        """Check the inputs; return A' and B' in the dtype to compute in, and C."""
        received = take_inputs("Gemm", inputs, ["A", "B"], ["C"])
        check_dtypes("Gemm", ["A", "B", "C"], received, "numbers")
        a, b, c = present(received[0]), present(received[1]), received[2]
        text = f"Gemm: received A of shape {a.shape} and B of shape {b.shape} with transA={int(self.trans_a)} and "
        text += f"transB={int(self.trans_b)}; accepted are matrices A' [M, K] and B' [K, N]."
        if a.ndim != 2 or b.ndim != 2:
            raise OperatorError(text)
        a, b = a.T if self.trans_a else a, b.T if self.trans_b else b
        if a.shape[1] != b.shape[0]:
            raise OperatorError(text)
        shape = (a.shape[0], b.shape[1])
        if c is not None and broadcast_shape("Gemm", shape, c.shape) != shape:
            raise OperatorError(f"Gemm: received C of shape {c.shape}; accepted are shapes that broadcast to {shape}.")
        wide = compute_dtype(a.dtype)
        return a.astype(wide, copy=False), b.astype(wide, copy=False), c


def _times(x: Array, factor: float) -> Array:
    """Multiply by a number; the dtype stays, integers are rounded towards zero."""
    if factor == 1.0:
        return x
    return np.asarray(x * factor).astype(x.dtype, copy=False)
