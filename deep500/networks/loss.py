"""Losses: what training makes small, appended to any network."""

from __future__ import annotations

import abc
import re

import onnx_ir as ir
import onnx_ir.passes.common as passes
from onnxscript import GraphBuilder, OpBuilder

from deep500.core.errors import InvalidInputError, InvalidNetworkError, near_miss
from deep500.core.registry import Registry
from deep500.core.tensor_descriptor import TensorDescriptor
from deep500.networks.operator_node import describe_value
from deep500.networks.tensor_roles import ROLE_KEY, TensorRole, initializer_role, is_loss

__all__ = ["LOSSES", "Loss", "append_loss", "find_loss", "remove_losses"]

#: The losses, one file each in ``deep500/networks/losses``.
LOSSES = Registry("loss", "deep500.networks.losses")


_DIFFERENTIABLE = ("float16", "bfloat16", "float32", "float64")


class Loss(abc.ABC):
    """A scalar function of a prediction and a label, written in ONNX operators."""

    @abc.abstractmethod
    def label_type(self, prediction: TensorDescriptor) -> TensorDescriptor:
        """Return dtype and shape that the label must have for a prediction."""

    @abc.abstractmethod
    def build(self, op: OpBuilder, prediction: ir.Value, label: ir.Value) -> ir.Value:
        """Add the loss's nodes and return its value, a scalar.

        Args:
            op: Builder whose methods are the ONNX operators.
            prediction: The network's output.
            label: What it should be.
        """


def find_loss(loss: str | Loss) -> Loss:
    """Return the loss of a name such as ``"SoftmaxCrossEntropyLoss"`` or ``"softmax_cross_entropy_loss"``.

    Raises:
        InvalidInputError: It is neither a name nor a loss.
        UnknownNameError: There is none.
    """
    if isinstance(loss, Loss):
        return loss
    if not isinstance(loss, str):
        raise InvalidInputError(f"A loss was given as {loss!r}; accepted are a loss's name and a Loss.")
    created = LOSSES.get(re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", loss).lower())()
    if not isinstance(created, Loss):
        raise InvalidInputError(f"The plug-in {loss!r} is not a Loss but {type(created).__name__}.")
    return created


def append_loss(model: ir.Model, loss: str | Loss, *, prediction: str | None, label: str, name: str) -> None:
    """Append a loss to a model in place; see :meth:`deep500.networks.network.Network.append_loss`."""
    graph = model.graph
    found = find_loss(loss)
    for what, chosen in (("loss", name), ("label", label)):
        if not isinstance(chosen, str) or not chosen:
            raise InvalidInputError(f"The {what} cannot be named {chosen!r}; accepted are texts that are not empty.")
    taken = {v.name for v in graph.inputs} | {v.name for n in graph for v in n.outputs} | set(graph.initializers)
    if name in taken:
        raise InvalidInputError(f"The loss cannot be named {name!r}: the network has a tensor of that name already.")
    predicted = _find_prediction(graph, prediction)
    descriptor = describe_value(predicted)
    if descriptor is None:
        raise InvalidInputError(f"Output {predicted.name!r} has no known type, so no loss can be appended to it.")
    if descriptor.dtype not in _DIFFERENTIABLE:
        raise InvalidInputError(f"Output {predicted.name!r} is {descriptor}; a loss needs a floating prediction.")
    if name == label:
        raise InvalidInputError(f"Loss and label cannot both be named {name!r}.")
    wanted = found.label_type(descriptor)
    inputs = {v.name: v for v in graph.inputs}
    builder = GraphBuilder(graph)
    if label in inputs:
        given = describe_value(inputs[label])
        if given is None or given.dtype != wanted.dtype or given.rank != wanted.rank:
            raise InvalidInputError(f"Input {label!r} is {given}; as a label of this loss it must be {wanted}.")
        target = inputs[label]
    elif label in taken:
        raise InvalidInputError(f"The label cannot be named {label!r}: the network computes a tensor of that name.")
    else:
        target = builder.input(label, ir.DataType.from_numpy(wanted.numpy_dtype), wanted.shape)
    value = found.build(builder.op, predicted, target)
    value.metadata_props[ROLE_KEY] = "loss"
    builder.add_output(value, name)


def remove_losses(model: ir.Model) -> ir.Model:
    """Return a copy of a model without its losses, and without the inputs that only they read.

    Args:
        model: The model; it stays as it is.

    Raises:
        InvalidNetworkError: A loss has parameters.
    """
    rest = model.clone()
    graph = rest.graph
    kept = [value for value in graph.outputs if not is_loss(value)]
    graph.outputs[:] = kept
    passes.RemoveUnusedNodesPass()(rest)
    used = {value for node in graph.all_nodes() for value in node.inputs} | set(kept)
    graph.inputs[:] = [value for value in graph.inputs if value in used or value.name in graph.initializers]
    for name, value in model.graph.initializers.items():
        if name not in graph.initializers and initializer_role(value) is not TensorRole.CONSTANT:
            raise InvalidNetworkError(f"Parameter {name!r} is part of a loss of network {graph.name or 'network'!r}.")
    return rest


def _find_prediction(graph: ir.Graph, prediction: str | None) -> ir.Value:
    outputs = {v.name or "": v for v in graph.outputs if not is_loss(v)}
    if prediction is None and len(outputs) == 1:
        return next(iter(outputs.values()))
    if prediction is None or prediction not in outputs:
        hint = near_miss(prediction, outputs) if prediction else ""
        raise InvalidInputError(
            f"The loss needs the name of the output to compare with the label; received {prediction!r}.{hint} "
            f"Accepted: {', '.join(outputs)}."
        )
    return outputs[prediction]
