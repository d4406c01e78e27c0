"""Shapes: elements moved, repeated or cut out."""

from hypothesis import strategies as st

from tests.conformance.onnx_gradients.cases import Draw, GradientCase, from_library, strategy
from tests.conformance.onnx_gradients.values import draw_axis, draw_shape, flags, int64, normal, seeds, sizes

for _operator, _file in (
    ("Identity", "identity"), ("Flatten", "flatten"), ("Reshape", "reshape"), ("Transpose", "transpose"),
    ("Concat", "concat"), ("Squeeze", "squeeze"), ("Unsqueeze", "unsqueeze"),
):  # fmt: skip
    strategy(_operator)(from_library(_operator, _file))


@strategy("Expand")
@st.composite
def expand(draw: Draw) -> GradientCase:
    whole = draw_shape(draw, least=0)
    shape = [1 if draw(st.booleans()) else size for size in whole]
    shape = shape[draw(st.integers(0, len(shape))) :] if draw(st.booleans()) else shape
    wanted = [1 if i >= len(whole) - len(shape) and draw(st.integers(0, 3)) == 0 else s for i, s in enumerate(whole)]
    return GradientCase("Expand", [normal(draw(seeds), tuple(shape)), int64(wanted)])


@strategy("Tile")
@st.composite
def tile(draw: Draw) -> GradientCase:
    shape = draw_shape(draw, least=0)
    repeats = [draw(st.integers(0, 2)) if draw(st.booleans()) else 1 for _ in shape]
    return GradientCase("Tile", [normal(draw(seeds), shape), int64(repeats)])


@strategy("Pad")
@st.composite
def pad(draw: Draw) -> GradientCase:
    shape = draw_shape(draw, size=4)
    mode = draw(st.sampled_from(["constant", "reflect", "edge", "wrap"]))
    chosen = draw(st.lists(st.sampled_from(range(len(shape))), unique=True, min_size=1))
    is_given = draw(st.booleans())
    axes = chosen if is_given else list(range(len(shape)))
    low = -1 if mode == "constant" else 0
    # A mirror image is at most as long as what it mirrors, without the edge.
    most = [shape[axis] - 1 if mode == "reflect" else min(2, shape[axis]) for axis in axes]
    ends = [draw(st.integers(low if shape[axis] > 2 else 0, high)) for _ in range(2)
            for axis, high in zip(axes, most, strict=True)]  # fmt: skip
    rng = draw(seeds)
    inputs = [normal(rng, shape), int64(ends)]
    value = normal(rng, ()) if mode == "constant" and draw(st.booleans()) else None
    if value is not None or is_given:
        inputs.append(value)
    if is_given:
        inputs.append(int64([axis - len(shape) if draw(st.booleans()) else axis for axis in axes]))
    return GradientCase("Pad", inputs, {"mode": mode}, differentiable=(0,) if value is None else (0, 2))


@strategy("Slice")
@st.composite
def cut(draw: Draw) -> GradientCase:
    shape = draw_shape(draw, size=4)
    axes = draw(st.lists(st.sampled_from(range(len(shape))), unique=True, min_size=1))
    is_first = draw(st.booleans())
    axes = list(range(len(axes))) if is_first else axes
    steps = [draw(st.sampled_from([1, 1, 2, -1, -2])) for _ in axes]
    limits = st.integers(-6, 6) | st.sampled_from([2**31 - 1, -(2**31), 2**63 - 1, -(2**63)])
    starts, ends = ([draw(limits) for _ in axes] for _ in range(2))
    named = None if is_first else int64([axis - len(shape) if draw(st.booleans()) else axis for axis in axes])
    inputs = [normal(draw(seeds), shape), int64(starts), int64(ends)]
    if any(step != 1 for step in steps):
        inputs += [named, int64(steps)]
    elif named is not None:
        inputs.append(named)
    return GradientCase("Slice", inputs)


@strategy("Split")
@st.composite
def split(draw: Draw) -> GradientCase:
    shape = list(draw_shape(draw))
    axis = draw_axis(draw, len(shape))
    rng = draw(seeds)
    if draw(st.booleans()):
        parts = [draw(st.integers(0, 2)) for _ in range(draw(sizes))]
        shape[axis] = sum(parts)
        inputs, attributes = [normal(rng, tuple(shape)), int64(parts)], {"axis": axis}
        count = len(parts)
    else:
        count = draw(sizes)
        shape[axis] = count * draw(sizes) - (draw(flags) if count > 1 else 0)
        inputs, attributes = [normal(rng, tuple(shape))], {"axis": axis, "num_outputs": count}
    used = draw(st.lists(st.sampled_from(range(count)), unique=True, min_size=1))
    return GradientCase("Split", inputs, attributes, outputs=count, differentiable_outputs=tuple(sorted(used)))


@strategy("Trilu")
@st.composite
def trilu(draw: Draw) -> GradientCase:
    shape = draw_shape(draw, least=2)
    k = [int64(draw(st.integers(-3, 3)))] if draw(st.booleans()) else []
    return GradientCase("Trilu", [normal(draw(seeds), shape), *k], {"upper": draw(flags)})


@strategy("DepthToSpace")
@st.composite
def depth_to_space(draw: Draw) -> GradientCase:
    shape = (draw(st.integers(1, 2)), 4 * draw(st.integers(1, 2)), *draw(st.sampled_from([(1, 1), (1, 2), (2, 1)])))
    attributes = {"blocksize": 2, "mode": draw(st.sampled_from(["DCR", "CRD"]))}
    return GradientCase("DepthToSpace", [normal(draw(seeds), shape)], attributes)


@strategy("SpaceToDepth")
@st.composite
def space_to_depth(draw: Draw) -> GradientCase:
    block = draw(st.integers(1, 2))
    shape = (draw(st.integers(1, 2)), draw(st.integers(1, 2)), block * draw(st.integers(1, 2)), block)
    attributes = {"blocksize": block, "mode": draw(st.sampled_from(["DCR", "CRD"]))}
    return GradientCase("SpaceToDepth", [normal(draw(seeds), shape)], attributes)


@strategy("ReverseSequence")
@st.composite
def reverse_sequence(draw: Draw) -> GradientCase:
    shape = draw_shape(draw, least=2)
    batch = draw(flags)
    lengths = [draw(st.integers(1, shape[1 - batch])) for _ in range(shape[batch])]
    attributes = {"batch_axis": batch, "time_axis": 1 - batch}
    return GradientCase("ReverseSequence", [normal(draw(seeds), shape), int64(lengths)], attributes)


@strategy("CenterCropPad")
@st.composite
def center_crop_pad(draw: Draw) -> GradientCase:
    shape = draw_shape(draw)
    axes = draw(st.none() | st.lists(st.sampled_from(range(len(shape))), unique=True, min_size=1))
    wanted = [draw(st.integers(1, 4)) for _ in (shape if axes is None else axes)]
    attributes = {} if axes is None else {"axes": axes}
    return GradientCase("CenterCropPad", [normal(draw(seeds), shape), int64(wanted)], attributes)
