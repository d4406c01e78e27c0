"""Branches and loops, by their inputs and by what their graphs read around them."""

import numpy as np
import onnx
import onnx.helper as oh
from hypothesis import strategies as st

from tests.conformance.onnx_gradients.cases import Draw, GradientCase, strategy
from tests.conformance.onnx_gradients.values import draw_shape, flags, int64, normal, seeds, sizes


def _tensor(name: str, shape: tuple[int, ...], dtype: int = onnx.TensorProto.DOUBLE) -> onnx.ValueInfoProto:
    return oh.make_tensor_value_info(name, dtype, shape)


@strategy("If")
@st.composite
def branch(draw: Draw) -> GradientCase:
    """A product of two tensors, or the sine of one of them."""
    rng, shape = draw(seeds), draw_shape(draw, least=0)
    then = oh.make_graph([oh.make_node("Mul", ["x1", "x2"], ["a"])], "then", [], [_tensor("a", shape)])
    other = oh.make_graph([oh.make_node("Sin", ["x1"], ["b"])], "else", [], [_tensor("b", shape)])
    inputs = [np.array(draw(st.booleans())), normal(rng, shape), normal(rng, shape)]
    attributes = {"then_branch": then, "else_branch": other}
    return GradientCase("If", inputs, attributes, differentiable=(1, 2), captured=(1, 2))


@strategy("Loop")
@st.composite
def loop(draw: Draw) -> GradientCase:
    """A state that is multiplied by a tensor again and again, and the sine of it each time."""
    rng, shape = draw(seeds), draw_shape(draw, least=0, most=2)
    nodes = [
        oh.make_node("Identity", ["goes_on"], ["goes_on_after"]),
        oh.make_node("Mul", ["state", "x3"], ["state_after"]),
        oh.make_node("Sin", ["state"], ["row"]),
    ]
    inputs = [
        _tensor("i", (), onnx.TensorProto.INT64),
        _tensor("goes_on", (), onnx.TensorProto.BOOL),
        _tensor("state", shape),
    ]
    outputs = [
        _tensor("goes_on_after", (), onnx.TensorProto.BOOL),
        _tensor("state_after", shape),
        _tensor("row", shape),
    ]
    body = oh.make_graph(nodes, "body", inputs, outputs)
    given = [int64(draw(sizes)), np.array(True), normal(rng, shape), normal(rng, shape)]
    used = draw(st.sampled_from([(0,), (1,), (0, 1)]))
    return GradientCase(
        "Loop", given, {"body": body}, differentiable=(2, 3), outputs=2, differentiable_outputs=used, captured=(3,)
    )


@strategy("Scan")
@st.composite
def scan(draw: Draw) -> GradientCase:
    """A running product with the entries of a tensor, in either direction, and the sine of each."""
    rng, rows = draw(seeds), draw(sizes)
    shape = draw_shape(draw, most=1)
    axis, output_axis = draw(flags), draw(flags)
    nodes = [
        oh.make_node("Mul", ["state", "entry"], ["product"]),
        oh.make_node("Add", ["product", "x2"], ["state_after"]),
        oh.make_node("Sin", ["state_after"], ["row"]),
    ]
    inputs, outputs = [_tensor("state", shape), _tensor("entry", shape)], ["state_after", "row"]
    body = oh.make_graph(nodes, "body", inputs, [_tensor(name, shape) for name in outputs])
    scanned = (*shape[:axis], rows, *shape[axis:])
    attributes = {
        "body": body,
        "num_scan_inputs": 1,
        "scan_input_axes": [axis],
        "scan_output_axes": [output_axis],
        "scan_input_directions": [draw(flags)],
        "scan_output_directions": [draw(flags)],
    }
    given = [normal(rng, shape), normal(rng, scanned), normal(rng, shape)]
    used = draw(st.sampled_from([(0,), (1,), (0, 1)]))
    return GradientCase(
        "Scan", given, attributes, differentiable=(0, 1, 2), outputs=2, differentiable_outputs=used, captured=(2,)
    )
