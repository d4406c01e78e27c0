"""Replacing nodes by a custom operator."""

from __future__ import annotations

import fnmatch

import onnx_ir as ir

from deep500.core.errors import Deep500Error, InvalidInputError, InvalidNetworkError
from deep500.core.texts import shown
from deep500.networks.custom_node import CUSTOM_VERSION, _stored, infer_custom_nodes
from deep500.networks.network import Network
from deep500.networks.operator_node import read_node
from deep500.networks.transformation import Transformation
from deep500.networks.transforms._graphs import replace_nodes
from deep500.operators.custom.catalogue import register_custom_op
from deep500.operators.custom.custom_op import CUSTOM_DOMAIN, CustomOp

__all__ = ["LayerReplacement"]


class LayerReplacement(Transformation):
    """Replace nodes by a custom operator with the same inputs and outputs.

    The operator has its own values of attributes; what the replaced nodes have is dropped, so nodes that mean different
    things by their attributes need an operator each (choose them by name).
    """

    def __init__(self, op: CustomOp, operator: str, nodes: str = "*") -> None:
        """Choose the nodes.

        Args:
            op: What takes their place; it is registered.
            operator: The ONNX operator of the nodes that are replaced, such as ``"Relu"``.
            nodes: Pattern of their names, with ``*`` and ``?``.

        Raises:
            InvalidInputError: An argument is not accepted.
        """
        if not isinstance(op, CustomOp):
            raise InvalidInputError(
                f"LayerReplacement was given {shown(op)} in the place of nodes; accepted is a custom operator, as in "
                f"LayerReplacement(op, 'Relu')."
            )
        for what, text in (("operator", operator), ("nodes", nodes)):
            if not isinstance(text, str) or not text:
                raise InvalidInputError(f"{what} was given as {text!r}; accepted are texts that are not empty.")
        self.op, self.operator, self.nodes = op, operator, nodes

    def check(self, network: Network) -> None:
        """Refuse a choice of no nodes, and nodes whose inputs or outputs are not the operator's."""
        chosen = self._chosen(network.model.graph)
        if not chosen:
            raise InvalidInputError(
                f"Network {network.name!r} has no node of operator {self.operator!r} whose name matches {self.nodes!r}."
            )
        for node in chosen:
            label = read_node(node, network.model.graph.opset_imports).label
            try:
                self.op.check_input_count(len(node.inputs))
            except Deep500Error as error:
                raise InvalidNetworkError(f"{label} cannot be replaced: {error}") from error
            if len(node.outputs) != self.op.output_count:
                raise InvalidNetworkError(
                    f"{label} has {len(node.outputs)} outputs and cannot be replaced: {self.op.name} has "
                    f"{self.op.output_count}."
                )

    def apply(self, network: Network) -> Network:
        """Return the network with the operator in place of the nodes."""
        register_custom_op(self.op)
        result = network.detached()
        graph = result.model.graph
        graph.opset_imports.setdefault(CUSTOM_DOMAIN, CUSTOM_VERSION)
        attributes = {name: _stored(self.op, name, value) for name, value in self.op.attributes.items()}
        for node in self._chosen(graph):
            new = ir.Node(
                CUSTOM_DOMAIN,
                self.op.name,
                node.inputs,
                ir.convenience.convert_attributes(attributes),
                num_outputs=len(node.outputs),
                name=node.name,
                version=CUSTOM_VERSION,
            )
            replace_nodes(graph, node, [node], [new], zip(node.outputs, new.outputs))
        infer_custom_nodes(graph)  # raises where the operator gives something else than the replaced node
        return result

    def check_result(self, network: Network, result: Network) -> None:
        """Also check that no chosen node is left."""
        super().check_result(network, result)
        if self._chosen(result.model.graph):
            raise InvalidNetworkError(f"{self.name} left nodes of operator {self.operator!r}.")

    def _chosen(self, graph: ir.Graph) -> list[ir.Node]:
        return [
            node
            for node in graph
            if node.op_type == self.operator
            and node.domain != CUSTOM_DOMAIN
            and fnmatch.fnmatchcase(node.name or node.outputs[0].name or "", self.nodes)
        ]
