"""Sample cases for every operator of the library: strategies that draw attributes and float64 inputs.

A new operator file needs an entry in ``CASES``; ``test_operator_library.py`` says so where one is missing. Values are
drawn away from points where a derivative does not exist (0 of Relu, ties of MaxPool).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from hypothesis import strategies as st

from tests.conformance.pooling_oracle import average_pool, global_max_pool, max_pool

Array = np.ndarray
Draw = Callable[[st.SearchStrategy[Any]], Any]


@dataclass
class Case:
    """One call of an operator."""

    attributes: dict[str, Any]
    inputs: list[Array | None]
    # Inputs and outputs through which gradients do not flow by agreement.
    skip_inputs: tuple[int, ...] = ()
    skip_outputs: tuple[int, ...] = ()
    outputs: int = 1
    # Used in place of onnx.reference where that is known to be wrong.
    oracle: Callable[..., tuple[Array, ...]] | None = None
    dtypes: tuple[Any, ...] = field(default=(np.float32, np.float64))


seeds = st.integers(0, 2**16).map(np.random.default_rng)
sizes = st.integers(1, 3)
shapes = st.lists(st.integers(0, 3), max_size=3).map(tuple)
flags = st.integers(0, 1)


def spread(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """Return values in [-2, 2] that differ from one another and from 0 by much more than a difference step."""
    count = int(np.prod(shape))
    grid = (np.arange(count) + 0.5) / max(count, 1) * 4 - 2 + 0.013
    return rng.permutation(grid).reshape(shape)


def positive(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    return rng.uniform(0.3, 2.0, shape)


def unary(values: Callable[..., Array] = spread, **attributes: st.SearchStrategy[Any]) -> st.SearchStrategy[Case]:
    @st.composite
    def draw_case(draw: Draw) -> Case:
        return Case({k: draw(v) for k, v in attributes.items()}, [values(draw(seeds), draw(shapes))])

    return draw_case()


def binary(
    values: Callable[..., Array] = spread, second: Callable[..., Array] | None = None
) -> st.SearchStrategy[Case]:
    @st.composite
    def draw_case(draw: Draw) -> Case:
        shape = draw(shapes)
        a, b = ([1 if draw(st.booleans()) else size for size in shape] for _ in range(2))
        if draw(st.booleans()):
            b = b[draw(st.integers(0, len(b))) :]
        rng = draw(seeds)
        return Case({}, [values(rng, tuple(a)), (second or values)(rng, tuple(b))])

    return draw_case()


def draw_windows(draw: Draw, *, ceil: bool) -> tuple[dict[str, Any], tuple[int, ...]]:
    """Draw attributes of sliding windows, and a spatial shape into which one fits."""
    rank = draw(st.integers(1, 3))
    top = 3 if rank < 3 else 2
    each = lambda low, high: [draw(st.integers(low, high)) for _ in range(rank)]  # noqa: E731
    kernel, strides, dilations = each(1, top), each(1, 3), each(1, 2)
    attributes = {"kernel_shape": kernel, "strides": strides, "dilations": dilations}
    attributes["auto_pad"] = draw(st.sampled_from(["NOTSET", "NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"]))
    if attributes["auto_pad"] == "NOTSET":
        attributes["pads"] = each(0, 2) + each(0, 2)
    if ceil:
        attributes["ceil_mode"] = draw(flags)
    for name in ("strides", "dilations", "pads"):
        if draw(st.integers(0, 5)) == 0:
            attributes.pop(name, None)
    dilated = attributes.get("dilations", [1] * rank)
    return attributes, tuple(
        (k - 1) * d + 1 + draw(st.integers(0, 5 - rank)) for k, d in zip(kernel, dilated, strict=True)
    )


@st.composite
def conv(draw: Draw) -> Case:
    attributes, spatial = draw_windows(draw, ceil=False)
    attributes["group"] = group = draw(st.integers(1, 2))
    kernel = attributes["kernel_shape"] if draw(st.booleans()) else attributes.pop("kernel_shape")
    channels, maps = group * draw(st.integers(1, 2)), group * draw(st.integers(1, 2))
    rng = draw(seeds)
    x, w = (
        rng.standard_normal(s)
        for s in ((draw(st.integers(1, 2)), channels, *spatial), (maps, channels // group, *kernel))
    )
    bias = [rng.standard_normal(maps)] if draw(st.booleans()) else []
    return Case(attributes, [x, w, *bias])


@st.composite
def max_pooling(draw: Draw) -> Case:
    attributes, spatial = draw_windows(draw, ceil=True)
    attributes["storage_order"] = draw(flags)
    x = spread(draw(seeds), (draw(sizes), draw(st.integers(1, 2)), *spatial))
    # onnx.reference is wrong for many attributes: pads of equal strides are read in another order, ceil_mode and
    # SAME_LOWER give another size than the specification's formula, Indices ignore padding.
    return Case(attributes, [x], outputs=2, oracle=max_pool)


@st.composite
def average_pooling(draw: Draw) -> Case:
    attributes, spatial = draw_windows(draw, ceil=True)
    attributes["count_include_pad"] = draw(flags)
    x = draw(seeds).standard_normal((draw(sizes), draw(st.integers(1, 2)), *spatial))
    # onnx.reference pads on both sides what ceil_mode adds at the end, ignores dilations under auto_pad, and fails on
    # windows without an element.
    right = attributes["auto_pad"] == "NOTSET" and not attributes["ceil_mode"] and "pads" not in attributes
    return Case(attributes, [x], oracle=None if right else average_pool)


@st.composite
def global_pooling(draw: Draw, values: Callable[..., Array], oracle: Any) -> Case:
    # onnx.reference fails on empty batches.
    shape = (draw(sizes), draw(sizes), *draw(st.lists(sizes, min_size=1, max_size=3)))
    return Case({}, [values(draw(seeds), shape)], oracle=oracle)


@st.composite
def batch_normalization(draw: Draw) -> Case:
    attributes = {
        "epsilon": draw(st.sampled_from([1e-5, 0.1])),
        "momentum": draw(st.sampled_from([0.9, 0.25, 1.0, 0.0])),
        "training_mode": draw(flags),
    }
    channels = draw(sizes)
    shape = (draw(st.integers(2, 4)), channels, *draw(st.lists(sizes, max_size=3)))
    rng = draw(seeds)
    vectors = [rng.uniform(0.5, 2.0, channels) for _ in range(4)]
    outputs = 3 if attributes["training_mode"] else 1
    return Case(attributes, [spread(rng, shape), *vectors], skip_inputs=(3, 4), outputs=outputs)


@st.composite
def gemm(draw: Draw) -> Case:
    attributes = {name: draw(flags) for name in ("transA", "transB")}
    attributes |= {name: draw(st.sampled_from([1.0, 0.0, -0.5])) for name in ("alpha", "beta")}
    m, k, n = (draw(st.integers(0, 3)) for _ in range(3))
    rng = draw(seeds)
    a = rng.standard_normal((k, m) if attributes["transA"] else (m, k))
    b = rng.standard_normal((n, k) if attributes["transB"] else (k, n))
    c = draw(st.sampled_from([None, (), (1,), (n,), (1, n), (m, 1), (m, n)]))
    return Case(attributes, [a, b, *([] if c is None else [rng.standard_normal(c)])])


@st.composite
def mat_mul(draw: Draw) -> Case:
    m, k, n = (draw(st.integers(0, 3)) for _ in range(3))
    lead = draw(st.lists(st.integers(1, 3), max_size=2))
    a = draw(st.sampled_from([(k,), (m, k), (*lead, m, k), (*[1] * len(lead), m, k)]))
    b = draw(st.sampled_from([(k,), (k, n), (*lead, k, n), (*lead[1:], k, n)]))
    rng = draw(seeds)
    return Case({}, [rng.standard_normal(a), rng.standard_normal(b)])


@st.composite
def along_axis(draw: Draw) -> Case:
    shape = draw(shapes.filter(lambda shape: len(shape) > 0))
    axis = draw(st.integers(-len(shape), len(shape) - 1))
    return Case({"axis": axis}, [draw(seeds).normal(scale=3.0, size=shape)])


@st.composite
def reduction(draw: Draw) -> Case:
    shape = draw(st.lists(sizes, max_size=3).map(tuple))
    attributes = {"keepdims": draw(flags), "noop_with_empty_axes": draw(flags)}
    inputs = [draw(seeds).standard_normal(shape)]
    choice = draw(st.none() | st.sets(st.sampled_from(range(len(shape)))) if shape else st.none())
    if choice is not None:
        axes = [axis - len(shape) if draw(st.booleans()) else axis for axis in choice]
        inputs.append(np.array(draw(st.permutations(axes)), np.int64))
    return Case(attributes, inputs)


@st.composite
def flatten(draw: Draw) -> Case:
    shape = draw(shapes)
    x = draw(seeds).standard_normal(shape)
    axis = draw(st.integers(-len(shape), len(shape)))
    # onnx.reference cannot infer the inner size of an empty tensor, and takes -r for the default axis where r is 0.
    at = axis % len(shape) if axis < 0 else axis
    return Case(
        {"axis": axis}, [x], oracle=lambda _, x: (x.reshape(int(np.prod(shape[:at])), int(np.prod(shape[at:]))),)
    )


@st.composite
def reshape(draw: Draw) -> Case:
    shape = draw(st.lists(sizes, min_size=1, max_size=3))
    wanted = list(draw(st.permutations(shape))) if draw(st.booleans()) else [int(np.prod(shape)), 1]
    wanted = [
        0 if i < len(shape) and shape[i] == size and draw(st.booleans()) else size for i, size in enumerate(wanted)
    ]
    if draw(st.booleans()):
        wanted[draw(st.integers(0, len(wanted) - 1))] = -1
    return Case({}, [draw(seeds).standard_normal(shape), np.array(wanted, np.int64)])


@st.composite
def transpose(draw: Draw) -> Case:
    shape = draw(shapes)
    perm = draw(st.none() | st.permutations(range(len(shape)))) if shape else None
    return Case({} if perm is None else {"perm": list(perm)}, [draw(seeds).standard_normal(shape)])


@st.composite
def concat(draw: Draw) -> Case:
    shape = list(draw(shapes.filter(lambda shape: len(shape) > 0)))
    axis = draw(st.integers(-len(shape), len(shape) - 1))
    rng = draw(seeds)
    inputs = []
    for _ in range(draw(sizes)):
        shape[axis] = draw(st.integers(0, 3))
        inputs.append(rng.standard_normal(shape))
    return Case({"axis": axis}, inputs)


@st.composite
def squeeze(draw: Draw) -> Case:
    shape = draw(st.lists(st.sampled_from([1, 1, 2, 0]), max_size=4))
    ones = [i - len(shape) if draw(st.booleans()) else i for i, size in enumerate(shape) if size == 1]
    x = draw(seeds).standard_normal(shape)
    axes = draw(st.none() | st.lists(st.sampled_from(ones), unique=True)) if ones else None
    return Case({}, [x] if axes is None else [x, np.array(axes, np.int64)])


@st.composite
def unsqueeze(draw: Draw) -> Case:
    shape = draw(shapes)
    rank = len(shape) + draw(st.integers(0, 2))
    places = draw(st.permutations(range(rank)))[: rank - len(shape)]
    axes = [axis - rank if draw(st.booleans()) else axis for axis in places]
    return Case({}, [draw(seeds).standard_normal(shape), np.array(axes, np.int64)])


@st.composite
def cast(draw: Draw) -> Case:
    # A conversion to a narrower float has no derivative that differences could show.
    to = draw(st.sampled_from([onnx.TensorProto.DOUBLE, onnx.TensorProto.INT32, onnx.TensorProto.BOOL]))
    return Case({"to": int(to)}, [spread(draw(seeds), draw(shapes))])


@st.composite
def constant(draw: Draw) -> Case:
    tensor = draw(seeds).standard_normal(draw(shapes))
    name, value = draw(
        st.sampled_from(
            [
                ("value", tensor),
                ("value_float", 1.5),
                ("value_floats", [1.0, 2.0]),
                ("value_int", 3),
                ("value_ints", [4, 5]),
            ]
        )
    )
    return Case({name: value}, [])


@st.composite
def clip(draw: Draw) -> Case:
    x = spread(draw(seeds), draw(shapes))
    low, high = draw(st.sampled_from([(None, None), (-1.003, None), (None, 0.51), (-0.777, 0.9), (1.1, -1.1)]))
    limits = [None if v is None else np.array(v) for v in (low, high)]
    while limits and limits[-1] is None:
        limits.pop()
    # onnx.reference lets min win where min > max; the specification says max.
    inverted = low is not None and high is not None and low > high
    return Case({}, [x, *limits], oracle=(lambda _, x, low, high: (np.full_like(x, high),)) if inverted else None)


@st.composite
def cross_entropy(draw: Draw) -> Case:
    shape = (draw(sizes), draw(st.integers(1, 4)), *draw(st.lists(sizes, max_size=2)))
    rng = draw(seeds)
    labels = np.asarray(rng.integers(0, shape[1], (shape[0], *shape[2:])), draw(st.sampled_from([np.int32, np.int64])))
    attributes: dict[str, Any] = {"reduction": draw(st.sampled_from(["none", "sum", "mean"]))}
    if draw(st.booleans()):
        attributes["ignore_index"] = ignored = draw(st.sampled_from([0, -100]))
        labels[rng.random(labels.shape) < 0.3] = ignored
        labels.reshape(-1)[0] = shape[1] - 1  # The mean over no labels, which is NaN, has a test of its own.
        if shape[1] == 1:
            attributes.pop("ignore_index")
            labels[...] = 0
    inputs = [rng.standard_normal(shape), labels]
    if draw(st.booleans()):
        inputs.append(rng.uniform(0.2, 2.0, shape[1]))
    return Case(attributes, inputs, outputs=2)


CASES: dict[str, st.SearchStrategy[Case]] = {
    "abs": unary(),
    "add": binary(),
    "average_pool": average_pooling(),
    "batch_normalization": batch_normalization(),
    "cast": cast(),
    "clip": clip(),
    "concat": concat(),
    "constant": constant(),
    "conv": conv(),
    "div": binary(second=positive),
    "exp": unary(),
    "flatten": flatten(),
    "gemm": gemm(),
    "global_average_pool": global_pooling(spread, None),
    "global_max_pool": global_pooling(spread, global_max_pool),  # onnx.reference is right for rank 4 only.
    "identity": unary(),
    "leaky_relu": unary(alpha=st.sampled_from([0.01, 0.5, -0.25])),
    "log": unary(positive),
    "log_softmax": along_axis(),
    "mat_mul": mat_mul(),
    "max_pool": max_pooling(),
    "mul": binary(),
    "neg": unary(),
    "pow": binary(positive, spread),
    "reduce_mean": reduction(),
    "reduce_sum": reduction(),
    "relu": unary(),
    "reshape": reshape(),
    "sigmoid": unary(),
    "softmax": along_axis(),
    "softmax_cross_entropy_loss": cross_entropy(),
    "sqrt": unary(positive),
    "squeeze": squeeze(),
    "sub": binary(),
    "tanh": unary(),
    "transpose": transpose(),
    "unsqueeze": unsqueeze(),
}
