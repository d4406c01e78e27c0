"""Trigonometric and hyperbolic functions, and their inverses."""

from deep500.frameworks.reference.lowering._library import take

__all__: list[str] = []

take("Sin", "sin", since=7)
take("Cos", "cos", since=7)
take("Tan", "tan", since=7)
take("Asin", "asin", since=7)
take("Acos", "acos", since=7)
take("Atan", "atan", since=7)
take("Sinh", "sinh", since=9)
take("Cosh", "cosh", since=9)
take("Asinh", "asinh", since=9)
take("Acosh", "acosh", since=9)
take("Atanh", "atanh", since=9)
