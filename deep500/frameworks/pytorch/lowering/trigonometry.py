"""Circular and hyperbolic functions and their inverses."""

from __future__ import annotations

import torch

from deep500.frameworks.pytorch.lowering import lowerings
from deep500.networks.operator_node import OperatorNode

__all__: list[str] = []


@lowerings.register("Sin", since=7)
def sin(node: OperatorNode, x: torch.Tensor) -> torch.Tensor:
    """Sine.

    Source: ONNX Sin-22.
    """
    return torch.sin(x)


@lowerings.register("Cos", since=7)
def cos(node: OperatorNode, x: torch.Tensor) -> torch.Tensor:
    """Cosine.

    Source: ONNX Cos-22.
    """
    return torch.cos(x)


@lowerings.register("Tan", since=7)
def tan(node: OperatorNode, x: torch.Tensor) -> torch.Tensor:
    """Tangent.

    Source: ONNX Tan-22.
    """
    return torch.tan(x)


@lowerings.register("Asin", since=7)
def asin(node: OperatorNode, x: torch.Tensor) -> torch.Tensor:
    """Inverse sine, in ``[-pi/2, pi/2]``.

    Source: ONNX Asin-22.
    """
    return torch.asin(x)


@lowerings.register("Acos", since=7)
def acos(node: OperatorNode, x: torch.Tensor) -> torch.Tensor:
    """Inverse cosine, in ``[0, pi]``.

    Source: ONNX Acos-22.
    """
    return torch.acos(x)


@lowerings.register("Atan", since=7)
def atan(node: OperatorNode, x: torch.Tensor) -> torch.Tensor:
    """Inverse tangent, in ``[-pi/2, pi/2]``.

    Source: ONNX Atan-22.
    """
    return torch.atan(x)


@lowerings.register("Sinh", since=9)
def sinh(node: OperatorNode, x: torch.Tensor) -> torch.Tensor:
    """Hyperbolic sine, ``(e**x - e**-x) / 2``.

    Source: ONNX Sinh-22.
    """
    return torch.sinh(x)


@lowerings.register("Cosh", since=9)
def cosh(node: OperatorNode, x: torch.Tensor) -> torch.Tensor:
    """Hyperbolic cosine, ``(e**x + e**-x) / 2``.

    Source: ONNX Cosh-22.
    """
    return torch.cosh(x)


@lowerings.register("Asinh", since=9)
def asinh(node: OperatorNode, x: torch.Tensor) -> torch.Tensor:
    """Inverse hyperbolic sine.

    Source: ONNX Asinh-22.
    """
    return torch.asinh(x)


@lowerings.register("Acosh", since=9)
def acosh(node: OperatorNode, x: torch.Tensor) -> torch.Tensor:
    """Inverse hyperbolic cosine, from 0 on.

    Source: ONNX Acosh-22.
    """
    return torch.acosh(x)


@lowerings.register("Atanh", since=9)
def atanh(node: OperatorNode, x: torch.Tensor) -> torch.Tensor:
    """Inverse hyperbolic tangent.

    Source: ONNX Atanh-22.
    """
    return torch.atanh(x)
