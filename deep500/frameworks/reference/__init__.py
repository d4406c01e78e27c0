"""NumPy, the reference and oracle: executor, native optimizers, device. Names load when they are first used."""

from deep500.core.requirement import Requirement
from deep500.networks.adapter import attach_adapter

#: The library that this adapter needs.
REQUIREMENT = Requirement(module="numpy", extra="numpy", distributions=("numpy",))

#: What other adapters have and this one does not, with the reason.
LACKS = {
    "data_parallel.py": "NumPy has no exchange between processes",
    "communicator.py": "NumPy has no exchange between processes",
    "model_import.py": "NumPy has no models to import",
}

__getattr__, __dir__, __all__ = attach_adapter(REQUIREMENT, __name__, __file__)
