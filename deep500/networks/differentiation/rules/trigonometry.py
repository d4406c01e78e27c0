"""Derivatives of trigonometric and hyperbolic functions."""

from __future__ import annotations

from deep500.networks.differentiation.builder import Value
from deep500.networks.differentiation.reverse_pass import ReversedNode
from deep500.networks.differentiation.rule_table import reverse_rule

__all__: list[str] = []


@reverse_rule("Sin")
def sin(node: ReversedNode, g: Value) -> Value:
    """``dx = g cos x``. Source: ONNX Sin-22."""
    return g * node.builder.op("Cos", node.input())


@reverse_rule("Cos")
def cos(node: ReversedNode, g: Value) -> Value:
    """``dx = -g sin x``. Source: ONNX Cos-22."""
    return -(g * node.builder.op("Sin", node.input()))


@reverse_rule("Tan")
def tan(node: ReversedNode, g: Value) -> Value:
    """``dx = g (1 + y^2)``. Source: ONNX Tan-22."""
    return g * (node.output().square() + 1.0)


@reverse_rule("Asin")
def asin(node: ReversedNode, g: Value) -> Value:
    """``dx = g / sqrt(1 - x^2)``. Source: ONNX Asin-22."""
    return g / node.builder.op("Sqrt", 1.0 - node.input().square())


@reverse_rule("Acos")
def acos(node: ReversedNode, g: Value) -> Value:
    """``dx = -g / sqrt(1 - x^2)``. Source: ONNX Acos-22."""
    return -(g / node.builder.op("Sqrt", 1.0 - node.input().square()))


@reverse_rule("Atan")
def atan(node: ReversedNode, g: Value) -> Value:
    """``dx = g / (1 + x^2)``. Source: ONNX Atan-22."""
    return g / (node.input().square() + 1.0)


@reverse_rule("Sinh")
def sinh(node: ReversedNode, g: Value) -> Value:
    """``dx = g cosh x``. Source: ONNX Sinh-22."""
    return g * node.builder.op("Cosh", node.input())


@reverse_rule("Cosh")
def cosh(node: ReversedNode, g: Value) -> Value:
    """``dx = g sinh x``. Source: ONNX Cosh-22."""
    return g * node.builder.op("Sinh", node.input())


@reverse_rule("Tanh")
def tanh(node: ReversedNode, g: Value) -> Value:
    """``dx = g (1 - y^2)``. Source: ONNX Tanh-13."""
    return g * (1.0 - node.output().square())


@reverse_rule("Asinh")
def asinh(node: ReversedNode, g: Value) -> Value:
    """``dx = g / sqrt(x^2 + 1)``. Source: ONNX Asinh-22."""
    return g / node.builder.op("Sqrt", node.input().square() + 1.0)


@reverse_rule("Acosh")
def acosh(node: ReversedNode, g: Value) -> Value:
    """``dx = g / sqrt(x^2 - 1)``. Source: ONNX Acosh-22."""
    return g / node.builder.op("Sqrt", node.input().square() - 1.0)


@reverse_rule("Atanh")
def atanh(node: ReversedNode, g: Value) -> Value:
    """``dx = g / (1 - x^2)``. Source: ONNX Atanh-22."""
    return g / (1.0 - node.input().square())
