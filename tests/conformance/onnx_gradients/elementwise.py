"""Element-wise arithmetic with broadcasting."""

from tests.conformance.onnx_gradients.cases import from_library, strategy

for operator, file in (
    ("Abs", "abs"), ("Add", "add"), ("Clip", "clip"), ("Div", "div"), ("Exp", "exp"), ("Log", "log"), ("Mul", "mul"),
    ("Neg", "neg"), ("Pow", "pow"), ("Sqrt", "sqrt"), ("Sub", "sub"),
):  # fmt: skip
    strategy(operator)(from_library(operator, file))
