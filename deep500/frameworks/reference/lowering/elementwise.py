"""Element-wise arithmetic with broadcasting."""

from deep500.frameworks.reference.lowering._library import take

__all__: list[str] = []

take("Add", "add", since=7)
take("Sub", "sub", since=7)
take("Mul", "mul", since=7)
take("Div", "div", since=7)
take("Mod", "mod", since=10)
take("Pow", "pow", since=12)
take("Neg", "neg", since=6)
take("Abs", "abs", since=6)
take("Sign", "sign", since=9)
take("Exp", "exp", since=6)
take("Log", "log", since=6)
take("Sqrt", "sqrt", since=6)
take("Reciprocal", "reciprocal", since=6)
take("Erf", "erf", since=9)
take("Clip", "clip", since=11)
take("Ceil", "ceil", since=6)
take("Floor", "floor", since=6)
take("Round", "round", since=11)
take("Max", "max", since=8)
take("Min", "min", since=8)
take("Sum", "sum", since=8)
take("Mean", "mean", since=8)
