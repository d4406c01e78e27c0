"""Element-wise arithmetic with broadcasting."""

from __future__ import annotations

import functools
from typing import Any

import torch

from deep500.frameworks.pytorch._recording import recorded
from deep500.frameworks.pytorch.lowering import lowerings
from deep500.frameworks.pytorch.lowering._integers import (
    is_signed,
    narrowed,
    ordered,
    remainder,
    truncated_quotient,
    unordered,
    wider,
)
from deep500.frameworks.pytorch.lowering._kinds import input_type, is_integer, lacks_kernels
from deep500.networks.operator_node import OperatorNode

__all__: list[str] = []


@recorded
def _added(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return narrowed(wider(a) + wider(b), a.dtype)


@recorded
def _subtracted(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return narrowed(wider(a) - wider(b), a.dtype)


@recorded
def _divided(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return truncated_quotient(a, b)


@recorded
def _raised(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Raise integers, or floats to integers that have no kernels."""
    if a.dtype.is_floating_point:
        # uint64 has no kernel of its own, and as a float64 it is as good as any float can tell.
        return torch.pow(a, b.to(torch.float64) if b.dtype == torch.uint64 else wider(b)).to(a.dtype)
    if b.dtype.is_floating_point:
        return torch.pow(a.to(torch.float64), b.to(torch.float64)).to(a.dtype)
    exponent = wider(b)
    if b.dtype == torch.uint64:
        # Powers of odd numbers repeat after 2**62 steps, modulo 2**64; those of even ones are 0 from 64 on.
        exponent = torch.where(exponent < 0, (exponent & (2**62 - 1)) | 2**62, exponent)
    return torch.pow(a, exponent).to(a.dtype)


@recorded
def _absolute(x: torch.Tensor) -> torch.Tensor:
    return torch.abs(x) if x.dtype.is_floating_point or is_signed(x.dtype) else x.clone()


@recorded
def _signs(x: torch.Tensor) -> torch.Tensor:
    if x.dtype.is_floating_point:
        return torch.where(torch.isnan(x), x, torch.sign(x))
    return torch.sign(x) if is_signed(x.dtype) else (x != 0).to(x.dtype)


@recorded
def _clipped(x: torch.Tensor, low: torch.Tensor | None, high: torch.Tensor | None) -> torch.Tensor:
    bounds = [None if bound is None else ordered(bound) for bound in (low, high)]
    return unordered(torch.clamp(ordered(x), *bounds), x.dtype)


@recorded
def _greatest(*tensors: torch.Tensor) -> torch.Tensor:
    return unordered(functools.reduce(torch.maximum, map(ordered, tensors)), tensors[0].dtype)


@recorded
def _least(*tensors: torch.Tensor) -> torch.Tensor:
    return unordered(functools.reduce(torch.minimum, map(ordered, tensors)), tensors[0].dtype)


@recorded
def _remainder(a: torch.Tensor, b: torch.Tensor, truncates: bool) -> torch.Tensor:
    return remainder(a, b, truncates=truncates)


@lowerings.register("Add", since=7)
def add(node: OperatorNode, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """``a + b``.

    Source: ONNX Add-14.
    """
    return _added(a, b) if lacks_kernels(node) else torch.add(a, b)


@lowerings.register("Sub", since=7)
def sub(node: OperatorNode, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """``a - b``.

    Source: ONNX Sub-14.
    """
    return _subtracted(a, b) if lacks_kernels(node) else torch.sub(a, b)


@lowerings.register("Mul", since=7)
def mul(node: OperatorNode, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """``a * b``.

    Source: ONNX Mul-14.
    """
    return torch.mul(a, b)


@lowerings.register("Div", since=7)
def div(node: OperatorNode, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """``a / b``; integers are truncated towards zero, and divided by 0 they are 0 as in the reference.

    Source: ONNX Div-14.
    """
    return _divided(a, b) if is_integer(node) else torch.div(a, b)


@lowerings.register("Mod", since=10)
def mod(node: OperatorNode, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """``a - floor(a / b) b``, or with ``fmod`` ``a - trunc(a / b) b``.

    Source: ONNX Mod-28.
    """
    truncates = bool(node.attributes.get("fmod", 0))
    if is_integer(node):
        return _remainder(a, b, truncates)
    if truncates:
        return torch.fmod(a, b)
    rest = torch.remainder(a, b)
    return torch.where(rest == 0, torch.copysign(rest, b), rest)


@lowerings.register("Pow", since=12)
def power(node: OperatorNode, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """``a ** b`` in the dtype of ``a``.

    Source: ONNX Pow-15.
    """
    if is_integer(node) or lacks_kernels(node, 1):
        return _raised(a, b)
    result = torch.pow(a, b)
    return result if input_type(node, 0) == input_type(node, 1) else result.type_as(a)


@lowerings.register("Neg", since=6)
def neg(node: OperatorNode, x: torch.Tensor) -> torch.Tensor:
    """``-x``.

    Source: ONNX Neg-13.
    """
    return torch.neg(x)


@lowerings.register("Abs", since=6)
def absolute(node: OperatorNode, x: torch.Tensor) -> torch.Tensor:
    """``|x|``.

    Source: ONNX Abs-13.
    """
    return _absolute(x) if lacks_kernels(node) else torch.abs(x)


@lowerings.register("Sign", since=9)
def sign(node: OperatorNode, x: torch.Tensor) -> torch.Tensor:
    """-1, 0 or 1, as ``x`` is negative, 0 or positive; what is not a number stays so.

    Source: ONNX Sign-13.
    """
    if is_integer(node) or lacks_kernels(node):
        return _signs(x)
    return torch.where(torch.isnan(x), x, torch.sign(x))


@lowerings.register("Exp", since=6)
def exp(node: OperatorNode, x: torch.Tensor) -> torch.Tensor:
    """``e ** x``.

    Source: ONNX Exp-13.
    """
    return torch.exp(x)


@lowerings.register("Log", since=6)
def log(node: OperatorNode, x: torch.Tensor) -> torch.Tensor:
    """Natural logarithm.

    Source: ONNX Log-13.
    """
    return torch.log(x)


@lowerings.register("Sqrt", since=6)
def sqrt(node: OperatorNode, x: torch.Tensor) -> torch.Tensor:
    """Square root.

    Source: ONNX Sqrt-13.
    """
    return torch.sqrt(x)


@lowerings.register("Reciprocal", since=6)
def reciprocal(node: OperatorNode, x: torch.Tensor) -> torch.Tensor:
    """``1 / x``.

    Source: ONNX Reciprocal-13.
    """
    return torch.reciprocal(x)


@lowerings.register("Erf", since=9)
def erf(node: OperatorNode, x: torch.Tensor) -> torch.Tensor:
    """Error function, ``2 / sqrt(pi)`` times the integral of ``exp(-t**2)`` from 0 to ``x``.

    Source: ONNX Erf-13.
    """
    return torch.erf(x)


@lowerings.register("Ceil", since=6)
def ceil(node: OperatorNode, x: torch.Tensor) -> torch.Tensor:
    """Least integer that is not less.

    Source: ONNX Ceil-13.
    """
    return torch.ceil(x)


@lowerings.register("Floor", since=6)
def floor(node: OperatorNode, x: torch.Tensor) -> torch.Tensor:
    """Greatest integer that is not greater.

    Source: ONNX Floor-13.
    """
    return torch.floor(x)


@lowerings.register("Round", since=11)
def rounded(node: OperatorNode, x: torch.Tensor) -> torch.Tensor:
    """Nearest integer, of two equally near ones the even one.

    Source: ONNX Round-22.
    """
    return torch.round(x)


@lowerings.register("Max", since=8)
def maximum(node: OperatorNode, *tensors: torch.Tensor) -> torch.Tensor:
    """Greatest of the inputs, element by element.

    Source: ONNX Max-13.
    """
    if len(tensors) == 1:
        return torch.clone(tensors[0])
    return _greatest(*tensors) if lacks_kernels(node) else functools.reduce(torch.maximum, tensors)


@lowerings.register("Min", since=8)
def minimum(node: OperatorNode, *tensors: torch.Tensor) -> torch.Tensor:
    """Least of the inputs, element by element.

    Source: ONNX Min-13.
    """
    if len(tensors) == 1:
        return torch.clone(tensors[0])
    return _least(*tensors) if lacks_kernels(node) else functools.reduce(torch.minimum, tensors)


@lowerings.register("Sum", since=8)
def total(node: OperatorNode, *tensors: torch.Tensor) -> torch.Tensor:
    """Sum of the inputs, element by element.

    Source: ONNX Sum-13.
    """
    return torch.clone(tensors[0]) if len(tensors) == 1 else functools.reduce(torch.add, tensors)


@lowerings.register("Mean", since=8)
def mean(node: OperatorNode, *tensors: torch.Tensor) -> torch.Tensor:
    """Mean of the inputs, element by element.

    Source: ONNX Mean-13.
    """
    return total(node, *tensors) / len(tensors)


@lowerings.register("Clip", since=11)
def clip(
    node: OperatorNode, x: torch.Tensor, low: torch.Tensor | None = None, high: torch.Tensor | None = None
) -> torch.Tensor:
    """``x`` kept between two scalars, either of which may be absent; where they cross, the upper one wins.

    Source: ONNX Clip-13.
    """
    if low is None and high is None:
        return torch.clone(x)
    if lacks_kernels(node):
        return _clipped(x, low, high)
    # PyTorch is several times quicker with numbers than with tensors of one element, which broadcast.
    numbers = [_number(node, index, bound) for index, bound in ((1, low), (2, high))]
    if all(number is None or isinstance(number, float) for number in numbers):
        return torch.clamp(x, *numbers)
    return torch.clamp(x, low, high)


def _number(node: OperatorNode, index: int, bound: Any) -> Any:
    """Return a bound as a number where it is stored and exact as such, else as it is."""
    constant = node.constants.get(index)
    if constant is None or constant.size != 1 or constant.dtype.name not in ("float16", "float32", "float64"):
        return bound
    return float(constant.reshape(()))
