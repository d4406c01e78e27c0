"""PyTorch: executor, native optimizers, device. Names load when they are first used."""

from deep500.core.requirement import Requirement
from deep500.networks.adapter import attach_adapter

#: The library that this adapter needs.
REQUIREMENT = Requirement(module="torch", extra="pytorch", distributions=("torch",))

#: Name of the communicator in ``communicator.py``.
COMMUNICATOR = "torch_distributed"

__getattr__, __dir__, __all__ = attach_adapter(REQUIREMENT, __name__, __file__)
