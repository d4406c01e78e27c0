"""Reductions, and running sums and products."""

import numpy as np
from hypothesis import strategies as st

from tests.conformance.onnx_gradients.cases import Draw, GradientCase, from_library, strategy
from tests.conformance.onnx_gradients.values import (
    Values,
    draw_axis,
    draw_shape,
    flags,
    int64,
    normal,
    positive,
    seeds,
    spread,
)

for _operator, _file in (("ReduceMean", "reduce_mean"), ("ReduceSum", "reduce_sum")):
    strategy(_operator)(from_library(_operator, _file))


def _reduction(operator: str, values: Values) -> st.SearchStrategy[GradientCase]:
    @st.composite
    def cases(draw: Draw) -> GradientCase:
        shape = draw_shape(draw, least=0)
        inputs = [values(draw(seeds), shape)]
        if draw(st.booleans()):
            axes = draw(st.lists(st.sampled_from(range(len(shape))), unique=True)) if shape else []
            inputs.append(int64([axis - len(shape) if draw(st.booleans()) else axis for axis in axes]))
        attributes = {"keepdims": draw(flags), "noop_with_empty_axes": draw(flags)}
        return GradientCase(operator, inputs, attributes)

    return cases()


def _with_zeros(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Return values of which some are 0, where a product cannot be divided by its factors."""
    return np.where(rng.random(shape) < 0.2, 0.0, spread(rng, shape))


for _operator, _values in (
    ("ReduceMax", spread),
    ("ReduceMin", spread),
    ("ReduceProd", _with_zeros),
    ("ReduceL1", spread),
    ("ReduceL2", spread),
    ("ReduceLogSum", positive),
    ("ReduceLogSumExp", normal),
    ("ReduceSumSquare", normal),
):
    strategy(_operator)(_reduction(_operator, _values))


def _cumulation(operator: str, values: Values) -> st.SearchStrategy[GradientCase]:
    @st.composite
    def cases(draw: Draw) -> GradientCase:
        shape = draw_shape(draw)
        attributes = {"exclusive": draw(flags), "reverse": draw(flags)}
        return GradientCase(operator, [values(draw(seeds), shape), int64(draw_axis(draw, len(shape)))], attributes)

    return cases()


strategy("CumSum")(_cumulation("CumSum", normal))
strategy("CumProd")(_cumulation("CumProd", _with_zeros))
