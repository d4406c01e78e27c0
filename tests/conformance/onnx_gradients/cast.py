"""Conversions: what is seen in float64 are those that keep it."""

import numpy as np
import onnx
from hypothesis import strategies as st

from tests.conformance.onnx_gradients.cases import Draw, GradientCase, strategy
from tests.conformance.onnx_gradients.values import normal, seeds, shapes


@strategy("Cast")
@st.composite
def cast(draw: Draw) -> GradientCase:
    return GradientCase("Cast", [normal(draw(seeds), draw(shapes))], {"to": onnx.TensorProto.DOUBLE})


@strategy("CastLike")
@st.composite
def cast_like(draw: Draw) -> GradientCase:
    return GradientCase("CastLike", [normal(draw(seeds), draw(shapes)), np.zeros(draw(shapes))])
