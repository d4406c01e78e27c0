"""ONNX Det."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from deep500.core.errors import OperatorError
from deep500.operators.library._products import product_of_others
from deep500.operators.library._tensors import check_dtypes, compute_dtype, present, returned, take_inputs
from deep500.operators.operator import Array, Operator, OptionalArray

__all__ = ["Det"]


class Det(Operator):
    r"""Determinants of square matrices.

    Input X ``[..., M, M]``, output Y ``[...]``; one dtype: float16, bfloat16, float32 or float64. The gradient is the
    matrix of cofactors, :math:`\det X\; X^{-T}`, also where X cannot be inverted: with the singular value decomposition
    :math:`X = U S V^T` it is :math:`\det(U V^T)\; U C V^T`, where C holds the products of all singular values but one.

    Source: ONNX Det, version 22.
    """

    @np.errstate(all="ignore")
    def forward(self, inputs: Sequence[OptionalArray]) -> tuple[Array, ...]:
        """Compute the determinants.

        Raises:
            OperatorError: The input is not of floats, or not of square matrices.
        """
        x = _read(inputs)
        return (np.asarray(np.linalg.det(x.astype(compute_dtype(x.dtype), copy=False))).astype(x.dtype, copy=False),)

    @np.errstate(all="ignore")
    def backward(
        self, grads: Sequence[OptionalArray], fwd_inputs: Sequence[OptionalArray], fwd_outputs: Sequence[OptionalArray]
    ) -> tuple[OptionalArray, ...]:
        """Compute the gradient by the matrices."""
        x = _read(fwd_inputs)
        if grads[0] is None:
            return (None,)
        wide = compute_dtype(x.dtype)
        u, s, v = np.linalg.svd(x.astype(wide, copy=False))
        others = product_of_others(s, (s.ndim - 1,))
        sign = np.linalg.det(u) * np.linalg.det(v)
        cofactors = sign[..., None, None] * ((u * others[..., None, :]) @ v)
        return returned([np.asarray(grads[0]).astype(wide, copy=False)[..., None, None] * cofactors], fwd_inputs)


def _read(inputs: Sequence[OptionalArray]) -> Array:
    x = present(take_inputs("Det", inputs, ["X"])[0])
    check_dtypes("Det", ["X"], [x], "floats")
    if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
        raise OperatorError(f"Det: received a tensor of shape {x.shape}; accepted are square matrices [..., M, M].")
    return x
