"""ONNX MatMul."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from deep500.core.errors import OperatorError
from deep500.operators.library._broadcast import broadcast_shape, unbroadcast
from deep500.operators.library._tensors import check_dtypes, compute_dtype, is_float, present, returned, take_inputs
from deep500.operators.operator import Array, Operator, OptionalArray

__all__ = ["MatMul"]


class MatMul(Operator):
    r"""Matrix product with the semantics of :func:`numpy.matmul`.

    .. math::
        Y_{\ldots,m,n} = \sum_k A_{\ldots,m,k} B_{\ldots,k,n}

    Inputs A ``[..., M, K]`` and B ``[..., K, N]``, whose leading axes broadcast, or vectors ``[K]``, whose missing axis
    is missing in Y as well; output Y ``[..., M, N]``. One dtype: a float, or an integer of 32 or 64 bits; 16-bit floats
    are accumulated in float32.

    Source: ONNX MatMul, version 13.
    """

    @np.errstate(all="ignore")
    def forward(self, inputs: Sequence[OptionalArray]) -> tuple[Array, ...]:
        """Compute Y.

        Raises:
            OperatorError: An input is a scalar, the shapes do not fit, or the dtypes differ.
        """
        a, b = _read(inputs)
        wide = compute_dtype(a.dtype)
        y = np.matmul(a.astype(wide, copy=False), b.astype(wide, copy=False))
        return (np.asarray(y).astype(a.dtype, copy=False),)

    @np.errstate(all="ignore")
    def backward(
        self, grads: Sequence[OptionalArray], fwd_inputs: Sequence[OptionalArray], fwd_outputs: Sequence[OptionalArray]
    ) -> tuple[OptionalArray, ...]:
        """Compute the gradients by A and B, summed over axes that were broadcast."""
        a, b = _read(fwd_inputs)
        if grads[0] is None or not is_float(a.dtype):
            return (None, None)
        wide = compute_dtype(a.dtype)
        gradient = np.asarray(grads[0]).astype(wide, copy=False)
        matrix_a = (a[None, :] if a.ndim == 1 else a).astype(wide, copy=False)
        matrix_b = (b[:, None] if b.ndim == 1 else b).astype(wide, copy=False)
        if b.ndim == 1:
            gradient = gradient[..., None]
        if a.ndim == 1:
            gradient = gradient[..., None, :]
        by_a = unbroadcast(np.matmul(gradient, matrix_b.swapaxes(-1, -2)), matrix_a.shape)
        if matrix_b.ndim == 2:
            # One product instead of one a batch entry and a sum.
            rows = math.prod(matrix_a.shape[:-1])
            flat_a = matrix_a.reshape(rows, matrix_a.shape[-1])
            by_b = np.matmul(flat_a.T, gradient.reshape(rows, matrix_b.shape[-1]))
        else:
            by_b = unbroadcast(np.matmul(matrix_a.swapaxes(-1, -2), gradient), matrix_b.shape)
        return returned([by_a.reshape(a.shape), by_b.reshape(b.shape)], fwd_inputs)


def _read(inputs: Sequence[OptionalArray]) -> tuple[Array, Array]:
    """Check the inputs."""
    a, b = map(present, take_inputs("MatMul", inputs, ["A", "B"]))
    check_dtypes("MatMul", ["A", "B"], [a, b], "numbers")
    if a.ndim == 0 or b.ndim == 0 or a.shape[-1] != b.shape[-2 if b.ndim > 1 else -1]:
        raise OperatorError(
            f"MatMul: received A of shape {a.shape} and B of shape {b.shape}; accepted are A [..., M, K] or [K] and B "
            f"[..., K, N] or [K]."
        )
    broadcast_shape("MatMul", a.shape[:-2], b.shape[:-2])
    return a, b
