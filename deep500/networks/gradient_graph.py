"""The gradient of a network as a network: operators of ONNX that compute it, whatever runs them.

The graph is differentiated into a graph, by the package ``onnx-ad``. So a runtime that only infers can train, and every
framework's own differentiation has something to be checked against.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import onnx
import onnx.helper
import onnx.numpy_helper
import onnx.shape_inference

from deep500.core.errors import InvalidInputError, InvalidNetworkError, near_miss
from deep500.core.tensor_descriptor import TensorDescriptor
from deep500.core.texts import message_of
from deep500.networks.graph_differentiation import REQUIREMENT, differentiated
from deep500.networks.network import Network
from deep500.networks.program import Program
from deep500.networks.program_model import program_model

__all__ = ["gradient_model", "gradient_network"]


def gradient_network(
    network: Network, loss: str = "loss", shapes: Mapping[str, Sequence[int]] | None = None
) -> Network:
    """Return a network that computes the outputs of another one and the gradient of a loss by its parameters.

    Its inputs are those of the other network; its outputs are those of the other one, followed by one output
    ``<parameter>.grad`` for every parameter that the loss depends on. It is in the form (training or evaluation) that
    the other one is in now, and for the shapes that are given.

    Args:
        network: The network.
        loss: Name of a scalar output.
        shapes: Shape of every input whose declared shape has symbolic sizes.

    Raises:
        InvalidInputError: A shape is missing, or contradicts the network.
        InvalidNetworkError: There is no such loss, or what was computed is not valid.
        MissingDependencyError: The package onnx-ad is not installed.
        UnsupportedOperatorError: There is no rule for an operator between a parameter and the loss.
    """
    program = network.program(frozenset(network.inputs))
    if loss not in program.outputs:
        raise InvalidInputError(
            f"The network has no output named {loss!r}.{near_miss(loss, program.outputs)} "
            f"Its outputs: {', '.join(program.outputs)}."
        )
    model = gradient_model(network, program, loss, _static_shapes(program, shapes or {}))
    kept = {value.name for value in model.graph.input if value.name not in program.inputs}
    values = dict(zip(kept, network.fetch_tensors(list(kept))))
    declared = [value for value in model.graph.input if value.name not in kept]
    del model.graph.input[:]
    model.graph.input.extend(declared)
    model.graph.initializer.extend(onnx.numpy_helper.from_array(value, name) for name, value in values.items())
    return Network.load(model).as_declared()


def gradient_model(
    network: Network, program: Program, loss: str, shapes: Mapping[str, Sequence[int]]
) -> onnx.ModelProto:
    """Return a model that computes a program's outputs and the gradient of one of them.

    Args:
        network: The network that the program is of.
        program: The program.
        loss: Name of the scalar output that is differentiated.
        shapes: Shape of every input of the program.

    Returns:
        A model whose inputs are those of the program, the parameters and the states, and whose outputs are those of
        the program, the next values of the states, and ``<parameter>.grad`` for every parameter that the loss needs.

    Raises:
        InvalidNetworkError: The model cannot be differentiated.
        MissingDependencyError: The package onnx-ad is not installed.
        UnsupportedOperatorError: There is no rule for an operator between a parameter and the loss.
    """
    REQUIREMENT.require("The gradient of a network as a graph")
    constants = dict(zip(program.constants, network.fetch_tensors(list(program.constants))))
    model = program_model(network, program, stored=constants, shapes=shapes)
    _separate_training(model)
    model = _inferred(model)
    reached = _reached(model, program.parameters, loss)
    if not reached:
        return model
    derived, _ = differentiated(model, reached, loss, f"Network {network.name!r}")
    return derived


def _static_shapes(program: Program, given: Mapping[str, Sequence[int]]) -> dict[str, tuple[int, ...]]:
    shapes = {}
    for name, descriptor in zip(program.inputs, program.input_types):
        if not isinstance(descriptor, TensorDescriptor):
            raise InvalidInputError(
                f"Input {name!r} is a {descriptor}; accepted are networks whose inputs are tensors."
            )
        shape = given.get(name, descriptor.shape)
        if shape is None or not all(isinstance(size, int) for size in shape):
            raise InvalidInputError(
                f"The shape of input {name!r} ({descriptor}) is not known. Give it: shapes={{{name!r}: (1, 8)}}."
            )
        sizes = tuple(size for size in shape if isinstance(size, int))
        if not descriptor.accepts_shape(sizes):
            raise InvalidInputError(f"The shape of input {name!r} was given as {sizes}; accepted is {descriptor}.")
        shapes[name] = sizes
    return shapes


def _inferred(model: onnx.ModelProto) -> onnx.ModelProto:
    try:
        return onnx.shape_inference.infer_shapes(model, data_prop=True)
    except Exception as error:
        # Shape inference reports contradictions by exceptions of several unrelated types.
        raise InvalidInputError(f"The shapes of the inputs contradict the network: {message_of(error)}") from error


def _reached(model: onnx.ModelProto, parameters: Sequence[str], loss: str) -> list[str]:
    """Return the parameters that the loss depends on."""
    makers = {name: node for node in model.graph.node for name in node.output}
    found, open_names = set(), [loss]
    while open_names:
        name = open_names.pop()
        if name in found:
            continue
        found.add(name)
        if name in makers:
            node = makers[name]
            open_names += [read for read in (*node.input, *_captured(node)) if read]
    return [name for name in parameters if name in found]


def _captured(node: onnx.NodeProto) -> list[str]:
    graphs = [attribute.g for attribute in node.attribute if attribute.type == onnx.AttributeProto.GRAPH]
    inner = [child for graph in graphs for child in graph.node]
    names = [name for child in inner for name in (*child.input, *_captured(child))]
    return [*names, *(value.name for graph in graphs for value in graph.output)]


def _separate_training(model: onnx.ModelProto) -> None:
    """Write training-mode operators in terms of others, which have rules."""
    nodes: list[onnx.NodeProto] = []
    for node in model.graph.node:
        attributes = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
        if node.op_type == "BatchNormalization" and attributes.get("training_mode"):
            nodes += _batch_normalization(model, node, attributes)
        elif node.op_type == "Dropout" and len(node.input) > 2 and node.input[2]:
            nodes += _dropout(node)
        else:
            nodes.append(node)
    del model.graph.node[:]
    model.graph.node.extend(nodes)


def _dropout(node: onnx.NodeProto) -> list[onnx.NodeProto]:
    """``y = x * m``, where the mask m does not depend on x. Source: ONNX Dropout-22."""
    x, prefix = node.input[0], node.output[0]
    mask = node.output[1] if len(node.output) > 1 else ""
    make = onnx.helper.make_node
    return [
        make("Shape", [x], [f"{prefix}.shape"]),
        make(
            "ConstantOfShape", [f"{prefix}.shape"], [f"{prefix}.ones"], value=onnx.helper.make_tensor("", 1, [1], [1])
        ),
        make("CastLike", [f"{prefix}.ones", x], [f"{prefix}.like"]),
        _renamed(node, [f"{prefix}.like", *node.input[1:]], [f"{prefix}.kept", *([mask] if mask else [])]),
        make("Mul", [x, f"{prefix}.kept"], [prefix]),
    ]


def _renamed(node: onnx.NodeProto, inputs: Sequence[str], outputs: Sequence[str]) -> onnx.NodeProto:
    copy = onnx.NodeProto()
    copy.CopyFrom(node)
    copy.input[:] = inputs
    copy.output[:] = outputs
    return copy


def _batch_normalization(
    model: onnx.ModelProto, node: onnx.NodeProto, attributes: Mapping[str, float]
) -> list[onnx.NodeProto]:
    """Normalisation by the statistics of the batch, and the running statistics. Source: ONNX BatchNormalization-15."""
    x, scale, bias, mean, variance = node.input
    y = node.output[0]
    epsilon, momentum = float(attributes.get("epsilon", 1e-5)), float(attributes.get("momentum", 0.9))
    rank = _rank(model, x)
    constants = {
        "axes": np.array([axis for axis in range(rank) if axis != 1], np.int64),
        "shape": np.array([1, -1] + [1] * (rank - 2), np.int64),
        "epsilon": np.float32(epsilon),
        "keep": np.float32(momentum),
        "take": np.float32(1) - np.float32(momentum),
    }
    model.graph.initializer.extend(
        onnx.numpy_helper.from_array(np.asarray(value), f"{y}.{name}") for name, value in constants.items()
    )
    steps = [
        ("ReduceMean", [x, "axes"], "mean"),
        ("Sub", [x, ".mean"], "centred"),
        ("Mul", [".centred", ".centred"], "squares"),
        ("ReduceMean", [".squares", "axes"], "variance"),
        ("CastLike", ["epsilon", ".variance"], "epsilon_like"),
        ("Add", [".variance", ".epsilon_like"], "shifted"),
        ("Sqrt", [".shifted"], "deviation"),
        ("Div", [".centred", ".deviation"], "normalised"),
        ("Reshape", [scale, "shape"], "scale_shaped"),
        ("Reshape", [bias, "shape"], "bias_shaped"),
        ("CastLike", [".scale_shaped", x], "scale_like"),
        ("CastLike", [".bias_shaped", x], "bias_like"),
        ("Mul", [".normalised", ".scale_like"], "scaled"),
        ("Add", [".scaled", ".bias_like"], ""),
    ]
    for index, (running, batch) in enumerate(((mean, ".mean"), (variance, ".variance")), start=1):
        if len(node.output) <= index or not node.output[index]:
            continue
        tag = f"running{index}"
        steps += [
            ("Squeeze", [batch, "axes"], f"{tag}.flat"),
            ("CastLike", [f".{tag}.flat", running], f"{tag}.batch"),
            ("CastLike", ["keep", running], f"{tag}.keep"),
            ("CastLike", ["take", running], f"{tag}.take"),
            ("Mul", [running, f".{tag}.keep"], f"{tag}.kept"),
            ("Mul", [f".{tag}.batch", f".{tag}.take"], f"{tag}.taken"),
            ("Add", [f".{tag}.kept", f".{tag}.taken"], f"={node.output[index]}"),
        ]
    return [_step(y, set(constants), *step) for step in steps]


def _step(prefix: str, constants: set[str], operator: str, inputs: Sequence[str], output: str) -> onnx.NodeProto:
    """Return a node; names that begin with a dot, and those of constants, belong to the operator that is replaced."""
    read = [
        f"{prefix}{name}" if name[0] == "." else f"{prefix}.{name}" if name in constants else name for name in inputs
    ]
    written = output[1:] if output.startswith("=") else f"{prefix}.{output}" if output else prefix
    return onnx.helper.make_node(operator, read, [written])


def _rank(model: onnx.ModelProto, name: str) -> int:
    inferred = onnx.shape_inference.infer_shapes(model)
    for value in (*inferred.graph.input, *inferred.graph.value_info, *inferred.graph.output):
        if value.name == name and value.type.tensor_type.HasField("shape"):
            return len(value.type.tensor_type.shape.dim)
    raise InvalidNetworkError(f"The rank of {name!r}, which a BatchNormalization reads, is not known.")
