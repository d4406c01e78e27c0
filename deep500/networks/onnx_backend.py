"""ONNX' own interface of a runtime, over an executor: for ``onnx.backend.test`` and other tools that speak it."""

from __future__ import annotations

import abc
from collections.abc import Sequence
from typing import Any

import onnx
import onnx.backend.base as base
import onnx.helper

from deep500.core.errors import Deep500Error, DeviceError, InvalidInputError
from deep500.core.texts import shown
from deep500.networks.graph_executor import GraphExecutor
from deep500.networks.network import Network
from deep500.networks.normalise.model import IR_VERSION

__all__ = ["NetworkBackend", "PreparedNetwork"]


class PreparedNetwork(base.BackendRep):
    """A model that was translated and can be run again and again."""

    def __init__(self, executor: GraphExecutor) -> None:
        """Wrap an executor."""
        self.executor = executor
        network = executor.network
        self._inputs = list(network.inputs)
        self._outputs = [*network.outputs, *network.losses]
        self._named = base.namedtupledict("Outputs", self._outputs)

    def run(self, inputs: Any, **kwargs: Any) -> tuple[Any, ...]:
        """Run the model.

        Args:
            inputs: A value for every input, in the model's order, or by name: arrays, lists of them for sequences,
                ``None`` for optionals that are absent. A single array for a single input.
            **kwargs: None are known.

        Returns:
            The outputs in the model's order; they can be taken by name, too.

        Raises:
            Deep500Error: The inputs are not the model's, or it cannot be run.
        """
        if kwargs:
            raise InvalidInputError(f"run was given {shown(sorted(kwargs))}; no keyword arguments are accepted.")
        outputs = self.executor.inference(self._named_inputs(inputs))
        return self._named(*(self.executor.value_to_numpy(outputs[name]) for name in self._outputs))

    def _named_inputs(self, inputs: Any) -> dict[str, Any]:
        if isinstance(inputs, dict):
            return inputs
        values = list(inputs) if isinstance(inputs, (list, tuple)) else [inputs]
        if len(values) > len(self._inputs):
            raise InvalidInputError(
                f"{len(values)} inputs were given; the model has {len(self._inputs)}: {', '.join(self._inputs)}."
            )
        return dict(zip(self._inputs, values))


class NetworkBackend(base.Backend):
    """A backend whose models are run by executors of one framework."""

    @classmethod
    @abc.abstractmethod
    def make_executor(cls, network: Network, device: str) -> GraphExecutor:
        """Return an executor of the framework."""

    @classmethod
    def is_compatible(cls, model: onnx.ModelProto, device: str = "CPU", **kwargs: Any) -> bool:
        """Whether the framework can run a model: it is valid, and has a lowering for every operator."""
        try:
            cls.prepare(model, device, **kwargs)
        except Deep500Error:
            return False
        return True

    @classmethod
    def prepare(cls, model: onnx.ModelProto, device: str = "CPU", **kwargs: Any) -> PreparedNetwork:
        """Translate a model.

        Args:
            model: The model.
            device: ``"CPU"``, ``"CUDA"`` or ``"CUDA:1"``.
            **kwargs: Ignored, as the interface demands.

        Raises:
            InvalidNetworkError: The model is not valid ONNX.
            UnsupportedOperatorError: The framework has no lowering for an operator.
            DeviceError: It does not find the device.
        """
        return PreparedNetwork(cls.make_executor(Network.load(model).as_declared(), _device(device)))

    @classmethod
    def run_node(
        cls,
        node: onnx.NodeProto,
        inputs: Sequence[Any],
        device: str = "CPU",
        outputs_info: Sequence[tuple[Any, tuple[int, ...]]] | None = None,
        **kwargs: Any,
    ) -> tuple[Any, ...]:
        """Run one node.

        Args:
            node: The node.
            inputs: An array for each of its inputs that is not absent.
            device: As for :meth:`prepare`.
            outputs_info: Dtype and shape of every output; without them they are inferred.
            **kwargs: ``opset_version``, by default the newest.

        Raises:
            Deep500Error: The node is not valid, or cannot be run.
        """
        version = kwargs.get("opset_version", onnx.defs.onnx_opset_version())
        given = [name for name in node.input if name]
        infos = [_value_info(name, value.dtype, value.shape) for name, value in zip(given, inputs)]
        outputs = [name for name in node.output if name]
        if outputs_info is None:
            results = [onnx.helper.make_empty_tensor_value_info(name) for name in outputs]
        else:
            results = [_value_info(name, *info) for name, info in zip(outputs, outputs_info)]
        graph = onnx.helper.make_graph([node], "node", infos, results)
        imports = [onnx.helper.make_opsetid(node.domain, version)]
        model = onnx.helper.make_model(graph, opset_imports=imports, ir_version=IR_VERSION)
        if outputs_info is None:
            model = onnx.shape_inference.infer_shapes(model)
        return cls.prepare(model, device).run(list(inputs))

    @classmethod
    def supports_device(cls, device: str) -> bool:
        """Whether the framework finds a device."""
        empty = onnx.helper.make_model(onnx.helper.make_graph([], "empty", [], []))
        try:
            cls.make_executor(Network.load(empty), _device(device))
        except Deep500Error:
            return False
        return True


def _device(name: str) -> str:
    """Return Deep500's name of a device that ONNX names."""
    kind, colon, index = name.partition(":") if isinstance(name, str) else ("", "", "")
    if kind.upper() not in ("CPU", "CUDA"):
        raise DeviceError(f"{shown(name)} is not a device. Accepted are 'CPU', 'CUDA' and 'CUDA:N' with N from 0.")
    return f"gpu{colon}{index}" if kind.upper() == "CUDA" else name.lower()


def _value_info(name: str, dtype: Any, shape: Sequence[int]) -> onnx.ValueInfoProto:
    return onnx.helper.make_tensor_value_info(name, onnx.helper.np_dtype_to_tensor_dtype(dtype), shape)
