"""The functions of update rules: NumPy's tensors are NumPy arrays."""

from deep500.networks.numpy_functions import NumpyFunctions
from deep500.networks.tensor_functions import TensorFunctions

__all__ = ["functions"]

functions: TensorFunctions = NumpyFunctions()
