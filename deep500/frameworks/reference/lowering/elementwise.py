"""Element-wise arithmetic with broadcasting."""

from deep500.frameworks.reference.lowering._library import take

__all__: list[str] = []

take("Add", "add", since=7)
take("Sub", "sub", since=7)
take("Mul", "mul", since=7)
take("Div", "div", since=7)
take("Pow", "pow", since=12)
take("Neg", "neg", since=6)
take("Abs", "abs", since=6)
take("Exp", "exp", since=6)
take("Log", "log", since=6)
take("Sqrt", "sqrt", since=6)
take("Clip", "clip", since=11)
