"""Derivatives of operators that work element by element, with broadcasting."""

from __future__ import annotations

import math

from deep500.networks.differentiation.builder import Value
from deep500.networks.differentiation.reverse_pass import ReversedNode
from deep500.networks.differentiation.rule_table import reverse_rule, without_gradient

__all__: list[str] = []

Gradients = list[Value | None]

without_gradient("Ceil", "Floor", "Round", "Sign")


def _pair(node: ReversedNode, by_a: Value | None, by_b: Value | None) -> Gradients:
    sums = [None if g is None else node.builder.sum_to(g, node.input(i)) for i, g in enumerate((by_a, by_b))]
    return list(sums)


@reverse_rule("Add", since=7)
def add(node: ReversedNode, g: Value) -> Gradients:
    """``dx = g, dy = g``. Source: ONNX Add-14."""
    return _pair(node, g if node.wants(0) else None, g if node.wants(1) else None)


@reverse_rule("Sub", since=7)
def sub(node: ReversedNode, g: Value) -> Gradients:
    """``dx = g, dy = -g``. Source: ONNX Sub-14."""
    return _pair(node, g if node.wants(0) else None, -g if node.wants(1) else None)


@reverse_rule("Mul", since=7)
def mul(node: ReversedNode, g: Value) -> Gradients:
    """``dx = g y, dy = g x``. Source: ONNX Mul-14."""
    a, b = node.input(0), node.input(1)
    return _pair(node, g * b if node.wants(0) else None, g * a if node.wants(1) else None)


@reverse_rule("Div", since=7)
def div(node: ReversedNode, g: Value) -> Gradients:
    """``dx = g / y, dy = -g z / y`` for the quotient z. Source: ONNX Div-14."""
    b = node.input(1)
    quotient = g / b
    return _pair(
        node, quotient if node.wants(0) else None, -(quotient * node.output()) if node.wants(1) else None
    )  # fmt: skip


@reverse_rule("Mod", since=10)
def mod(node: ReversedNode, g: Value) -> Gradients:
    """``dx = g, dy = -g q`` for the whole quotient q. Source: ONNX Mod-13."""
    a, b = node.input(0), node.input(1)
    if not node.wants(1):
        return _pair(node, g, None)
    whole = node.builder.op("Round", (a - node.output()) / b)
    return _pair(node, g if node.wants(0) else None, -(g * whole))


@reverse_rule("Pow", since=7)
def power(node: ReversedNode, g: Value) -> Gradients:
    """``dx = g y x^(y-1), dy = g x^y ln x``, both 0 where the factor before is. Source: ONNX Pow-15."""
    write, x, exponent = node.builder, node.input(0), node.input(1)
    y = write.cast_like(exponent, x)
    by_x = by_y = None
    if node.wants(0):
        by_x = write.where(y.equals(0), 0, g * y * write.op("Pow", x, y - 1))
    if node.wants(1):
        flat = x.equals(0)
        logarithm = write.op("Log", write.where(flat, 1, x))
        by_y = write.cast_like(write.where(flat, 0, g * node.output() * logarithm), exponent)
    return _pair(node, by_x, by_y)


@reverse_rule("Max", "Min", since=8)
def extreme(node: ReversedNode, g: Value) -> Gradients:
    """The inputs that are the extreme share the gradient evenly. Source: ONNX Max-13, Min-13."""
    write, y = node.builder, node.output()
    inputs = [node.input(i) for i in range(node.count)]
    chosen = [write.cast_like(x.equals(y), g) for x in inputs]
    count = chosen[0] if len(chosen) == 1 else write.op("Sum", *chosen)
    share = g / count
    return [write.sum_to(share * mask, x) if node.wants(i) else None for i, (mask, x) in enumerate(zip(chosen, inputs))]


@reverse_rule("Sum", since=8)
def variadic_sum(node: ReversedNode, g: Value) -> Gradients:
    """``dx_i = g``. Source: ONNX Sum-13."""
    return [node.builder.sum_to(g, node.input(i)) if node.wants(i) else None for i in range(node.count)]


@reverse_rule("Mean", since=8)
def variadic_mean(node: ReversedNode, g: Value) -> Gradients:
    """``dx_i = g / n``. Source: ONNX Mean-13."""
    share = g / float(node.count)
    return [node.builder.sum_to(share, node.input(i)) if node.wants(i) else None for i in range(node.count)]


@reverse_rule("Neg")
def neg(node: ReversedNode, g: Value) -> Value:
    """``dx = -g``. Source: ONNX Neg-13."""
    return -g


@reverse_rule("Abs")
def absolute(node: ReversedNode, g: Value) -> Value:
    """``dx = g sign(x)``. Source: ONNX Abs-13."""
    return g * node.builder.op("Sign", node.input())


@reverse_rule("Reciprocal")
def reciprocal(node: ReversedNode, g: Value) -> Value:
    """``dx = -g y^2``. Source: ONNX Reciprocal-13."""
    return -(g * node.output().square())


@reverse_rule("Sqrt")
def sqrt(node: ReversedNode, g: Value) -> Value:
    """``dx = g / (2 y)``. Source: ONNX Sqrt-13."""
    return g / (node.output() * 2.0)


@reverse_rule("Exp")
def exp(node: ReversedNode, g: Value) -> Value:
    """``dx = g y``. Source: ONNX Exp-13."""
    return g * node.output()


@reverse_rule("Log")
def log(node: ReversedNode, g: Value) -> Value:
    """``dx = g / x``. Source: ONNX Log-13."""
    return g / node.input()


@reverse_rule("Erf")
def erf(node: ReversedNode, g: Value) -> Value:
    """``dx = g 2 / sqrt(pi) exp(-x^2)``. Source: ONNX Erf-13."""
    return g * node.builder.op("Exp", -node.input().square()) * (2 / math.sqrt(math.pi))


@reverse_rule("Where", since=9)
def where(node: ReversedNode, g: Value) -> Gradients:
    """``dx = g`` where the condition holds, ``dy = g`` elsewhere. Source: ONNX Where-16."""
    write, condition = node.builder, node.input(0)
    by_x = write.sum_to(write.where(condition, g, 0), node.input(1)) if node.wants(1) else None
    by_y = write.sum_to(write.where(condition, 0, g), node.input(2)) if node.wants(2) else None
    return [None, by_x, by_y]


@reverse_rule("Clip", since=11)
def clip(node: ReversedNode, g: Value) -> Gradients:
    """``y = min(max(x, low), high)``: the gradient goes to what y is. Source: ONNX Clip-13."""
    write, x = node.builder, node.input(0)
    low, high = node.optional(1), node.optional(2)
    by_low = by_high = None
    raised = x if low is None else write.op("Max", x, low)
    if high is not None:
        above = raised > high
        by_high = write.sum_to(write.where(above, g, 0), high) if node.wants(2) else None
        g = write.where(above, 0, g)
    if low is not None:
        below = x < low
        by_low = write.sum_to(write.where(below, g, 0), low) if node.wants(1) else None
        g = write.where(below, 0, g)
    return [g, by_low, by_high]


@reverse_rule("Cast", "CastLike")
def cast(node: ReversedNode, g: Value) -> Value:
    """``dx = g``, in the element type of x. Source: ONNX Cast-25, CastLike-25."""
    return node.builder.cast_like(g, node.input())
