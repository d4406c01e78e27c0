"""ONNX LayerNormalization."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import ml_dtypes
import numpy as np

from deep500.core.errors import OperatorError
from deep500.operators import attributes
from deep500.operators.library._broadcast import unbroadcast
from deep500.operators.library._tensors import (
    check_dtypes,
    compute_dtype,
    normalise_axis,
    present,
    returned,
    take_inputs,
)
from deep500.operators.operator import Array, Operator, OptionalArray

__all__ = ["LayerNormalization"]

_NAME = "LayerNormalization"
_STASHES = {1: np.float32, 10: np.float16, 11: np.float64, 16: ml_dtypes.bfloat16}


class _Normal(NamedTuple):
    """The normalised input and one over the deviations, in the dtype to compute in, and the means."""

    x: Array
    inverse: Array
    mean: Array


class LayerNormalization(Operator):
    r"""Normalise the last axes to mean 0 and variance 1, then scale and shift every element.

    .. math::
        Y = \frac{X - \mu}{\sqrt{\sigma^2 + \epsilon}} \odot \text{Scale} + B

    with mean and population variance over the axes from ``axis`` on. Inputs: X ``[d1, ...]``; Scale and optionally B,
    that broadcast to X. All are float16, bfloat16, float32 or float64, and of one dtype. Outputs, always all: Y, of X's
    dtype; Mean and InvStdDev (one over the deviation), of the dtype that ``stash_type`` names, with 1 in place of the
    axes. 16-bit floats are computed in float32, and float64 in float64 whatever ``stash_type`` is.

    Source: ONNX LayerNormalization, version 17; https://arxiv.org/abs/1607.06450.
    """

    def __init__(self, *, axis: int = -1, epsilon: float = 1e-5, stash_type: int = 1) -> None:
        """Set the attributes.

        Args:
            axis: The first of the axes; negative values count from the back.
            epsilon: What is added to the variance.
            stash_type: ONNX' number of the dtype of Mean and InvStdDev.

        Raises:
            OperatorError: An attribute is not what is accepted.
        """
        self.axis = attributes.integer(_NAME, "axis", axis)
        self.epsilon = attributes.real(_NAME, "epsilon", epsilon)
        stash = attributes.integer(_NAME, "stash_type", stash_type)
        if stash not in _STASHES:
            raise OperatorError(
                f"{_NAME}: the attribute stash_type is {stash_type!r}; accepted is one of {[*_STASHES]}."
            )
        self.stash = np.dtype(_STASHES[stash])

    @np.errstate(all="ignore")
    def forward(self, inputs: Sequence[OptionalArray]) -> tuple[Array, ...]:
        """Compute Y, Mean and InvStdDev.

        Raises:
            OperatorError: The dtypes differ, X does not have the axis, or Scale or B does not broadcast to X.
        """
        x, scale, bias, axes = self._read(inputs)
        normal = self._normal(x, axes)
        y = normal.x * scale.astype(normal.x.dtype, copy=False)
        if bias is not None:
            y = y + bias.astype(normal.x.dtype, copy=False)
        statistics = (np.asarray(t).astype(self.stash) for t in (normal.mean, normal.inverse))
        return (np.asarray(y).astype(x.dtype, copy=False), *statistics)

    @np.errstate(all="ignore")
    def backward(
        self, grads: Sequence[OptionalArray], fwd_inputs: Sequence[OptionalArray], fwd_outputs: Sequence[OptionalArray]
    ) -> tuple[OptionalArray, ...]:
        r"""Compute the gradients by X, through all outputs, by Scale and by B.

        With the normalised input n, :math:`\partial \text{InvStdDev} / \partial x_i = -\text{InvStdDev}^2 n_i / d`.
        """
        if all(gradient is None for gradient in grads):
            return (None,) * len(fwd_inputs)
        x, scale, _, axes = self._read(fwd_inputs)
        normal = self._normal(x, axes)
        wide = normal.x.dtype
        given = [None if g is None else np.asarray(g).astype(wide, copy=False) for g in (*grads, None, None)[:3]]
        count = max(1, int(np.prod([x.shape[axis] for axis in axes])))
        by_x = np.zeros(x.shape, wide)
        by_scale: OptionalArray = None
        by_bias: OptionalArray = None
        if given[0] is not None:
            by_normal = given[0] * scale.astype(wide, copy=False)
            total = by_normal.sum(axis=axes, keepdims=True) / count
            along = (by_normal * normal.x).sum(axis=axes, keepdims=True) / count
            by_x = by_x + normal.inverse * (by_normal - total - normal.x * along)
            by_scale = unbroadcast(given[0] * normal.x, scale.shape)
            bias = fwd_inputs[2] if len(fwd_inputs) > 2 else None
            by_bias = None if bias is None else unbroadcast(given[0], np.asarray(bias).shape)
        if given[1] is not None:
            by_x = by_x + given[1] / count
        if given[2] is not None:
            by_x = by_x - given[2] * np.square(normal.inverse) * normal.x / count
        return returned([by_x, by_scale, by_bias], fwd_inputs)

    def _normal(self, x: Array, axes: tuple[int, ...]) -> _Normal:
        wide = x.astype(compute_dtype(x.dtype), copy=False)
        mean = wide.mean(axis=axes, keepdims=True)
        centred = wide - mean
        inverse = 1 / np.sqrt(np.square(centred).mean(axis=axes, keepdims=True) + wide.dtype.type(self.epsilon))
        return _Normal(centred * inverse, inverse, mean)

    def _read(self, inputs: Sequence[OptionalArray]) -> tuple[Array, Array, OptionalArray, tuple[int, ...]]:
        """Check the inputs; return them, and the axes."""
        names = ["X", "Scale", "B"]
        received = take_inputs(_NAME, inputs, names[:2], names[2:])
        check_dtypes(_NAME, names, received, "floats")
        x, scale, bias = present(received[0]), present(received[1]), received[2]
        first = normalise_axis(_NAME, self.axis, x.ndim)
        for name, tensor in (("Scale", scale), ("B", bias)):
            if tensor is not None and not _broadcasts(tensor.shape, x.shape):
                raise OperatorError(
                    f"{_NAME}: received X of shape {x.shape} and {name} of shape {tensor.shape}; accepted is a shape "
                    f"that broadcasts to X, as {x.shape[first:]}."
                )
        return x, scale, bias, tuple(range(first, x.ndim))


def _broadcasts(shape: tuple[int, ...], to: tuple[int, ...]) -> bool:
    """Whether a tensor of one shape broadcasts to another without changing that."""
    return len(shape) <= len(to) and all(n in (1, m) for n, m in zip(shape[::-1], to[::-1], strict=False))
