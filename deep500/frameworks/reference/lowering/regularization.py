"""What only training does, to keep networks from learning their data by heart."""

from deep500.frameworks.reference.lowering._library import take

__all__: list[str] = []

take("Dropout", "dropout", since=12)
