"""Elements at places that are computed, and the places of elements."""

import numpy as np
from hypothesis import strategies as st

from tests.conformance.onnx_gradients.cases import Draw, GradientCase, strategy
from tests.conformance.onnx_gradients.values import (
    distinct,
    draw_axis,
    draw_shape,
    flags,
    int64,
    normal,
    seeds,
    sizes,
    spread,
)

_integers = st.sampled_from([np.int32, np.int64])
_reductions = st.sampled_from(["none", "add", "mul", "max", "min"])


def _indices(draw: Draw, rng: np.random.Generator, size: int, shape: tuple[int, ...]) -> np.ndarray:
    """Draw indices of an axis, counted from the front or from the back."""
    return np.asarray(rng.integers(-size, size, shape), draw(_integers))


@strategy("Gather")
@st.composite
def gather(draw: Draw) -> GradientCase:
    rng, shape = draw(seeds), draw_shape(draw)
    axis = draw_axis(draw, len(shape))
    indices = _indices(draw, rng, shape[axis], draw(st.sampled_from([(), (1,), (3,), (2, 2), (0,)])))
    return GradientCase("Gather", [normal(rng, shape), indices], {"axis": axis})


@strategy("GatherElements")
@st.composite
def gather_elements(draw: Draw) -> GradientCase:
    rng, shape = draw(seeds), draw_shape(draw)
    axis = draw_axis(draw, len(shape))
    wanted = [draw(st.integers(1, size)) for size in shape]
    wanted[axis] = draw(sizes)
    return GradientCase(
        "GatherElements", [normal(rng, shape), _indices(draw, rng, shape[axis], tuple(wanted))], {"axis": axis}
    )


def _rows(rng: np.random.Generator, shape: tuple[int, ...], lead: tuple[int, ...], depth: int) -> np.ndarray:
    """Return indices ``[*lead, depth]`` into the first axes of a shape, counted from either side."""
    parts = [rng.integers(-size, size, lead) for size in shape[:depth]]
    return int64(np.stack(parts, axis=-1)) if depth else np.zeros((*lead, 0), np.int64)


@strategy("GatherND")
@st.composite
def gather_nd(draw: Draw) -> GradientCase:
    rng, shape = draw(seeds), draw_shape(draw)
    batch = draw(st.integers(0, len(shape) - 1))
    depth = draw(st.integers(1, len(shape) - batch))
    lead = (*shape[:batch], *draw(st.lists(sizes, max_size=2, min_size=0 if batch else 1)))
    indices = _rows(rng, shape[batch:], lead, depth)
    return GradientCase("GatherND", [normal(rng, shape), indices], {"batch_dims": batch})


@strategy("ScatterElements")
@st.composite
def scatter_elements(draw: Draw) -> GradientCase:
    rng, shape = draw(seeds), draw_shape(draw)
    axis, reduction = draw_axis(draw, len(shape)), draw(_reductions)
    wanted = tuple(draw(st.integers(1, size)) for size in shape)
    # Without a reduction, indices must differ: which of two updates stays is left open.
    order = np.argsort(rng.random((*wanted[: axis % len(shape)], shape[axis], *wanted[axis % len(shape) + 1 :])), axis)
    indices = int64(np.take(order, range(wanted[axis]), axis))
    if reduction != "none":
        indices = _indices(draw, rng, shape[axis], wanted)
    data, updates = distinct(rng, [shape, wanted])
    attributes = {"axis": axis, "reduction": reduction}
    return GradientCase("ScatterElements", [data, indices, updates], attributes, differentiable=(0, 2))


@strategy("ScatterND")
@st.composite
def scatter_nd(draw: Draw) -> GradientCase:
    rng, shape = draw(seeds), draw_shape(draw)
    depth, reduction = draw(st.integers(1, len(shape))), draw(_reductions)
    count = draw(st.integers(1, min(4, int(np.prod(shape[:depth])))))
    if reduction == "none":
        chosen = rng.permutation(int(np.prod(shape[:depth])))[:count]
        indices = int64(np.stack(np.unravel_index(chosen, shape[:depth]), axis=-1))
    else:
        indices = _rows(rng, shape, (count,), depth)
    data, updates = distinct(rng, [shape, (count, *shape[depth:])])
    return GradientCase("ScatterND", [data, indices, updates], {"reduction": reduction}, differentiable=(0, 2))


@strategy("TensorScatter")
@st.composite
def tensor_scatter(draw: Draw) -> GradientCase:
    rng, shape = draw(seeds), draw_shape(draw, least=2)
    axis = draw(st.integers(1, len(shape) - 1))
    length = draw(st.integers(1, shape[axis]))
    mode = draw(st.sampled_from(["linear", "circular"]))
    updates = normal(rng, (*shape[:axis], length, *shape[axis + 1 :]))
    most = shape[axis] - (length if mode == "linear" else 1)
    starts = [int64(rng.integers(0, most + 1, shape[0]))] if draw(st.booleans()) else []
    attributes = {"axis": axis - len(shape) if draw(st.booleans()) else axis, "mode": mode}
    return GradientCase("TensorScatter", [normal(rng, shape), updates, *starts], attributes, differentiable=(0, 1))


@strategy("TopK")
@st.composite
def top_k(draw: Draw) -> GradientCase:
    shape = draw_shape(draw)
    axis = draw_axis(draw, len(shape))
    attributes = {"axis": axis, "largest": draw(flags), "sorted": 1}
    return GradientCase(
        "TopK", [spread(draw(seeds), shape), int64([draw(st.integers(1, shape[axis]))])], attributes, outputs=2
    )


@strategy("OneHot")
@st.composite
def one_hot(draw: Draw) -> GradientCase:
    rng, shape = draw(seeds), draw_shape(draw)
    depth = draw(sizes)
    inputs = [int64(rng.integers(-depth - 1, depth + 1, shape)), int64(depth), normal(rng, (2,))]
    return GradientCase("OneHot", inputs, {"axis": draw_axis(draw, len(shape) + 1)}, differentiable=(2,))


@strategy("Compress")
@st.composite
def compress(draw: Draw) -> GradientCase:
    rng, shape = draw(seeds), draw_shape(draw)
    axis = draw(st.none() | st.integers(-len(shape), len(shape) - 1))
    size = int(np.prod(shape)) if axis is None else shape[axis]
    condition = rng.random(draw(st.integers(1, size))) < 0.6
    return GradientCase("Compress", [normal(rng, shape), condition], {} if axis is None else {"axis": axis})
