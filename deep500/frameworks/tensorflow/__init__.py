"""TensorFlow: executor, native optimizers, device. Names load when they are first used."""

from deep500.core.requirement import Requirement
from deep500.frameworks.tensorflow._start import start_quietly
from deep500.networks.adapter import attach_adapter

#: The library that this adapter needs.
REQUIREMENT = Requirement(
    module="tensorflow",
    extra="tensorflow",
    distributions=("tensorflow", "tensorflow-cpu", "tensorflow-intel", "tf-nightly"),
)

#: What other adapters have and this one does not, with the reason.
LACKS = {
    "communicator.py": "TensorFlow's collectives run inside its functions only, not on buffers",
    "data_parallel.py": "its strategies make the variables, and are told of all ranks before TensorFlow starts",
}

__getattr__, __dir__, __all__ = attach_adapter(REQUIREMENT, __name__, __file__, start_quietly)
