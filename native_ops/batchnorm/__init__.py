"""Normalisation of channels by the statistics of a batch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from deep500.core.errors import OperatorError
from deep500.operators import attributes
from deep500.operators.custom.cpp_op import CppOp
from native_ops._checks import check_shape

__all__ = ["BatchNorm"]

_NAMES = ("scale", "bias", "mean", "variance")


class BatchNorm(CppOp):
    r"""Normalise every channel to mean 0 and variance 1, then scale and shift it.

    .. math::
        Y = \frac{X - \mu}{\sqrt{\sigma^2 + \epsilon}} \cdot \text{scale} + \text{bias}

    With ``training_mode`` 1, :math:`\mu` and :math:`\sigma^2` are mean and population variance (divided by n) of the
    batch, and

    .. math::
        \text{running\_mean} &= \text{mean} \cdot \text{momentum} + \mu\,(1 - \text{momentum}) \\
        \text{running\_var} &= \text{variance} \cdot \text{momentum} + \sigma^2\,(1 - \text{momentum})

    With ``training_mode`` 0 they are the inputs ``mean`` and ``variance``, and the running statistics are copies of
    these. Inputs X ``[N, C, D1, ...]`` or, with one channel, ``[N]``, float32, float64, bfloat16 or float16; scale,
    bias, mean and variance ``[C]`` in X's dtype, in float32 where X has 16 bits. Outputs Y like X, running_mean and
    running_var ``[C]`` like mean.

    Sums are accumulated in float64, and the variance is that of the deviations from the mean: nothing cancels where
    the mean is large. Differentiable by all inputs through all outputs; in training the gradient by X accounts for the
    batch's statistics.

    Example:
        >>> import numpy as np
        >>> one, zero = np.ones(1), np.zeros(1)
        >>> op = BatchNorm(epsilon=0.0, momentum=0.5, training_mode=1)
        >>> y, mean, var = op(np.array([[1.0], [3.0]]), one, zero, zero, one)
        >>> y.ravel(), mean, var
        (array([-1.,  1.]), array([1.]), array([1.]))

    Source: ONNX BatchNormalization, version 15; S. Ioffe, C. Szegedy, https://arxiv.org/abs/1502.03167.
    """

    name = "batchnorm"
    source = "batchnorm.cpp"
    cuda_source = "batchnorm.cu"
    dtypes = ("float32", "float64", "bfloat16", "float16")

    def __init__(self, *, epsilon: float = 1e-5, momentum: float = 0.9, training_mode: int = 0) -> None:
        """Set the attributes.

        Args:
            epsilon: What is added to the variance, rounded to float32.
            momentum: Share of the old value in the running statistics, rounded to float32.
            training_mode: 1 to normalise with the statistics of the batch, and to update the running ones.

        Raises:
            OperatorError: An attribute is not what is accepted.
        """
        super().__init__(
            epsilon=attributes.real("batchnorm", "epsilon", epsilon),
            momentum=attributes.real("batchnorm", "momentum", momentum),
            training_mode=attributes.flag("batchnorm", "training_mode", training_mode),
        )

    def example_inputs(self, rng: np.random.Generator, dtype: str, large: bool = False) -> list[Any]:
        """Return X, scale, bias, mean and variance; see :meth:`CustomOp.example_inputs`."""
        shape = (16, 32, 28, 28) if large else (4, 3, 2, 5)
        vectors = [rng.uniform(0.5, 1.5, shape[1]) for _ in _NAMES]
        return [1.0 + 2.0 * rng.standard_normal(shape), *vectors]

    def infer(self, shapes: Sequence[Any], dtypes: Sequence[Any]) -> tuple[Any, Any]:
        """Return shapes and dtypes of Y and the running statistics.

        Raises:
            OperatorError: X is a scalar, or another input has not one entry a channel.
        """
        x = shapes[0]
        if not x:
            raise OperatorError("batchnorm: X is a scalar; accepted is [N, C, D1, ...] or [N].")
        channels = 1 if len(x) == 1 else x[1]
        for name, shape in zip(_NAMES, shapes[1:]):
            check_shape("batchnorm", name, shape, (channels,), ", one entry a channel")
        return [x, (channels,), (channels,)], [dtypes[0], dtypes[3], dtypes[4]]
