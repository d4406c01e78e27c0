"""PyTorch: executor, native optimizers, device. Names load when they are first used."""

from deep500.core.requirement import Requirement

#: The library that this adapter needs.
REQUIREMENT = Requirement(module="torch", extra="pytorch", distributions=("torch",))

__getattr__, __dir__, __all__ = REQUIREMENT.attach(__name__, __file__)
