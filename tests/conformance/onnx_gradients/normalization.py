"""Normalisation."""

from hypothesis import strategies as st

from tests.conformance.onnx_gradients.cases import Draw, GradientCase, from_library, strategy
from tests.conformance.onnx_gradients.values import draw_axis, in_float32, positive, seeds, sizes, spread

for operator, file in (
    ("BatchNormalization", "batch_normalization"), ("InstanceNormalization", "instance_normalization"),
    ("LpNormalization", "lp_normalization"), ("LRN", "lrn"),
):  # fmt: skip
    strategy(operator)(from_library(operator, file))

strategy("LayerNormalization")(
    from_library("LayerNormalization", "layer_normalization", outputs=1, differentiable_outputs=(0,))
)

epsilons = st.sampled_from([1e-5, 0.1])
DOUBLE = 11


@strategy("GroupNormalization")
@st.composite
def group(draw: Draw) -> GradientCase:
    """Several groups of several channels, and any number of spatial axes."""
    rng, groups, channels = draw(seeds), draw(sizes), draw(sizes)
    shape = (draw(sizes), groups * channels, 3, *draw(st.lists(sizes, max_size=2)))
    inputs = [spread(rng, shape), positive(rng, shape[1:2]), spread(rng, shape[1:2])]
    attributes = {"num_groups": groups, "epsilon": draw(epsilons), "stash_type": DOUBLE}
    return GradientCase("GroupNormalization", inputs, attributes, differentiable=(0, 1, 2))


@strategy("RMSNormalization")
@st.composite
def root_mean_square(draw: Draw) -> GradientCase:
    """Over the last axes."""
    rng, shape = draw(seeds), (*draw(st.lists(sizes, max_size=2)), 3)
    axis = draw_axis(draw, len(shape))
    attributes = {"axis": axis, "epsilon": draw(epsilons), "stash_type": DOUBLE}
    return GradientCase("RMSNormalization", [spread(rng, shape), positive(rng, shape[axis:])], attributes, (0, 1))


@strategy("MeanVarianceNormalization")
@st.composite
def mean_variance(draw: Draw) -> GradientCase:
    """Over any axes, of which one has several elements; in float32, since ONNX refuses its definition in float64."""
    shape = (*draw(st.lists(sizes, max_size=2)), 3)
    axes = {len(shape) - 1} | draw(st.sets(st.integers(0, len(shape) - 1)))
    case = GradientCase("MeanVarianceNormalization", [spread(draw(seeds), shape)], {"axes": sorted(axes)})
    return in_float32(case)
