"""ONNX Runtime: executor, optimizers, device. Names load when they are first used.

Its tensors are NumPy arrays on the processor. It trains by the gradient of the network as a graph.
"""

from deep500.core.requirement import Requirement
from deep500.networks.adapter import attach_adapter

#: The library that this adapter needs.
REQUIREMENT = Requirement(
    module="onnxruntime", extra="onnxruntime", distributions=("onnxruntime", "onnxruntime-gpu", "onnxruntime-openvino")
)

#: What other adapters have and this one does not, with the reason.
LACKS = {
    "lowering": "ONNX Runtime runs ONNX itself",
    "custom_operator.py": "ONNX Runtime takes custom operators as compiled libraries of its own kind only",
    "custom_operator_call.py": "it has no custom operators",
    "custom_operator_check.py": "it has no custom operators",
    "validated_operator.py": "it has no custom operators",
    "model_import.py": "its models are ONNX files, which Network.load reads",
    "buckets.py": "its gradients are outputs of one run, all there at once",
    "data_parallel.py": "it has no exchange between processes",
    "communicator.py": "it has no exchange between processes",
    "problem_functions.py": "it has no functions of tensors beside whole networks",
}

__getattr__, __dir__, __all__ = attach_adapter(REQUIREMENT, __name__, __file__)
