"""One node on the host, evaluated by ONNX' own reference implementation: for what no framework has a kernel of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
from onnx.reference import ReferenceEvaluator

from deep500.core.errors import InvalidInputError, UnsupportedOperatorError
from deep500.core.texts import message_of
from deep500.networks.operator_node import OperatorNode, captured_values

__all__ = ["NodeEvaluator"]


class NodeEvaluator:
    """A node as a model of its own; tensors that its graphs read are inputs as well.

    Calling it with an array, a list of arrays (sequences) or ``None`` (absent) for each of ``node.inputs`` and
    ``node.captured`` returns the outputs in the same form.
    """

    def __init__(self, node: OperatorNode) -> None:
        """Prepare the evaluation.

        Args:
            node: The node.

        Raises:
            UnsupportedOperatorError: ONNX' reference has no implementation of it.
        """
        self._label = node.label
        self._inputs = [*node.inputs, *node.captured]
        self._outputs = [name or f"deep500.unused.{index}" for index, name in enumerate(node.outputs)]
        try:
            self._evaluator = ReferenceEvaluator(_single_node_model(node, self._outputs))
        except Exception as error:
            # The evaluator reports what it lacks by exceptions of unrelated types.
            raise UnsupportedOperatorError(f"ONNX' reference cannot run {node.label}: {message_of(error)}") from error

    def __call__(self, inputs: Sequence[Any]) -> tuple[Any, ...]:
        """Evaluate the node.

        Raises:
            InvalidInputError: The inputs are not the operator's.
        """
        feeds = {name: value for name, value in zip(self._inputs, inputs) if name}
        try:
            results: list[Any] = list(self._evaluator.run(None, feeds))
        except Exception as error:
            raise InvalidInputError(f"ONNX' reference cannot run {self._label}: {message_of(error)}") from error
        return tuple(np.asarray(y) if isinstance(y, np.generic) else y for y in results)


def _single_node_model(node: OperatorNode, outputs: Sequence[str]) -> onnx.ModelProto:
    source = node.source
    assert source is not None
    proto = ir.to_proto(source)
    proto.output[:] = outputs
    values = {v.name: v for v in (*source.inputs, *captured_values(source)) if v is not None and v.name}
    inputs = [_value_info(value) for value in values.values()]
    infos = [onnx.helper.make_empty_tensor_value_info(name) for name in outputs]
    imports = {domain: node.imports.get(domain, 1) for domain in _domains(proto)}
    imports[node.domain] = node.version
    return onnx.helper.make_model(
        onnx.helper.make_graph([proto], "node", inputs, infos),
        opset_imports=[onnx.helper.make_opsetid(domain, version) for domain, version in imports.items()],
    )


def _domains(node: onnx.NodeProto) -> set[str]:
    found = {node.domain}
    for attribute in node.attribute:
        for inner in attribute.g.node:
            found |= _domains(inner)
    return found


def _value_info(value: ir.Value) -> onnx.ValueInfoProto:
    if value.type is None:
        return onnx.helper.make_empty_tensor_value_info(value.name or "")
    info: onnx.ValueInfoProto = ir.to_proto(value)
    return info
