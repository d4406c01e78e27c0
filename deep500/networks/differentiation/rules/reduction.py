"""Derivatives of reductions and of cumulative sums and products."""

from __future__ import annotations

import itertools

import onnx
import onnx.helper

from deep500.networks.differentiation.builder import GraphBuilder, Value
from deep500.networks.differentiation.reverse_pass import ReversedNode
from deep500.networks.differentiation.rule_table import reverse_rule

__all__: list[str] = []


def _axes(node: ReversedNode) -> Value | None:
    """Return the axes, ``None`` for all."""
    given = node.optional(1)
    if given is None and node.get("axes", None) is not None:
        given = node.builder.ints(*node.attributes["axes"])
    if given is not None and given.constant is not None and given.constant.size == 0:
        given = None
    return given


def _is_elementwise(node: ReversedNode) -> bool:
    return bool(node.get("noop_with_empty_axes", 0)) and _axes(node) is None


def _kept_shape(node: ReversedNode) -> Value:
    """Return the shape of the output with the reduced axes kept as ones."""
    write, x, axes = node.builder, node.input(), _axes(node)
    noop = bool(node.get("noop_with_empty_axes", 0))
    shape = write.shape(x)
    ones = write.op("Expand", write.ints(1), write.op("Shape", shape))
    if axes is None:
        return shape if noop else ones
    kept = write.op("ScatterElements", shape, axes, write.op("Expand", write.ints(1), write.op("Shape", axes)))
    if axes.constant is None:
        none = write.op("Size", axes).equals(0)
        kept = write.where(none, shape if noop else ones, kept)
    return kept


def _kept(node: ReversedNode, value: Value) -> Value:
    """Return the output, or its gradient, with the reduced axes kept as ones."""
    if node.get("keepdims", 1) or _is_elementwise(node):
        return value
    return node.builder.reshape(value, _kept_shape(node))


def _again(node: ReversedNode, operator: str, x: Value) -> Value:
    """Reduce something along the same axes, which are kept."""
    write, axes = node.builder, _axes(node)
    if _is_elementwise(node):
        return x
    return write.op(operator, x, axes, keepdims=1, noop_with_empty_axes=node.get("noop_with_empty_axes", 0))


@reverse_rule("ReduceSum")
def reduce_sum(node: ReversedNode, g: Value) -> Value:
    """``dx = g``. Source: ONNX ReduceSum-13."""
    return node.builder.expand_like(_kept(node, g), node.input())


@reverse_rule("ReduceMean")
def reduce_mean(node: ReversedNode, g: Value) -> Value:
    """``dx = g / n``. Source: ONNX ReduceMean-18."""
    write, x = node.builder, node.input()
    sizes = [write.cast_like(write.op("Size", value), g) for value in (node.output(), x)]
    return write.expand_like(_kept(node, g * (sizes[0] / sizes[1])), x)


@reverse_rule("ReduceSumSquare")
def reduce_sum_square(node: ReversedNode, g: Value) -> Value:
    """``dx = 2 x g``. Source: ONNX ReduceSumSquare-18."""
    return _kept(node, g) * node.input() * 2.0


@reverse_rule("ReduceL1")
def reduce_l1(node: ReversedNode, g: Value) -> Value:
    """``dx = sign(x) g``. Source: ONNX ReduceL1-18."""
    return _kept(node, g) * node.builder.op("Sign", node.input())


@reverse_rule("ReduceL2")
def reduce_l2(node: ReversedNode, g: Value) -> Value:
    """``dx = x g / y``, 0 where y is. Source: ONNX ReduceL2-18."""
    write, y = node.builder, _kept(node, node.output())
    return node.input() * _kept(node, g) / write.where(y.equals(0), 1, y)


@reverse_rule("ReduceLogSum")
def reduce_log_sum(node: ReversedNode, g: Value) -> Value:
    """``dx = g / exp(y)``. Source: ONNX ReduceLogSum-18."""
    write = node.builder
    return write.expand_like(_kept(node, g) / _again(node, "ReduceSum", node.input()), node.input())


@reverse_rule("ReduceLogSumExp")
def reduce_log_sum_exp(node: ReversedNode, g: Value) -> Value:
    """``dx = g exp(x - y)``. Source: ONNX ReduceLogSumExp-18."""
    return _kept(node, g) * node.builder.op("Exp", node.input() - _kept(node, node.output()))


@reverse_rule("ReduceProd")
def reduce_prod(node: ReversedNode, g: Value) -> Value:
    """``dx_i = g`` times the product of the others, also where factors are 0. Source: ONNX ReduceProd-18."""
    write, x = node.builder, node.input()
    g = _kept(node, g)
    if _is_elementwise(node):
        return g
    is_zero = x.equals(0)
    zeros = _again(node, "ReduceSum", write.cast_like(is_zero, x))
    safe = write.where(is_zero, 1, x)
    product = _again(node, "ReduceProd", safe)
    at_zero = write.where(zeros.equals(1), product, 0)
    elsewhere = write.where(zeros.equals(0), product / safe, 0)
    return g * write.where(is_zero, at_zero, elsewhere)


@reverse_rule("ReduceMax", "ReduceMin")
def reduce_extreme(node: ReversedNode, g: Value) -> Value:
    """The elements that are the extreme share the gradient evenly. Source: ONNX ReduceMax-20, ReduceMin-20."""
    write, x = node.builder, node.input()
    chosen = write.cast_like(x.equals(_kept(node, node.output())), g)
    return chosen * (_kept(node, g) / _again(node, "ReduceSum", chosen))


@reverse_rule("CumSum")
def cum_sum(node: ReversedNode, g: Value) -> Value:
    """The sum from the other end. Source: ONNX CumSum-14."""
    exclusive, reverse = node.get("exclusive", 0), node.get("reverse", 0)
    return node.builder.op("CumSum", g, node.input(1), exclusive=exclusive, reverse=1 - reverse)


@reverse_rule("CumProd")
def cum_prod(node: ReversedNode, g: Value) -> Value:
    """``dx_i = P_i R_i``: the product before i, and ``R_i = g_i + x_{i+1} R_{i+1}``. Source: ONNX CumProd-26."""
    write, x = node.builder, node.input()
    exclusive, reverse = node.get("exclusive", 0), node.get("reverse", 0)
    before = write.op("CumProd", x, node.input(1), exclusive=1, reverse=reverse)
    # As [before, n, after], whichever axis it is.
    shape = write.op("Shape", x)
    axis = write.reshape(write.op("Cast", node.input(1), to=onnx.TensorProto.INT64), write.ints(1))
    rank = write.op("Shape", shape)
    axis = write.where(axis < 0, axis + rank, axis)
    parts = [write.ints(0), axis, axis + 1, rank]
    sizes = [
        write.op("ReduceProd", write.op("Slice", shape, a, b), keepdims=1) for a, b in itertools.pairwise(parts)
    ]  # fmt: skip
    cube = write.sizes(*sizes)
    entries = [write.reshape(value, cube) for value in (x, g)]
    start = write.zeros(write.sizes(sizes[0], sizes[2]), x)
    body = _recurrence(write.child(), x.element_type, bool(exclusive))
    _, factors = write.ops(
        "Scan",
        start,
        *entries,
        count=2,
        body=body,
        num_scan_inputs=2,
        scan_input_axes=[1, 1],
        scan_output_axes=[1],
        scan_input_directions=[1 - reverse] * 2,
        scan_output_directions=[1 - reverse],
    )
    return before * write.same_type(write.reshape(factors, shape), x)


def _recurrence(write: GraphBuilder, kind: int, exclusive: bool) -> onnx.GraphProto:
    carried, x, g = (write.input(name, element_type=kind, shape=[None, None]) for name in ("carried", "x", "g"))
    if exclusive:
        after, out = g + x * carried, write.op("Identity", carried)
    else:
        out = g + carried
        after = x * out
    make = onnx.helper.make_tensor_value_info
    given = [make(value.name, kind, [None, None]) for value in (carried, x, g)]
    made = [make(value.name, kind, [None, None]) for value in (after, out)]
    return onnx.helper.make_graph(write.nodes, "recurrence", given, made)
