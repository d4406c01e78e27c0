"""Trigonometric and hyperbolic functions, and their inverses."""

from tests.conformance.onnx_gradients.cases import strategy
from tests.conformance.onnx_gradients.values import unary, within

for _operator, _low, _high in (
    ("Sin", -3.0, 3.0),
    ("Cos", -3.0, 3.0),
    ("Tan", -1.2, 1.2),
    ("Asin", -0.9, 0.9),
    ("Acos", -0.9, 0.9),
    ("Atan", -3.0, 3.0),
    ("Sinh", -2.0, 2.0),
    ("Cosh", -2.0, 2.0),
    ("Asinh", -3.0, 3.0),
    ("Acosh", 1.2, 4.0),
    ("Atanh", -0.9, 0.9),
):
    strategy(_operator)(unary(_operator, within(_low, _high)))
