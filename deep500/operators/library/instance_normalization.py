"""ONNX InstanceNormalization."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from deep500.core.errors import OperatorError
from deep500.operators import attributes
from deep500.operators.library._tensors import check_dtypes, compute_dtype, present, returned, take_inputs
from deep500.operators.operator import Array, Operator, OptionalArray

__all__ = ["InstanceNormalization"]

_NAME = "InstanceNormalization"


class InstanceNormalization(Operator):
    r"""Normalise every channel of every instance to mean 0 and variance 1, then scale and shift it.

    .. math::
        y = \text{scale} \cdot \frac{x - \mu}{\sqrt{\sigma^2 + \epsilon}} + B

    with mean and population variance over the spatial axes. Inputs: input ``[N, C, D1, ...]``, scale and B ``[C]``, all
    float16, bfloat16, float32 or float64, and of one dtype; 16-bit floats are computed in float32.

    Source: ONNX InstanceNormalization, version 22; https://arxiv.org/abs/1607.08022.
    """

    def __init__(self, *, epsilon: float = 1e-5) -> None:
        """Set the attribute.

        Args:
            epsilon: What is added to the variance.

        Raises:
            OperatorError: It is not a finite number.
        """
        self.epsilon = attributes.real(_NAME, "epsilon", epsilon)

    @np.errstate(all="ignore")
    def forward(self, inputs: Sequence[OptionalArray]) -> tuple[Array, ...]:
        """Compute y.

        Raises:
            OperatorError: Shapes or dtypes do not fit.
        """
        x, scale, bias = _read(inputs)
        normal, _ = self._normal(x)
        return (
            (normal * scale + bias)
            .reshape(np.asarray(inputs[0]).shape)
            .astype(np.asarray(inputs[0]).dtype, copy=False),
        )

    @np.errstate(all="ignore")
    def backward(
        self, grads: Sequence[OptionalArray], fwd_inputs: Sequence[OptionalArray], fwd_outputs: Sequence[OptionalArray]
    ) -> tuple[OptionalArray, ...]:
        """Compute the gradients by the input, scale and B; mean and variance depend on the input."""
        if grads[0] is None:
            return (None,) * len(fwd_inputs)
        x, scale, _ = _read(fwd_inputs)
        normal, inverse = self._normal(x)
        gradient = np.asarray(grads[0]).reshape(x.shape).astype(x.dtype, copy=False)
        by_normal = gradient * scale
        count = max(1, x.shape[2])
        total = by_normal.sum(axis=2, keepdims=True) / count
        along = (by_normal * normal).sum(axis=2, keepdims=True) / count
        by_x = inverse * (by_normal - total - normal * along)
        by_scale, by_bias = (gradient * normal).sum(axis=(0, 2)), gradient.sum(axis=(0, 2))
        return returned([by_x.reshape(np.asarray(fwd_inputs[0]).shape), by_scale, by_bias], fwd_inputs)

    def _normal(self, x: Array) -> tuple[Array, Array]:
        """Return the normalised input, and one over the deviations ``[N, C, 1]``."""
        if not x.shape[2]:  # no mean, and nothing to normalise with one
            return x, np.zeros((*x.shape[:2], 1), x.dtype)
        centred = x - x.mean(axis=2, keepdims=True)
        inverse = 1 / np.sqrt(np.square(centred).mean(axis=2, keepdims=True) + x.dtype.type(self.epsilon))
        return centred * inverse, inverse


def _read(inputs: Sequence[OptionalArray]) -> tuple[Array, Array, Array]:
    """Check the inputs; return them as ``[N, C, S]`` and ``[C, 1]`` in the dtype to compute in."""
    names = ["input", "scale", "B"]
    x, scale, bias = (present(t) for t in take_inputs(_NAME, inputs, names))
    check_dtypes(_NAME, names, [x, scale, bias], "floats")
    if x.ndim < 3 or scale.shape != x.shape[1:2] or bias.shape != x.shape[1:2]:
        raise OperatorError(
            f"{_NAME}: received an input of shape {x.shape}, scale of shape {scale.shape} and B of shape {bias.shape}; "
            f"accepted are [N, C, D1, ...], [C] and [C]."
        )
    wide = compute_dtype(x.dtype)
    flat = x.astype(wide, copy=False).reshape(*x.shape[:2], int(np.prod(x.shape[2:])))
    return flat, scale.astype(wide)[:, None], bias.astype(wide)[:, None]
