"""Differentiating an ONNX model into an ONNX model, by the package ``onnx-ad``; its conventions end here."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx
import onnx.helper
import onnx.numpy_helper

from deep500.core.errors import InvalidNetworkError, UnsupportedOperatorError
from deep500.core.requirement import Requirement
from deep500.core.texts import message_of

__all__ = ["REQUIREMENT", "differentiated"]

#: The library that differentiates.
REQUIREMENT = Requirement(module="onnx_ad", extra="onnxruntime", distributions=("onnx-ad",))

#: Operators whose derivative the package takes for zero, and is not.
_WRONGLY_ZERO = ("Det", "OneHot")


def differentiated(
    model: onnx.ModelProto, inputs: Sequence[str], output: str, what: str
) -> tuple[onnx.ModelProto, dict[str, str]]:
    """Return a model that also computes the gradient of the sum of an output by some inputs.

    Args:
        model: A model with known shapes.
        inputs: Names of the inputs by which to differentiate.
        output: Name of the output.
        what: How messages name the model.

    Returns:
        The model, whose outputs are followed by the gradients, and the name of the gradient by each input.

    Raises:
        InvalidNetworkError: The model cannot be differentiated.
        MissingDependencyError: The package onnx-ad is not installed.
        UnsupportedOperatorError: There is no rule for an operator between an input and the output.
    """
    REQUIREMENT.require("The gradient of a network as a graph")
    import onnx_ad
    from onnx_ad._build import UnsupportedOperator

    _refuse_wrong_rules(model, inputs, what)
    try:
        derived = onnx_ad.reverse(model, inputs=list(inputs), outputs=[output], layout="onnx")
    except UnsupportedOperator as error:
        raise UnsupportedOperatorError(f"{what} cannot be differentiated as a graph: {message_of(error)}.") from error
    except Exception as error:
        # The package reports what it does not expect by exceptions of unrelated types.
        raise InvalidNetworkError(
            f"{what} cannot be differentiated as a graph: {type(error).__name__}: {message_of(error)}"
        ) from error
    return derived, _plain(derived, model, inputs, output)


def _refuse_wrong_rules(model: onnx.ModelProto, inputs: Sequence[str], what: str) -> None:
    reached = set(inputs)
    for node in model.graph.node:
        if reached.isdisjoint(node.input):
            continue
        if node.op_type in _WRONGLY_ZERO and not node.domain:
            raise UnsupportedOperatorError(
                f"{what} cannot be differentiated as a graph: there is no rule for {node.op_type} (node {node.name!r})."
            )
        reached.update(node.output)


def _plain(derived: onnx.ModelProto, model: onnx.ModelProto, inputs: Sequence[str], output: str) -> dict[str, str]:
    """Replace the seed by ones, and take from the gradients the dimension that they have for several seeds."""
    graph = derived.graph
    known = {value.name for value in model.graph.input}
    (seed,) = (value for value in graph.input if value.name not in known)
    kept = [value for value in graph.input if value.name in known]
    count = len(model.graph.output)
    raw = [value.name for value in graph.output[count:]]
    del graph.input[:]
    graph.input.extend(kept)
    del graph.output[count:]
    _add_seed(graph, seed, output)
    axis = f"{seed.name}.axis"
    graph.initializer.append(onnx.numpy_helper.from_array(np.array([-1]), axis))
    types = {value.name: value.type for value in kept}
    taken = {*known, *(name for node in graph.node for name in node.output)}
    names = {}
    for given, name in zip(inputs, raw, strict=True):
        result = f"{given}.grad"
        while result in taken:
            result += "_"
        graph.node.append(onnx.helper.make_node("Squeeze", [name, axis], [result]))
        graph.output.append(onnx.ValueInfoProto(name=result, type=types[given]))
        names[given] = result
    return names


def _add_seed(graph: onnx.GraphProto, seed: onnx.ValueInfoProto, output: str) -> None:
    """Give every element of the output the weight one; the seed is computed before anything reads it."""
    dtype = onnx.helper.tensor_dtype_to_np_dtype(seed.type.tensor_type.elem_type)
    if len(seed.type.tensor_type.shape.dim) == 1:
        graph.initializer.append(onnx.numpy_helper.from_array(np.ones(1, dtype), seed.name))
        return
    parts = {"one": np.array([1]), "value": np.ones(1, dtype)}
    graph.initializer.append(onnx.numpy_helper.from_array(parts["one"], f"{seed.name}.one"))
    value = onnx.numpy_helper.from_array(parts["value"], "")
    nodes = [
        onnx.helper.make_node("Shape", [output], [f"{seed.name}.shape"]),
        onnx.helper.make_node("Concat", [f"{seed.name}.shape", f"{seed.name}.one"], [f"{seed.name}.sizes"], axis=0),
        onnx.helper.make_node("ConstantOfShape", [f"{seed.name}.sizes"], [seed.name], value=value),
    ]
    place = next((i + 1 for i, node in enumerate(graph.node) if output in node.output), 0)
    rest = list(graph.node[place:])
    del graph.node[place:]
    graph.node.extend([*nodes, *rest])
