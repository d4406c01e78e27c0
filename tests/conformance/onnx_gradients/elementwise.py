"""Element-wise arithmetic with broadcasting."""

import numpy as np
from hypothesis import strategies as st

from tests.conformance.onnx_gradients.cases import Draw, GradientCase, from_library, strategy
from tests.conformance.onnx_gradients.values import (
    distinct,
    draw_broadcast,
    flags,
    positive,
    seeds,
    shapes,
    unary,
    within,
)

for _operator, _file in (
    ("Abs", "abs"), ("Add", "add"), ("Clip", "clip"), ("Div", "div"), ("Exp", "exp"), ("Log", "log"), ("Mul", "mul"),
    ("Neg", "neg"), ("Pow", "pow"), ("Sqrt", "sqrt"), ("Sub", "sub"),
):  # fmt: skip
    strategy(_operator)(from_library(_operator, _file))


def _off_integers(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Return values between integers and halves of them, where rounding jumps."""
    return rng.integers(-6, 6, shape) / 2 + rng.uniform(0.05, 0.45, shape)


for _operator in ("Ceil", "Floor", "Round"):
    strategy(_operator)(unary(_operator, _off_integers))
strategy("Sign")(unary("Sign"))
strategy("Reciprocal")(unary("Reciprocal", positive))
strategy("Erf")(unary("Erf", within(-2.0, 2.0)))


@strategy("Mod")
@st.composite
def mod(draw: Draw) -> GradientCase:
    rng = draw(seeds)
    shape = draw(shapes)
    divisor = rng.uniform(0.7, 1.5, shape) * rng.choice([-1.0, 1.0], shape)
    quotient = rng.integers(-3, 3, shape) + rng.uniform(0.1, 0.9, shape)
    return GradientCase("Mod", [quotient * divisor, divisor], {"fmod": draw(flags)}, differentiable=(0, 1))


def _variadic(operator: str) -> st.SearchStrategy[GradientCase]:
    @st.composite
    def cases(draw: Draw) -> GradientCase:
        tensors = distinct(draw(seeds), draw_broadcast(draw, draw(st.integers(1, 3))))
        return GradientCase(operator, tensors, differentiable=tuple(range(len(tensors))))

    return cases()


for _operator in ("Max", "Min", "Sum", "Mean"):
    strategy(_operator)(_variadic(_operator))
