"""What a profile times: a network, or one of its nodes, run by an executor on tensors of its own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import onnx
import onnx.helper

from deep500.core.tensor_descriptor import TensorDescriptor
from deep500.measure.workload import Scalar, Work, Workload
from deep500.networks.graph_executor import GraphExecutor
from deep500.networks.network import Network

__all__ = ["NetworkRun", "nothing_network"]


class NetworkRun(Workload):
    """Runs of one network, forward or with the gradient of a loss, on tensors that lie on the device."""

    def __init__(
        self, name: str, executor: GraphExecutor, feeds: Mapping[str, Any], loss: str | None, work: Work | None = None
    ) -> None:
        """Run it once, so that what cannot be run is told here; that run also compiles what has to be compiled.

        Args:
            name: What messages call it.
            executor: The executor.
            feeds: A value for every input.
            loss: The scalar output that is differentiated; ``None`` for forward alone.
            work: What one run does.

        Raises:
            Deep500Error: The executor cannot run it.
        """
        self.spec = name
        self.executor = executor
        self._work = work or Work()
        self._loss = loss
        self._feeds = dict(feeds)
        self.run()
        types = executor.network.inputs
        self._feeds = {
            name: executor.to_native(value, types[name]) if isinstance(types[name], TensorDescriptor) else value
            for name, value in feeds.items()
        }

    def run(self) -> Any:
        """Run it once; what it returns is not kept."""
        if self._loss is None:
            self.executor.inference(self._feeds)
        else:
            self.executor.inference_and_backprop(self._feeds, self._loss)

    def synchronize(self) -> None:
        """Wait until the device has finished."""
        self.executor.synchronize()

    @property
    def identity(self) -> Mapping[str, Any]:
        """Its name."""
        return {"problem": "profile", "of": self.spec}

    @property
    def factors(self) -> Mapping[str, Scalar]:
        """Framework and device."""
        return {"framework": self.executor.framework, "device": str(self.executor.device)}

    @property
    def work(self) -> Work:
        """What one run does."""
        return self._work


def nothing_network(version: int) -> Network:
    """Return a network that hands on one number: the time of its run is that of the call."""
    kinds = [onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, []) for name in ("x", "y")]
    graph = onnx.helper.make_graph([onnx.helper.make_node("Identity", ["x"], ["y"])], "nothing", kinds[:1], kinds[1:])
    return Network.load(
        onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", version)], ir_version=10)
    )
