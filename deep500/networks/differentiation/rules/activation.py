"""Derivatives of activation functions."""

from __future__ import annotations

import math

from deep500.networks.differentiation.builder import Value
from deep500.networks.differentiation.reverse_pass import ReversedNode
from deep500.networks.differentiation.rule_table import reverse_rule, without_gradient

__all__: list[str] = []

without_gradient("Hardmax")


@reverse_rule("Relu")
def relu(node: ReversedNode, g: Value) -> Value:
    """``dx = g`` where x > 0. Source: ONNX Relu-14."""
    return node.builder.where(node.output() > 0, g, 0)


@reverse_rule("LeakyRelu")
def leaky_relu(node: ReversedNode, g: Value) -> Value:
    """``dx = g`` where x >= 0, else ``alpha g``. Source: ONNX LeakyRelu-16."""
    return node.builder.where(node.input() >= 0, g, g * node.get("alpha", 0.01))


@reverse_rule("PRelu")
def prelu(node: ReversedNode, g: Value) -> list[Value | None]:
    """``dx = g`` where x >= 0, else ``slope g``; ``dslope = x g`` where x < 0. Source: ONNX PRelu-16."""
    write, x, slope = node.builder, node.input(0), node.input(1)
    below = x < 0
    by_slope = write.sum_to(write.where(below, g * x, 0), slope) if node.wants(1) else None
    return [write.where(below, g * slope, g), by_slope]


@reverse_rule("Elu")
def elu(node: ReversedNode, g: Value) -> Value:
    """``dx = g`` where x > 0, else ``g alpha exp x``. Source: ONNX Elu-22."""
    x = node.input()
    return node.builder.where(x > 0, g, g * node.builder.op("Exp", x) * node.get("alpha", 1.0))


@reverse_rule("Celu")
def celu(node: ReversedNode, g: Value) -> Value:
    """``dx = g`` where x > 0, else ``g exp(x / alpha)``. Source: ONNX Celu-12."""
    x = node.input()
    return node.builder.where(x > 0, g, g * node.builder.op("Exp", x / node.get("alpha", 1.0)))


@reverse_rule("Selu")
def selu(node: ReversedNode, g: Value) -> Value:
    """``dx = gamma g`` where x > 0, else ``gamma alpha exp(x) g``. Source: ONNX Selu-22."""
    alpha, gamma = node.get("alpha", 1.67326319217681884765625), node.get("gamma", 1.05070102214813232421875)
    x, scaled = node.input(), g * gamma
    return node.builder.where(x > 0, scaled, scaled * node.builder.op("Exp", x) * alpha)


@reverse_rule("Sigmoid")
def sigmoid(node: ReversedNode, g: Value) -> Value:
    """``dx = g y (1 - y)``. Source: ONNX Sigmoid-13."""
    y = node.output()
    return g * y * (1.0 - y)


@reverse_rule("HardSigmoid")
def hard_sigmoid(node: ReversedNode, g: Value) -> Value:
    """``dx = alpha g`` where 0 < y < 1. Source: ONNX HardSigmoid-22."""
    y = node.output()
    inside = node.builder.op("And", y > 0, y < 1)
    return node.builder.where(inside, g * node.get("alpha", 0.2), 0)


@reverse_rule("HardSwish", since=14)
def hard_swish(node: ReversedNode, g: Value) -> Value:
    """``dx = g (x / 3 + 1 / 2)`` between -3 and 3, g above, 0 below. Source: ONNX HardSwish-22."""
    write, x = node.builder, node.input()
    inner = write.where(x < 3, g * (x / 3 + 0.5), g)
    return write.where(x > -3, inner, 0)


@reverse_rule("Softplus")
def softplus(node: ReversedNode, g: Value) -> Value:
    """``dx = g sigmoid x``. Source: ONNX Softplus-22."""
    return g * node.builder.op("Sigmoid", node.input())


@reverse_rule("Softsign")
def softsign(node: ReversedNode, g: Value) -> Value:
    """``dx = g / (1 + |x|)^2``. Source: ONNX Softsign-22."""
    return g / (node.builder.op("Abs", node.input()) + 1.0).square()


@reverse_rule("ThresholdedRelu")
def thresholded_relu(node: ReversedNode, g: Value) -> Value:
    """``dx = g`` where x > alpha. Source: ONNX ThresholdedRelu-22."""
    return node.builder.where(node.input() > node.get("alpha", 1.0), g, 0)


@reverse_rule("Shrink")
def shrink(node: ReversedNode, g: Value) -> Value:
    """``dx = g`` where ``abs(x) > lambd``. Source: ONNX Shrink-9."""
    x, limit = node.input(), node.get("lambd", 0.5)
    outside = node.builder.op("Or", x < -limit, x > limit)
    return node.builder.where(outside, g, 0)


@reverse_rule("Gelu", since=20)
def gelu(node: ReversedNode, g: Value) -> Value:
    """``dx = g (P(x) + x P'(x))`` for ``y = x P(x)``. Source: ONNX Gelu-20."""
    write, x = node.builder, node.input()
    if node.get("approximate", "none") == "tanh":
        factor = math.sqrt(2 / math.pi)
        tanh = write.op("Tanh", (x + x * x * x * 0.044715) * factor)
        slope = (x.square() * (3 * 0.044715) + 1.0) * factor
        return g * ((tanh + 1.0) * 0.5 + x * (1.0 - tanh.square()) * slope * 0.5)
    below = (write.op("Erf", x * math.sqrt(0.5)) + 1.0) * 0.5
    density = write.op("Exp", x.square() * -0.5) * (1 / math.sqrt(2 * math.pi))
    return g * (below + x * density)


@reverse_rule("Softmax", since=13)
def softmax(node: ReversedNode, g: Value) -> Value:
    """``dx = y (g - sum(g y))``. Source: ONNX Softmax-13."""
    y = node.output()
    return y * (g - node.builder.total(g * y, [node.get("axis", -1)]))


@reverse_rule("LogSoftmax", since=13)
def log_softmax(node: ReversedNode, g: Value) -> Value:
    """``dx = g - exp(y) sum(g)``. Source: ONNX LogSoftmax-13."""
    write = node.builder
    return g - write.op("Exp", node.output()) * write.total(g, [node.get("axis", -1)])
