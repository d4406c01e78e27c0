"""Building blocks of the models: onnxscript modules whose parameters know how to start."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx_ir as ir
from numpy.typing import NDArray
from onnxscript import OpBuilder, nn

from deep500.networks.tensor_roles import ROLE_KEY, TensorRole

__all__ = [
    "BatchNormalization",
    "Convolution",
    "Dropout",
    "InitializedParameter",
    "Linear",
    "ModelInput",
    "TransposedConvolution",
    "flat_size",
    "glorot_normal",
    "he_normal",
    "normal",
    "ones",
    "truncated_normal",
    "uniform",
    "zeros",
]

#: ``initial(stream, shape)`` draws a parameter's first values in float64.
InitialValues = Callable[[np.random.Generator, Sequence[int]], NDArray[Any]]


@dataclass(frozen=True)
class ModelInput:
    """One input of a model: a module that has others than one floating input has a method ``inputs()`` listing them.

    Attributes:
        name: Its name.
        shape: Shape of one sample; the batch comes before it. Texts are symbolic sizes.
        dtype: Its dtype, ``None`` for the dtype of the network.
    """

    name: str
    shape: tuple[int | str, ...]
    dtype: str | None = None


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
    return normal(gain / math.sqrt(fan_in))


def glorot_normal(fan_in: int, fan_out: int) -> InitialValues:
    r"""Return a rule that draws from a normal distribution with deviation :math:`\sqrt{2 / (fan_{in} + fan_{out})}`.

    Source: X. Glorot and Y. Bengio, "Understanding the difficulty of training deep feedforward neural networks",
    AISTATS 2010.
    """
    return normal(math.sqrt(2 / (fan_in + fan_out)))


def normal(deviation: float, mean: float = 0.0) -> InitialValues:
    """Return a rule that draws from a normal distribution."""

    def draw(stream: np.random.Generator, shape: Sequence[int]) -> NDArray[Any]:
        values = stream.standard_normal(tuple(shape))
        values *= deviation  # in place: the largest tensors have 100 million elements
        return values + mean if mean else values

    return draw


def truncated_normal(deviation: float) -> InitialValues:
    """Return a rule that draws from a normal distribution, anew where a value is beyond two deviations."""

    def draw(stream: np.random.Generator, shape: Sequence[int]) -> NDArray[Any]:
        values = stream.standard_normal(math.prod(shape))
        beyond = np.flatnonzero(np.abs(values) > 2)
        while beyond.size:
            values[beyond] = stream.standard_normal(beyond.size)
            beyond = beyond[np.abs(values[beyond]) > 2]
        values *= deviation
        return values.reshape(tuple(shape))

    return draw


def uniform(limit: float) -> InitialValues:
    """Return a rule that draws from the uniform distribution over ``[-limit, limit)``."""

    def draw(stream: np.random.Generator, shape: Sequence[int]) -> NDArray[Any]:
        return stream.uniform(-limit, limit, tuple(shape))

    return draw


def zeros(stream: np.random.Generator, shape: Sequence[int]) -> NDArray[Any]:
    """Return zeros; the stream is not used."""
    return np.zeros(tuple(shape))


def ones(stream: np.random.Generator, shape: Sequence[int]) -> NDArray[Any]:
    """Return ones; the stream is not used."""
    return np.ones(tuple(shape))


class Linear(nn.Module):
    r"""Affine map :math:`y = x W^T + b` of ``[N, I]`` to ``[N, O]``; ``weight`` is ``[O, I]``, ``bias`` is ``[O]``."""

    def __init__(
        self,
        in_features: int,
        out_features: int,
        *,
        gain: float = math.sqrt(2.0),
        initial: InitialValues | None = None,
        initial_bias: InitialValues = zeros,
    ) -> None:
        """Declare weight and bias.

        Args:
            in_features: Number of values of a sample.
            out_features: Number of results of a sample.
            gain: Gain of :func:`he_normal` (1 before a softmax).
            initial: Another rule for the weight's first values.
            initial_bias: Rule for the bias's first values.
        """
        super().__init__()
        self.weight = InitializedParameter([out_features, in_features], initial or he_normal(in_features, gain))
        self.bias = InitializedParameter([out_features], initial_bias)

    def forward(self, op: OpBuilder, x: ir.Value) -> ir.Value:
        """Add one Gemm node."""
        result: ir.Value = op.Gemm(x, self.weight, self.bias, transB=1)
        return result


class Convolution(nn.Module):
    """Two-dimensional convolution of ``[N, I, H, W]``; ``weight`` is ``[O, I / groups, kH, kW]``, ``bias`` ``[O]``."""

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel: int,
        *,
        stride: int = 1,
        padding: int = 0,
        bias: bool = True,
        groups: int = 1,
        initial: InitialValues | None = None,
    ) -> None:
        """Declare weight and, unless a normalisation follows, bias; kernel, stride and padding are in pixels."""
        super().__init__()
        self.kernel, self.stride, self.padding, self.groups = kernel, stride, padding, groups
        shape = [out_channels, in_channels // groups, kernel, kernel]
        self.weight = InitializedParameter(shape, initial or he_normal(math.prod(shape[1:])))
        self.bias = InitializedParameter([out_channels], zeros) if bias else None

    def forward(self, op: OpBuilder, x: ir.Value) -> ir.Value:
        """Add one Conv node."""
        tensors = [x, self.weight] if self.bias is None else [x, self.weight, self.bias]
        grouping = {} if self.groups == 1 else {"group": self.groups}
        result: ir.Value = op.Conv(
            *tensors,
            kernel_shape=[self.kernel] * 2,
            strides=[self.stride] * 2,
            pads=[self.padding] * 4,
            **grouping,
        )
        return result


class TransposedConvolution(nn.Module):
    """Two-dimensional transposed convolution of ``[N, I, H, W]``; ``weight`` is ``[I, O, kH, kW]``, ``bias`` ``[O]``.

    Its output has ``(H - 1) stride + kernel - 2 padding`` rows.
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel: int,
        *,
        stride: int = 1,
        padding: int = 0,
        bias: bool = True,
        initial: InitialValues | None = None,
    ) -> None:
        """Declare weight and, unless a normalisation follows, bias; kernel, stride and padding are in pixels."""
        super().__init__()
        self.kernel, self.stride, self.padding = kernel, stride, padding
        # Each output pixel is a sum over the inputs of (kernel / stride)^2 pixels.
        fan_in = max(1, in_channels * kernel * kernel // (stride * stride))
        self.weight = InitializedParameter([in_channels, out_channels, kernel, kernel], initial or he_normal(fan_in))
        self.bias = InitializedParameter([out_channels], zeros) if bias else None

    def forward(self, op: OpBuilder, x: ir.Value) -> ir.Value:
        """Add one ConvTranspose node."""
        tensors = [x, self.weight] if self.bias is None else [x, self.weight, self.bias]
        result: ir.Value = op.ConvTranspose(
            *tensors,
            kernel_shape=[self.kernel] * 2,
            strides=[self.stride] * 2,
            pads=[self.padding] * 4,
        )
        return result


class Dropout(nn.Module):
    """Values are dropped at a rate while the network trains; at rate 0 there is no node.

    Source: N. Srivastava et al., "Dropout: a simple way to prevent neural networks from overfitting", JMLR 15, 2014.
    """

    def __init__(self, rate: float) -> None:
        """Set the share of values that are dropped."""
        super().__init__()
        self.rate = rate

    def forward(self, op: OpBuilder, x: ir.Value) -> ir.Value:
        """Add one Dropout node in evaluation form; a network in training mode changes it."""
        return op.Dropout(x, float(self.rate)) if self.rate else x


class BatchNormalization(nn.Module):
    """Normalisation of each channel of ``[N, C, H, W]`` over batch and pixels.

    Source: S. Ioffe and C. Szegedy, "Batch normalization", ICML 2015. ONNX' momentum is the weight of the *old*
    statistics, and its running variance is the biased one.
    """

    def __init__(
        self, channels: int, *, epsilon: float = 1e-5, momentum: float = 0.9, initial: InitialValues = ones
    ) -> None:
        """Declare scale, whose first values follow ``initial``, bias and the running statistics, each ``[C]``."""
        super().__init__()
        self.epsilon, self.momentum = epsilon, momentum
        self.scale = InitializedParameter([channels], initial)
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
