"""Sequences and optionals: tensors that go into one and come out of it."""

import onnx.helper as oh
from hypothesis import strategies as st

from tests.conformance.onnx_gradients.cases import Draw, GradientCase, strategy
from tests.conformance.onnx_gradients.values import draw_axis, draw_shape, int64, normal, seeds, sizes


@strategy("SequenceAt")
@st.composite
def sequence_at(draw: Draw) -> GradientCase:
    rng, count = draw(seeds), draw(sizes)
    tensors = [normal(rng, draw_shape(draw, least=2, most=2)) for _ in range(count)]
    names = [f"x{i}" for i in range(count)]
    nodes = (
        oh.make_node("SequenceConstruct", names, ["sequence"], name="construct"),
        oh.make_node("SequenceAt", ["sequence", f"x{count}"], ["y0"], name="at"),
    )
    place = int64(draw(st.integers(-count, count - 1)))
    return GradientCase("SequenceAt", [*tensors, place], differentiable=tuple(range(count)), nodes=nodes)


@strategy("SequenceInsert")
@st.composite
def sequence_insert(draw: Draw) -> GradientCase:
    """Two tensors, one put between them, one taken out, the rest joined."""
    rng, shape = draw(seeds), draw_shape(draw)
    tensors = [normal(rng, shape) for _ in range(3)]
    places = [int64(draw(st.integers(-2, 2))), int64(draw(st.integers(-3, 2)))]
    axis = draw_axis(draw, len(shape))
    nodes = (
        oh.make_node("SequenceConstruct", ["x0", "x1"], ["two"], name="construct"),
        oh.make_node("SequenceInsert", ["two", "x2", "x3"], ["three"], name="insert"),
        oh.make_node("SequenceErase", ["three", "x4"], ["left"], name="erase"),
        oh.make_node("ConcatFromSequence", ["left"], ["y0"], name="concat", axis=axis),
    )
    return GradientCase("SequenceInsert", [*tensors, *places], differentiable=(0, 1, 2), nodes=nodes)


@strategy("ConcatFromSequence")
@st.composite
def concat_from_sequence(draw: Draw) -> GradientCase:
    rng, shape, count = draw(seeds), draw_shape(draw), draw(sizes)
    is_new = draw(st.booleans())
    axis = draw_axis(draw, len(shape) + is_new)
    names = [f"x{i}" for i in range(count)]
    nodes = (
        oh.make_node("SequenceConstruct", names, ["sequence"], name="construct"),
        oh.make_node("ConcatFromSequence", ["sequence"], ["y0"], name="concat", axis=axis, new_axis=int(is_new)),
    )
    tensors = [normal(rng, shape) for _ in range(count)]
    return GradientCase("ConcatFromSequence", tensors, differentiable=tuple(range(count)), nodes=nodes)


@strategy("SplitToSequence")
@st.composite
def split_to_sequence(draw: Draw) -> GradientCase:
    shape = list(draw_shape(draw))
    axis, keeps = draw_axis(draw, len(shape)), draw(st.integers(0, 1))
    kind = draw(st.sampled_from(["ones", "size", "sizes"]))
    inputs = []
    count = shape[axis]
    if kind == "sizes":
        parts = [draw(sizes) for _ in range(draw(sizes))]
        shape[axis], count = sum(parts), len(parts)
        inputs.append(int64(parts))
    elif kind == "size":
        part = draw(st.integers(1, shape[axis]))
        count = -(-shape[axis] // part)
        inputs.append(int64(part))
    x = normal(draw(seeds), tuple(shape))
    names = ["x0", "x1"] if inputs else ["x0"]
    place = f"x{1 + len(inputs)}"
    nodes = (
        oh.make_node("SplitToSequence", names, ["sequence"], name="split", axis=axis, keepdims=keeps),
        oh.make_node("SequenceAt", ["sequence", place], ["y0"], name="at"),
    )
    return GradientCase("SplitToSequence", [x, *inputs, int64(draw(st.integers(0, count - 1)))], nodes=nodes)


@strategy("Optional")
@st.composite
def optional(draw: Draw) -> GradientCase:
    nodes = (
        oh.make_node("Optional", ["x0"], ["optional"], name="wrap"),
        oh.make_node("OptionalGetElement", ["optional"], ["y0"], name="unwrap"),
    )
    return GradientCase("Optional", [normal(draw(seeds), draw_shape(draw, least=0))], nodes=nodes)
