"""Activations."""

from __future__ import annotations

import torch
import torch.nn.functional as F  # noqa: N812 - PyTorch's own convention

from deep500.frameworks.pytorch._recording import recorded
from deep500.frameworks.pytorch.lowering import lowerings
from deep500.frameworks.pytorch.lowering._integers import is_signed, narrowed, wider
from deep500.frameworks.pytorch.lowering._kinds import is_integer
from deep500.networks.operator_node import OperatorNode

__all__: list[str] = []


@lowerings.register("Relu", since=6)
def relu(node: OperatorNode, x: torch.Tensor) -> torch.Tensor:
    """``max(x, 0)``.

    Source: ONNX Relu-14.
    """
    return torch.relu(x)


@lowerings.register("LeakyRelu", since=6)
def leaky_relu(node: OperatorNode, x: torch.Tensor) -> torch.Tensor:
    """``x`` where it is positive, ``alpha x`` elsewhere.

    Source: ONNX LeakyRelu-16.
    """
    return F.leaky_relu(x, node.attributes.get("alpha", 0.01))


@recorded
def _sloped(x: torch.Tensor, slope: torch.Tensor) -> torch.Tensor:
    if not is_signed(x.dtype):
        return x.clone()
    return torch.where(x < 0, x * slope, x)


@lowerings.register("PRelu", since=9)
def prelu(node: OperatorNode, x: torch.Tensor, slope: torch.Tensor) -> torch.Tensor:
    """``x`` where it is not negative, ``slope x`` elsewhere; the slope broadcasts to ``x``.

    Source: ONNX PRelu-16.
    """
    if is_integer(node):
        return _sloped(x, slope)
    return torch.where(x < 0, x * slope, x)


@lowerings.register("ThresholdedRelu", since=10)
def thresholded_relu(node: OperatorNode, x: torch.Tensor) -> torch.Tensor:
    """``x`` where it is greater than ``alpha``, 0 elsewhere.

    Source: ONNX ThresholdedRelu-22.
    """
    return torch.where(x > node.attributes.get("alpha", 1.0), x, 0.0)


@lowerings.register("Elu", since=6)
def elu(node: OperatorNode, x: torch.Tensor) -> torch.Tensor:
    """``x`` where it is positive, ``alpha (exp(x) - 1)`` elsewhere.

    Source: ONNX Elu-22.
    """
    return F.elu(x, node.attributes.get("alpha", 1.0))


@lowerings.register("Celu", since=12)
def celu(node: OperatorNode, x: torch.Tensor) -> torch.Tensor:
    """``max(0, x) + min(0, alpha (exp(x / alpha) - 1))``.

    Source: ONNX Celu-28.
    """
    return F.celu(x, node.attributes.get("alpha", 1.0))


@lowerings.register("Selu", since=6)
def selu(node: OperatorNode, x: torch.Tensor) -> torch.Tensor:
    """``gamma x`` where ``x`` is positive, ``gamma alpha (exp(x) - 1)`` elsewhere.

    Source: ONNX Selu-22.
    """
    alpha = node.attributes.get("alpha", 1.67326319217681884765625)
    gamma: float = node.attributes.get("gamma", 1.05070102214813232421875)
    return F.elu(x, alpha) * gamma


@lowerings.register("Gelu", since=20)
def gelu(node: OperatorNode, x: torch.Tensor) -> torch.Tensor:
    """``x (1 + erf(x / sqrt(2))) / 2``, or its approximation by the hyperbolic tangent.

    Source: ONNX Gelu-20.
    """
    return F.gelu(x, approximate=node.attributes.get("approximate", "none"))


@lowerings.register("Mish", since=18)
def mish(node: OperatorNode, x: torch.Tensor) -> torch.Tensor:
    """``x tanh(log(1 + exp(x)))``.

    Source: ONNX Mish-22.
    """
    return F.mish(x)


def _swish(x: torch.Tensor, alpha: float) -> torch.Tensor:
    return F.silu(x) if alpha == 1.0 else x * torch.sigmoid(x * alpha)


@lowerings.register("Swish", since=24)
def swish(node: OperatorNode, x: torch.Tensor) -> torch.Tensor:
    """``x sigmoid(alpha x)``.

    Source: ONNX Swish-24.
    """
    return _swish(x, node.attributes.get("alpha", 1.0))


@lowerings.register("SwiGLU", since=28)
def swiglu(node: OperatorNode, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """``a sigmoid(alpha a) b``.

    Source: ONNX SwiGLU-28.
    """
    return _swish(a, node.attributes.get("alpha", 1.0)) * b


@lowerings.register("HardSigmoid", since=6)
def hard_sigmoid(node: OperatorNode, x: torch.Tensor) -> torch.Tensor:
    """``alpha x + beta`` kept between 0 and 1.

    Source: ONNX HardSigmoid-22.
    """
    alpha = node.attributes.get("alpha", 0.20000000298023224)  # 0.2 as a float of 32 bits, as ONNX holds it
    beta = node.attributes.get("beta", 0.5)
    return torch.clamp(x * alpha + beta, 0.0, 1.0)


@lowerings.register("HardSwish", since=14)
def hard_swish(node: OperatorNode, x: torch.Tensor) -> torch.Tensor:
    """``x`` times ``x / 6 + 1/2`` kept between 0 and 1.

    Source: ONNX HardSwish-22.
    """
    return F.hardswish(x)


@lowerings.register("Softplus", since=1)
def softplus(node: OperatorNode, x: torch.Tensor) -> torch.Tensor:
    """``log(1 + exp(x))``.

    Source: ONNX Softplus-22.
    """
    # From 40 on the sum is x itself in all dtypes; PyTorch's own threshold is too low for float64.
    return F.softplus(x, threshold=40.0)


@lowerings.register("Softsign", since=1)
def softsign(node: OperatorNode, x: torch.Tensor) -> torch.Tensor:
    """``x / (1 + |x|)``.

    Source: ONNX Softsign-22.
    """
    return F.softsign(x)


@recorded
def _shrunk(x: torch.Tensor, lambd: float, bias: float) -> torch.Tensor:
    # Compared as floats of 64 bits, in which the thresholds, floats of 32 bits, are exact.
    number = x.to(torch.float64)
    if bias == int(bias):
        lower, upper = wider(x) + int(bias), wider(x) - int(bias)
    else:
        lower, upper = (number + bias).to(torch.int64), (number - bias).to(torch.int64)
    shrunk = torch.where(number < -lambd, lower, torch.where(number > lambd, upper, torch.zeros_like(lower)))
    return narrowed(shrunk, x.dtype)


@lowerings.register("Shrink", since=9)
def shrink(node: OperatorNode, x: torch.Tensor) -> torch.Tensor:
    """``x + bias`` where ``x < -lambd``, ``x - bias`` where ``x > lambd``, 0 between; integers are truncated.

    Source: ONNX Shrink-9.
    """
    lambd, bias = node.attributes.get("lambd", 0.5), node.attributes.get("bias", 0.0)
    if is_integer(node):
        return _shrunk(x, lambd, bias)
    return torch.where(x < -lambd, x + bias, torch.where(x > lambd, x - bias, 0.0))


@lowerings.register("Sigmoid", since=6)
def sigmoid(node: OperatorNode, x: torch.Tensor) -> torch.Tensor:
    """``1 / (1 + exp(-x))``.

    Source: ONNX Sigmoid-13.
    """
    return torch.sigmoid(x)


@lowerings.register("Tanh", since=6)
def tanh(node: OperatorNode, x: torch.Tensor) -> torch.Tensor:
    """Hyperbolic tangent.

    Source: ONNX Tanh-13.
    """
    return torch.tanh(x)


@lowerings.register("Softmax", since=13)
def softmax(node: OperatorNode, x: torch.Tensor) -> torch.Tensor:
    """Exponentials along an axis, divided by their sum.

    Source: ONNX Softmax-13.
    """
    return torch.softmax(x, node.attributes.get("axis", -1))


@lowerings.register("LogSoftmax", since=13)
def log_softmax(node: OperatorNode, x: torch.Tensor) -> torch.Tensor:
    """Logarithm of :func:`softmax`.

    Source: ONNX LogSoftmax-13.
    """
    return torch.log_softmax(x, node.attributes.get("axis", -1))


@recorded
def _hardmax(x: torch.Tensor, axis: int) -> torch.Tensor:
    zeros = torch.zeros_like(x)
    if x.numel() == 0:
        return zeros
    return zeros.scatter(axis, torch.argmax(x, axis, keepdim=True), 1.0)


@lowerings.register("Hardmax", since=13)
def hardmax(node: OperatorNode, x: torch.Tensor) -> torch.Tensor:
    """1 at the first greatest element along an axis, 0 elsewhere.

    Source: ONNX Hardmax-13.
    """
    return _hardmax(x, node.attributes.get("axis", -1))
