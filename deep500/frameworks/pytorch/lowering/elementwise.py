"""Element-wise arithmetic with broadcasting."""

from __future__ import annotations

import torch

from deep500.frameworks.pytorch.lowering import lowerings
from deep500.networks.operator_node import OperatorNode

__all__: list[str] = []


def _is_integer(node: OperatorNode) -> bool:
    descriptor = node.input_types[0]
    return descriptor is not None and descriptor.numpy_dtype.kind in "iu"


@lowerings.register("Add", since=7)
def add(node: OperatorNode, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """``a + b``."""
    return torch.add(a, b)


@lowerings.register("Sub", since=7)
def sub(node: OperatorNode, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """``a - b``."""
    return torch.sub(a, b)


@lowerings.register("Mul", since=7)
def mul(node: OperatorNode, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """``a * b``."""
    return torch.mul(a, b)


@lowerings.register("Div", since=7)
def div(node: OperatorNode, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """``a / b``; integers are truncated towards zero."""
    if not _is_integer(node):
        return torch.div(a, b)
    # The processor traps on dividing the least integer by -1, so that division is a negation (which wraps around), and
    # on dividing by 0, which gives 0 here as in the reference.
    safe = torch.where((b == -1) | (b == 0), 1, b).type_as(b)
    quotient = torch.where(b == -1, torch.neg(a), torch.div(a, safe, rounding_mode="trunc"))
    return torch.where(b == 0, 0, quotient).type_as(a)


@lowerings.register("Pow", since=12)
def power(node: OperatorNode, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """``a ** b`` in the dtype of ``a``."""
    base = node.input_types[0]
    result = torch.pow(a, b)
    return result if base is None or base == node.input_types[1] else result.type_as(a)


@lowerings.register("Neg", since=6)
def neg(node: OperatorNode, x: torch.Tensor) -> torch.Tensor:
    """``-x``."""
    return torch.neg(x)


@lowerings.register("Abs", since=6)
def absolute(node: OperatorNode, x: torch.Tensor) -> torch.Tensor:
    """``|x|``."""
    return torch.abs(x)


@lowerings.register("Exp", since=6)
def exp(node: OperatorNode, x: torch.Tensor) -> torch.Tensor:
    """``e ** x``."""
    return torch.exp(x)


@lowerings.register("Log", since=6)
def log(node: OperatorNode, x: torch.Tensor) -> torch.Tensor:
    """Natural logarithm."""
    return torch.log(x)


@lowerings.register("Sqrt", since=6)
def sqrt(node: OperatorNode, x: torch.Tensor) -> torch.Tensor:
    """Square root."""
    return torch.sqrt(x)


@lowerings.register("Clip", since=11)
def clip(
    node: OperatorNode, x: torch.Tensor, low: torch.Tensor | None = None, high: torch.Tensor | None = None
) -> torch.Tensor:
    """``x`` kept between two scalars, either of which may be absent; where they cross, the upper one wins."""
    if low is None and high is None:
        return torch.clone(x)
    return torch.clamp(x, low, high)
