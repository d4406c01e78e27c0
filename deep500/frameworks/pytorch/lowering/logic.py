"""Comparisons, logical operators, bits and choice."""

from __future__ import annotations

from typing import Any

import torch

from deep500.frameworks.pytorch._recording import recorded
from deep500.frameworks.pytorch.lowering import lowerings
from deep500.frameworks.pytorch.lowering._host import run_on_host
from deep500.frameworks.pytorch.lowering._integers import is_signed, narrowed, ordered, wider
from deep500.frameworks.pytorch.lowering._kinds import input_type, is_text, lacks_kernels
from deep500.networks.operator_node import OperatorNode

__all__: list[str] = []


@recorded
def _is_greater(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return torch.gt(ordered(a), ordered(b))


@recorded
def _is_not_less(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return torch.ge(ordered(a), ordered(b))


@lowerings.register("Equal", since=11)
def equal(node: OperatorNode, a: Any, b: Any) -> Any:
    """``a == b``. Runs on the host where the inputs are texts.

    Source: ONNX Equal-19.
    """
    return run_on_host(node, a, b) if is_text(node) else torch.eq(a, b)


@lowerings.register("Greater", since=9)
def greater(node: OperatorNode, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """``a > b``.

    Source: ONNX Greater-13.
    """
    return _is_greater(a, b) if lacks_kernels(node) else torch.gt(a, b)


@lowerings.register("GreaterOrEqual", since=12)
def greater_or_equal(node: OperatorNode, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """``a >= b``.

    Source: ONNX GreaterOrEqual-16.
    """
    return _is_not_less(a, b) if lacks_kernels(node) else torch.ge(a, b)


@lowerings.register("Less", since=9)
def less(node: OperatorNode, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """``a < b``.

    Source: ONNX Less-13.
    """
    return _is_greater(b, a) if lacks_kernels(node) else torch.lt(a, b)


@lowerings.register("LessOrEqual", since=12)
def less_or_equal(node: OperatorNode, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """``a <= b``.

    Source: ONNX LessOrEqual-16.
    """
    return _is_not_less(b, a) if lacks_kernels(node) else torch.le(a, b)


@lowerings.register("And", since=7)
def logical_and(node: OperatorNode, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Whether both are true.

    Source: ONNX And-7.
    """
    return torch.logical_and(a, b)


@lowerings.register("Or", since=7)
def logical_or(node: OperatorNode, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Whether one of them is true.

    Source: ONNX Or-7.
    """
    return torch.logical_or(a, b)


@lowerings.register("Xor", since=7)
def logical_xor(node: OperatorNode, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Whether exactly one of them is true.

    Source: ONNX Xor-7.
    """
    return torch.logical_xor(a, b)


@lowerings.register("Not", since=1)
def logical_not(node: OperatorNode, x: torch.Tensor) -> torch.Tensor:
    """Whether it is false.

    Source: ONNX Not-1.
    """
    return torch.logical_not(x)


@recorded
def _shifted(x: torch.Tensor, by: torch.Tensor, left: bool) -> torch.Tensor:
    bits = 8 * x.element_size()
    # As int64, distances of uint64 from 2**63 on are negative, and too far like all that are not within the bits.
    value, distance = wider(x).to(torch.int64), wider(by).to(torch.int64)
    too_far = (distance < 0) | (distance >= bits)
    near = distance.masked_fill(too_far, 0)
    if left:
        shifted = torch.where(too_far, 0, value << near)
    elif is_signed(x.dtype):
        shifted = value >> torch.where(too_far, bits - 1, near)
    else:
        # The first step by itself: it puts 0 where an int64 would repeat the sign, which for uint64 is a bit like all.
        after_first = (value >> 1) & (2**63 - 1)
        shifted = torch.where(near == 0, value, after_first >> (near - 1).clamp(min=0))
        shifted = torch.where(too_far, 0, shifted)
    return narrowed(shifted, x.dtype)


@lowerings.register("BitShift", since=11)
def bit_shift(node: OperatorNode, x: torch.Tensor, by: torch.Tensor) -> torch.Tensor:
    """Bits moved to the left, or to the right, where the sign is repeated; beyond all bits, nothing else is left.

    Source: ONNX BitShift-28.
    """
    return _shifted(x, by, node.attributes["direction"] == "LEFT")


@lowerings.register("BitwiseAnd", since=18)
def bitwise_and(node: OperatorNode, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Bits that both have.

    Source: ONNX BitwiseAnd-18.
    """
    return torch.bitwise_and(a, b)


@lowerings.register("BitwiseOr", since=18)
def bitwise_or(node: OperatorNode, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Bits that one of them has.

    Source: ONNX BitwiseOr-18.
    """
    return torch.bitwise_or(a, b)


@lowerings.register("BitwiseXor", since=18)
def bitwise_xor(node: OperatorNode, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Bits that exactly one of them has.

    Source: ONNX BitwiseXor-18.
    """
    return torch.bitwise_xor(a, b)


@recorded
def _inverted(x: torch.Tensor) -> torch.Tensor:
    return narrowed(torch.bitwise_not(wider(x)), x.dtype)


@lowerings.register("BitwiseNot", since=18)
def bitwise_not(node: OperatorNode, x: torch.Tensor) -> torch.Tensor:
    """Bits that it does not have.

    Source: ONNX BitwiseNot-18.
    """
    return _inverted(x) if lacks_kernels(node) else torch.bitwise_not(x)


@lowerings.register("Where", since=9)
def where(node: OperatorNode, condition: torch.Tensor, x: Any, y: Any) -> Any:
    """``x`` where the condition holds, ``y`` elsewhere. Runs on the host where they are texts.

    Source: ONNX Where-16.
    """
    return run_on_host(node, condition, x, y) if is_text(node, 1) else torch.where(condition, x, y)


def _plain(node: OperatorNode, x: torch.Tensor) -> torch.Tensor:
    """Return floats of 8 bits as floats that have kernels."""
    name = input_type(node)
    return x.to(torch.float32) if name is not None and name.startswith("float8") else x


@lowerings.register("IsNaN", since=9)
def is_nan(node: OperatorNode, x: torch.Tensor) -> torch.Tensor:
    """Whether it is not a number.

    Source: ONNX IsNaN-20.
    """
    return torch.isnan(_plain(node, x))


@lowerings.register("IsInf", since=10)
def is_inf(node: OperatorNode, x: torch.Tensor) -> torch.Tensor:
    """Whether it is infinite, of the signs that are to be detected.

    Source: ONNX IsInf-20.
    """
    x = _plain(node, x)
    positive, negative = node.attributes.get("detect_positive", 1), node.attributes.get("detect_negative", 1)
    if positive and negative:
        return torch.isinf(x)
    if positive or negative:
        return torch.isposinf(x) if positive else torch.isneginf(x)
    return torch.zeros_like(x, dtype=torch.bool)
