"""Small ONNX models for the tests of networks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from deep500.networks.network import Network

FLOAT = TensorProto.FLOAT


def value(name: str, *shape: int | str | None, element: int = FLOAT) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, element, list(shape))


def make_model(
    nodes: Sequence[onnx.NodeProto],
    inputs: Sequence[onnx.ValueInfoProto],
    outputs: Sequence[onnx.ValueInfoProto],
    stored: Mapping[str, NDArray[Any]] | None = None,
    *,
    opset: int = 23,
    ir_version: int = 11,
    functions: Sequence[onnx.FunctionProto] = (),
    domains: Sequence[str] = (),
) -> onnx.ModelProto:
    """Return a model; before IR version 4, stored tensors are listed among the inputs, as they had to be."""
    tensors = [numpy_helper.from_array(array, name) for name, array in (stored or {}).items()]
    listed = [value(t.name, *t.dims, element=t.data_type) for t in tensors] if ir_version < 4 else []
    graph = helper.make_graph(list(nodes), "graph", [*inputs, *listed], list(outputs), tensors)
    imports = [helper.make_opsetid("", opset), *(helper.make_opsetid(domain, 1) for domain in domains)]
    return helper.make_model(graph, opset_imports=imports, ir_version=ir_version, functions=list(functions))


def relu_model(*shape: int | str | None, **options: Any) -> onnx.ModelProto:
    """Return ``y = relu(x)``."""
    return make_model([helper.make_node("Relu", ["x"], ["y"])], [value("x", *shape)], [value("y", *shape)], **options)


def two_outputs() -> Network:
    """Return a network with the outputs ``a`` and ``b``, both ``[N, 4]``."""
    nodes = [helper.make_node("Relu", ["x"], ["a"]), helper.make_node("Neg", ["x"], ["b"])]
    return Network.load(make_model(nodes, [value("x", "N", 4)], [value("a", "N", 4), value("b", "N", 4)]))


def batch_normalization(*, outputs: Sequence[str] = ("y",), opset: int = 23, **attributes: Any) -> onnx.ModelProto:
    """Return a model of one BatchNormalization node over three channels."""
    stored = {
        "scale": np.array([1.0, 2.0, 3.0], np.float32),
        "bias": np.array([0.5, 0.0, -0.5], np.float32),
        "mean": np.array([0.1, 0.2, 0.3], np.float32),
        "var": np.array([1.0, 2.0, 4.0], np.float32),
    }
    node = helper.make_node("BatchNormalization", ["x", *stored], list(outputs), name="norm", **attributes)
    return make_model([node], [value("x", "N", 3, 4, 4)], [value("y", "N", 3, 4, 4)], stored, opset=opset)


def evaluate(network: Network, **inputs: NDArray[Any]) -> dict[str, NDArray[Any]]:
    """Run a network in ONNX' own evaluator and return all its outputs by name."""
    evaluator = ReferenceEvaluator(network.to_proto())
    return dict(zip(evaluator.output_names, evaluator.run(None, inputs), strict=True))
