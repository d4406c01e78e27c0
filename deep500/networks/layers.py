"""Building blocks of the models: onnxscript modules whose parameters know how to start."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx_ir as ir
from numpy.typing import NDArray
from onnxscript import OpBuilder, nn

from deep500.networks.tensor_roles import ROLE_KEY, TensorRole

__all__ = [
    "BatchNormalization",
    "Convolution",
    "InitializedParameter",
    "Linear",
    "flat_size",
    "he_normal",
    "ones",
    "zeros",
]

#: ``initial(stream, shape)`` draws a parameter's first values in float64.
InitialValues = Callable[[np.random.Generator, Sequence[int]], NDArray[Any]]


class InitializedParameter(nn.Parameter):
    """A parameter together with the rule for its first values and its role."""

    def __init__(self, shape: Sequence[int], initial: InitialValues, role: TensorRole = TensorRole.PARAMETER) -> None:
        """Declare a parameter; its dtype and values are set when the model is created.

        Args:
            shape: Its shape.
            initial: Rule for its first values.
            role: Whether it is trained or a running state.
        """
        super().__init__(shape)
        self.initial = initial
        self.metadata_props[ROLE_KEY] = role.value


def he_normal(fan_in: int, gain: float = math.sqrt(2.0)) -> InitialValues:
    r"""Return a rule that draws from a normal distribution with deviation :math:`gain / \sqrt{fan_{in}}`.

    Source: K. He et al., "Delving deep into rectifiers", ICCV 2015.
    """

    def draw(stream: np.random.Generator, shape: Sequence[int]) -> NDArray[Any]:
        return stream.standard_normal(tuple(shape)) * (gain / math.sqrt(fan_in))

    return draw


def zeros(stream: np.random.Generator, shape: Sequence[int]) -> NDArray[Any]:
    """Return zeros; the stream is not used."""
    return np.zeros(tuple(shape))


def ones(stream: np.random.Generator, shape: Sequence[int]) -> NDArray[Any]:
    """Return ones; the stream is not used."""
    return np.ones(tuple(shape))


class Linear(nn.Module):
    r"""Affine map :math:`y = x W^T + b` of ``[N, I]`` to ``[N, O]``; ``weight`` is ``[O, I]``, ``bias`` is ``[O]``."""

    def __init__(self, in_features: int, out_features: int, *, gain: float = math.sqrt(2.0)) -> None:
        """Declare weight and bias; ``gain`` is that of :func:`he_normal` (1 before a softmax)."""
        super().__init__()
        self.weight = InitializedParameter([out_features, in_features], he_normal(in_features, gain))
        self.bias = InitializedParameter([out_features], zeros)

    def forward(self, op: OpBuilder, x: ir.Value) -> ir.Value:
        """Add one Gemm node."""
        result: ir.Value = op.Gemm(x, self.weight, self.bias, transB=1)
        return result


class Convolution(nn.Module):
    """Two-dimensional convolution of ``[N, I, H, W]``; ``weight`` is ``[O, I, kH, kW]``, ``bias`` is ``[O]``."""

    def __init__(
        self, in_channels: int, out_channels: int, kernel: int, *, stride: int = 1, padding: int = 0, bias: bool = True
    ) -> None:
        """Declare weight and, unless a normalisation follows, bias; kernel, stride and padding are in pixels."""
        super().__init__()
        self.kernel, self.stride, self.padding = kernel, stride, padding
        shape = [out_channels, in_channels, kernel, kernel]
        self.weight = InitializedParameter(shape, he_normal(in_channels * kernel * kernel))
        self.bias = InitializedParameter([out_channels], zeros) if bias else None

    def forward(self, op: OpBuilder, x: ir.Value) -> ir.Value:
        """Add one Conv node."""
        tensors = [x, self.weight] if self.bias is None else [x, self.weight, self.bias]
        result: ir.Value = op.Conv(
            *tensors,
            kernel_shape=[self.kernel] * 2,
            strides=[self.stride] * 2,
            pads=[self.padding] * 4,
        )
        return result


class BatchNormalization(nn.Module):
    """Normalisation of each channel of ``[N, C, H, W]`` over batch and pixels.

    Source: S. Ioffe and C. Szegedy, "Batch normalization", ICML 2015. ONNX' momentum is the weight of the *old*
    statistics, and its running variance is the biased one.
    """

    def __init__(self, channels: int, *, epsilon: float = 1e-5, momentum: float = 0.9) -> None:
        """Declare scale, bias and the running statistics, each ``[C]``."""
        super().__init__()
        self.epsilon, self.momentum = epsilon, momentum
        self.scale = InitializedParameter([channels], ones)
        self.bias = InitializedParameter([channels], zeros)
        self.running_mean = InitializedParameter([channels], zeros, TensorRole.STATE)
        self.running_var = InitializedParameter([channels], ones, TensorRole.STATE)

    def forward(self, op: OpBuilder, x: ir.Value) -> ir.Value:
        """Add one BatchNormalization node in evaluation form; a network in training mode changes it."""
        result: ir.Value = op.BatchNormalization(
            x,
            self.scale,
            self.bias,
            self.running_mean,
            self.running_var,
            epsilon=self.epsilon,
            momentum=self.momentum,
        )
        return result


def flat_size(shape: Sequence[int]) -> int:
    """Return the number of elements of a sample."""
    return math.prod(shape)
