"""Shapes: the same elements in another arrangement."""

from deep500.frameworks.reference.lowering._library import take

__all__: list[str] = []

take("Identity", "identity", since=1)
take("Flatten", "flatten", since=9)
take("Reshape", "reshape", since=5)
take("Transpose", "transpose", since=1)
take("Concat", "concat", since=4)
take("Squeeze", "squeeze", since=13)
take("Unsqueeze", "unsqueeze", since=13)
take("Cast", "cast", since=9)
