"""Choices; comparisons and bits have no derivatives."""

import numpy as np
from hypothesis import strategies as st

from tests.conformance.onnx_gradients.cases import Draw, GradientCase, strategy
from tests.conformance.onnx_gradients.values import draw_broadcast, normal, seeds


@strategy("Where")
@st.composite
def where(draw: Draw) -> GradientCase:
    rng = draw(seeds)
    condition, x, y = draw_broadcast(draw, 3)
    return GradientCase(
        "Where", [np.asarray(rng.random(condition) < 0.5), normal(rng, x), normal(rng, y)], differentiable=(1, 2)
    )
