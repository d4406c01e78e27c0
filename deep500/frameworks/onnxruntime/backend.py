"""ONNX Runtime through ``onnx.backend.base.Backend``, in the form that every adapter has."""

from __future__ import annotations

from deep500.frameworks.onnxruntime.executor import from_model
from deep500.networks.graph_executor import GraphExecutor
from deep500.networks.network import Network
from deep500.networks.onnx_backend import NetworkBackend

__all__ = ["Backend", "is_compatible", "prepare", "run_model", "run_node", "supports_device"]


class Backend(NetworkBackend):
    """Runs models in ONNX Runtime."""

    @classmethod
    def make_executor(cls, network: Network, device: str) -> GraphExecutor:
        """Return an executor of ONNX Runtime."""
        return from_model(network, device)


is_compatible = Backend.is_compatible
prepare = Backend.prepare
run_model = Backend.run_model
run_node = Backend.run_node
supports_device = Backend.supports_device
