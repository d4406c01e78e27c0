"""ONNX BatchNormalization."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from deep500.core.errors import OperatorError
from deep500.operators import attributes
from deep500.operators.library._tensors import check_dtypes, compute_dtype, present, take_inputs
from deep500.operators.operator import Array, Operator, OptionalArray

__all__ = ["BatchNormalization"]

_NAMES = ("X", "scale", "B", "input_mean", "input_var")


class _Read(NamedTuple):
    """The inputs: X as ``[N, C, S]`` in the dtype to compute in, the others as float64 of shape ``[C]``."""

    x: Array
    scale: Array
    bias: Array
    mean: Array
    variance: Array


class BatchNormalization(Operator):
    r"""Normalise every channel to mean 0 and variance 1, then scale and shift it.

    .. math::
        Y = \frac{X - \mu}{\sqrt{\sigma^2 + \epsilon}} \cdot \text{scale} + B

    With ``training_mode`` 0, :math:`\mu` and :math:`\sigma^2` are the inputs ``input_mean`` and ``input_var``, and Y is
    the only output. With ``training_mode`` 1 they are mean and population variance (divided by n, not n - 1) of the
    batch, and two more outputs are

    .. math::
        \text{running\_mean} &= \text{input\_mean} \cdot \text{momentum} + \mu\,(1 - \text{momentum}) \\
        \text{running\_var} &= \text{input\_var} \cdot \text{momentum} + \sigma^2\,(1 - \text{momentum})

    X is ``[N, C, D1, ...]``, or ``[N]`` with one channel; the others are ``[C]``. X has one dtype, scale and B one, the
    statistics one, each of float16, bfloat16, float32 and float64. Y has X's dtype, the running statistics theirs.
    Sums over the batch are accumulated in float64, those over the pixels of an image in X's dtype (float32 for 16-bit
    floats); the variance is that of the deviations from the mean. An empty batch in training gives statistics of NaN.

    Source: ONNX BatchNormalization, version 15; Ioffe and Szegedy, https://arxiv.org/abs/1502.03167.
    """

    def __init__(self, *, epsilon: float = 1e-5, momentum: float = 0.9, training_mode: int = 0) -> None:
        """Set the attributes.

        Args:
            epsilon: What is added to the variance.
            momentum: Share of the old value in the running statistics.
            training_mode: 1 to normalise with the statistics of the batch, and to update the running ones.

        Raises:
            OperatorError: An attribute is not what is accepted.
        """
        self.epsilon = attributes.real("BatchNormalization", "epsilon", epsilon)
        self.momentum = attributes.real("BatchNormalization", "momentum", momentum)
        self.training_mode = attributes.flag("BatchNormalization", "training_mode", training_mode)

    @np.errstate(all="ignore")
    def forward(self, inputs: Sequence[OptionalArray]) -> tuple[Array, ...]:
        """Compute Y and, in training, the running statistics.

        Raises:
            OperatorError: Shapes or dtypes are not what is accepted.
        """
        read = self._read(inputs)
        y, mean, variance = self._centred(read)
        y *= _per_channel(self._inverse_deviation(variance) * read.scale, y)
        y += _per_channel(read.bias, y)
        original = np.asarray(inputs[0])
        result = y.reshape(original.shape).astype(original.dtype, copy=False)
        if not self.training_mode:
            return (result,)
        kept, new = self.momentum, 1.0 - self.momentum
        dtype = np.asarray(inputs[3]).dtype
        running_mean, running_var = read.mean * kept + mean * new, read.variance * kept + variance * new
        return result, running_mean.astype(dtype), running_var.astype(dtype)

    @np.errstate(all="ignore")
    def backward(
        self, grads: Sequence[OptionalArray], fwd_inputs: Sequence[OptionalArray], fwd_outputs: Sequence[OptionalArray]
    ) -> tuple[OptionalArray, ...]:
        """Compute the gradients by X, scale and B; ``None`` by the statistics.

        In training the batch's statistics depend on X, and the gradient by X accounts for it. Gradients by the running
        statistics, where there are any, are propagated to X as well.
        """
        if all(gradient is None for gradient in grads):
            return (None,) * len(fwd_inputs)
        read = self._read(fwd_inputs)
        centred, mean, variance = self._centred(read)
        inverse = self._inverse_deviation(variance)
        x = np.asarray(fwd_inputs[0])
        by_scale: OptionalArray = None
        by_bias: OptionalArray = None
        # by_x = slope * gradient + along * centred + shift, all three one number a channel.
        slope, along, shift = inverse * read.scale, np.zeros_like(inverse), np.zeros_like(inverse)
        by_x = np.zeros_like(centred)
        count = max(1, centred.shape[0] * centred.shape[2])
        if grads[0] is not None:
            gradient = np.asarray(grads[0]).reshape(centred.shape).astype(centred.dtype, copy=False)
            by_bias = _channel_sum(gradient)
            by_scale = _channel_sum(gradient * centred) * inverse
            np.multiply(gradient, _per_channel(slope, gradient), out=by_x)
            along = -slope * by_scale * inverse / count
            shift = -slope * by_bias / count
        if self.training_mode:
            along, shift = self._running_gradients(grads, mean, along, shift, count)
            centred *= _per_channel(along, centred)
            by_x += centred
            by_x += _per_channel(shift, by_x)
        dtype = np.asarray(fwd_inputs[1]).dtype
        return (
            by_x.reshape(x.shape).astype(x.dtype, copy=False),
            None if by_scale is None else by_scale.astype(dtype),
            None if by_bias is None else by_bias.astype(dtype),
            None,
            None,
        )

    def _running_gradients(
        self, grads: Sequence[OptionalArray], mean: Array, along: Array, shift: Array, count: int
    ) -> tuple[Array, Array]:
        """Add what the running statistics' gradients contribute to the gradient by X."""
        part = (1.0 - self.momentum) / count
        if len(grads) > 1 and grads[1] is not None:
            shift = shift + np.asarray(grads[1]).astype(mean.dtype) * part
        if len(grads) > 2 and grads[2] is not None:
            along = along + np.asarray(grads[2]).astype(mean.dtype) * (2.0 * part)
        return along, shift

    def _inverse_deviation(self, variance: Array) -> Array:
        return np.asarray(1.0 / np.sqrt(variance + self.epsilon))

    def _centred(self, read: _Read) -> tuple[Array, Array, Array]:
        """Return X minus the mean as a new tensor, and the mean and variance with which to normalise."""
        if not self.training_mode:
            return read.x - _per_channel(read.mean, read.x), read.mean, read.variance
        count = np.float64(read.x.shape[0] * read.x.shape[2])
        mean = _channel_sum(read.x) / count
        centred = read.x - _per_channel(mean, read.x)
        variance = _channel_sum(np.square(centred)) / count
        return centred, mean, variance

    @staticmethod
    def _read(inputs: Sequence[OptionalArray]) -> _Read:
        """Check the inputs."""
        received = [present(x) for x in take_inputs("BatchNormalization", inputs, _NAMES)]
        for part in (slice(0, 1), slice(1, 3), slice(3, 5)):
            check_dtypes("BatchNormalization", _NAMES[part], received[part], "floats")
        x = received[0]
        if x.ndim == 0:
            raise OperatorError("BatchNormalization: received a scalar X; accepted is [N, C, D1, ...] or [N].")
        channels = 1 if x.ndim == 1 else x.shape[1]
        wrong = [f"{name} {t.shape}" for name, t in zip(_NAMES, received, strict=True) if t.shape != (channels,)]
        if wrong := [text for text in wrong if not text.startswith("X ")]:
            raise OperatorError(
                f"BatchNormalization: received X of shape {x.shape} and {', '.join(wrong)}; accepted is ({channels},), "
                f"one entry a channel."
            )
        pixels = int(np.prod(x.shape[2:]))
        flat = x.reshape(x.shape[0], channels, pixels).astype(compute_dtype(x.dtype), copy=False)
        return _Read(flat, *(t.astype(np.float64) for t in received[1:]))


def _per_channel(values: Array, like: Array) -> Array:
    """Return one number a channel in the dtype of a tensor ``[N, C, S]``, and so that it broadcasts to it."""
    return values.astype(like.dtype)[:, None]


def _channel_sum(x: Array) -> Array:
    """Return the sum of every channel of ``[N, C, S]`` in float64: pairwise over the pixels, then over the batch."""
    return np.asarray(x.sum(axis=2).sum(axis=0, dtype=np.float64))
