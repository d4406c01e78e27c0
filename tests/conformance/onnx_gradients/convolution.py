"""Convolutions."""

from hypothesis import strategies as st

from tests.conformance.onnx_gradients.cases import Draw, GradientCase, from_library, strategy
from tests.conformance.onnx_gradients.values import in_float32, normal, seeds, sizes

for operator, file in (
    ("Conv", "conv"), ("ConvTranspose", "conv_transpose"), ("DeformConv", "deform_conv"), ("Col2Im", "col2im"),
):  # fmt: skip
    strategy(operator)(from_library(operator, file))


@strategy("CausalConvWithState")
@st.composite
def causal(draw: Draw) -> GradientCase:
    """With and without bias, earlier elements and activation."""
    rng, batch, channels, width = draw(seeds), draw(sizes), draw(sizes), draw(sizes)
    inputs = [normal(rng, (batch, channels, draw(sizes))), normal(rng, (channels, 1, width)), None, None]
    if draw(st.booleans()):
        inputs[2] = normal(rng, (channels,))
    if width > 1 and draw(st.booleans()):
        inputs[3] = normal(rng, (batch, channels, width - 1))
    while inputs[-1] is None:
        inputs.pop()
    case = GradientCase(
        "CausalConvWithState",
        inputs,
        {"activation": draw(st.sampled_from(["none", "silu", "swish"]))},
        differentiable=tuple(i for i, x in enumerate(inputs) if x is not None),
        outputs=2,
        differentiable_outputs=(0,) if width == 1 else (0, 1),
    )
    return in_float32(case)
