"""Operators that the library does not have: ONNX' own reference implementation runs them, forward only."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
from onnx.reference import ReferenceEvaluator

from deep500.core.errors import InvalidInputError, UnsupportedOperatorError
from deep500.core.texts import message_of
from deep500.frameworks.reference.lowering import lowerings
from deep500.networks.operator_node import OperatorNode, captured_values
from deep500.operators.operator import Operator, OptionalArray

__all__: list[str] = []

#: Domains of ONNX that its reference implements.
_DOMAINS = ("", "ai.onnx.ml", "ai.onnx.preview", "ai.onnx.preview.training")


class OnnxReference(Operator):
    """A node as a model of its own, evaluated by ``onnx.reference``; tensors that its graphs read are inputs as well.

    Args:
        node: The node.
    """

    def __init__(self, node: OperatorNode) -> None:
        self._label = node.label
        self._inputs = [*node.inputs, *node.captured]
        self._outputs = [name or f"deep500.unused.{index}" for index, name in enumerate(node.outputs)]
        try:
            self._evaluator = ReferenceEvaluator(_single_node_model(node, self._outputs))
        except Exception as error:
            # The evaluator reports what it lacks by exceptions of unrelated types.
            raise UnsupportedOperatorError(
                f"Neither the NumPy operators of Deep500 nor ONNX' reference can run {node.label}: {message_of(error)}"
            ) from error

    def forward(self, inputs: Sequence[OptionalArray]) -> tuple[Any, ...]:
        """Evaluate the node."""
        feeds = {name: value for name, value in zip(self._inputs, inputs) if name}
        try:
            results: list[Any] = list(self._evaluator.run(None, feeds))  # type: ignore[arg-type]
        except Exception as error:
            raise InvalidInputError(f"ONNX' reference cannot run {self._label}: {message_of(error)}") from error
        return tuple(np.asarray(y) if isinstance(y, np.generic) else y for y in results)

    def backward(
        self, grads: Sequence[OptionalArray], fwd_inputs: Sequence[OptionalArray], fwd_outputs: Sequence[OptionalArray]
    ) -> tuple[OptionalArray, ...]:
        """Refuse: the reference implementation has no gradients."""
        raise UnsupportedOperatorError(f"The NumPy reference has no gradient of {self._label}.")


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


def _lower(node: OperatorNode) -> Operator:
    return OnnxReference(node)


for _domain in _DOMAINS:
    lowerings.register("*", since=1, domain=_domain)(_lower)
