"""The mode of a network: what training changes in its operators.

ONNX says in the graph whether an operator trains (``training_mode`` of BatchNormalization). A network here states its
mode as a whole instead; these rules give each node the form that the mode asks for, so that a model exported for
inference can be trained and a model exported while training can be used for inference.
"""

from __future__ import annotations

import dataclasses
import enum

from deep500.core.errors import InvalidNetworkError
from deep500.networks.operator_node import OperatorNode

__all__ = ["Mode", "node_in_mode"]


class Mode(str, enum.Enum):
    """Whether a network trains, is evaluated, or does what its nodes say, each for itself."""

    TRAIN = "train"
    EVAL = "eval"
    DECLARED = "declared"


def node_in_mode(node: OperatorNode, mode: Mode, used: frozenset[str]) -> tuple[OperatorNode, dict[str, str]]:
    """Return a node in the form that a mode asks for, and the states that it updates.

    Args:
        node: The node as the network has it.
        mode: The network's mode.
        used: Names of all tensors that other nodes or the graph's outputs use.

    Returns:
        The node, and for each state (an initializer's name) the output that holds its next value.
    """
    if node.domain or mode is Mode.DECLARED:
        return node, {}
    if node.op_type == "BatchNormalization":
        return _batch_normalization(node, mode, used)
    if node.op_type == "Dropout":
        return _dropout(node, mode), {}
    return node, {}


def _dropout(node: OperatorNode, mode: Mode) -> OperatorNode:
    """Say in an attribute whether the node drops anything, instead of in its third input.

    Source: ONNX Dropout-13, ``training_mode``.
    """
    attributes = {**node.attributes, "training_mode": int(mode is Mode.TRAIN)}
    constants = {index: value for index, value in node.constants.items() if index < 2}
    return dataclasses.replace(
        node,
        attributes=attributes,
        inputs=node.inputs[:2],
        input_types=node.input_types[:2],
        constants=constants,
    )


def _batch_normalization(node: OperatorNode, mode: Mode, used: frozenset[str]) -> tuple[OperatorNode, dict[str, str]]:
    """Source: ONNX BatchNormalization-15, ``training_mode``."""
    statistics_used = any(name in used for name in node.outputs[1:] if name)
    attributes = {k: v for k, v in node.attributes.items() if k != "training_mode"}
    if mode is Mode.EVAL:
        if statistics_used:
            raise InvalidNetworkError(
                f"{node.label} gives its running statistics to other nodes, so it has no evaluation form. "
                f"Use the network in training mode."
            )
        return (
            dataclasses.replace(
                node, attributes=attributes, outputs=node.outputs[:1], output_types=node.output_types[:1]
            ),
            {},
        )
    given = (*node.outputs[1:3], "", "")[:2]
    names = tuple(
        name or _unused(f"{node.outputs[0]}.{suffix}", used)
        for name, suffix in zip(given, ("running_mean", "running_var"), strict=True)
    )
    trained = dataclasses.replace(
        node,
        attributes={**attributes, "training_mode": 1},
        outputs=(node.outputs[0], *names),
        output_types=(node.output_types[0], node.input_types[3], node.input_types[4]),
    )
    return trained, dict(zip(node.inputs[3:5], names, strict=True))


def _unused(name: str, used: frozenset[str]) -> str:
    """Return a name that no other tensor has."""
    while name in used:
        name += "_"
    return name
