"""TensorFlow: executor, native optimizers, device. Names load when they are first used."""

from deep500.core.requirement import Requirement

#: The library that this adapter needs.
REQUIREMENT = Requirement(
    module="tensorflow",
    extra="tensorflow",
    distributions=("tensorflow", "tensorflow-cpu", "tensorflow-intel", "tf-nightly"),
)

__getattr__, __dir__, __all__ = REQUIREMENT.attach(__name__, __file__)
