"""Keras models as networks, through tf2onnx."""

from __future__ import annotations

import contextlib
import hashlib
import inspect
import logging
import re
import warnings
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import keras
import numpy as np
import onnx
import onnx_ir as ir
import tensorflow as tf

from deep500.core.errors import InvalidNetworkError
from deep500.core.requirement import Requirement
from deep500.core.texts import message_of, shown
from deep500.frameworks.tensorflow._keras_layers import exportable_layers, normalising_layers
from deep500.frameworks.tensorflow._tf2onnx_models import mend
from deep500.frameworks.tensorflow._tf2onnx_operations import HANDLERS
from deep500.networks.importing import renamed
from deep500.networks.loading import load_exported
from deep500.networks.network import Network
from deep500.networks.tensor_roles import ROLE_KEY, TensorRole

__all__ = ["import_model"]

#: Converts graphs of TensorFlow, of which Keras' models are.
_TF2ONNX = Requirement(module="tf2onnx", extra="keras-import", distributions=("tf2onnx",))

#: Opset that the conversion aims at, the newest that tf2onnx knows.
_OPSET = 18

#: Symbol of the sizes that the model leaves open in its first dimension.
_BATCH = "batch"

#: What stands for the weights while the model is converted, by their position.
_WEIGHT = "deep500_weight_{}"


def import_model(model: Any, example: Any = None, *, names: Mapping[str, str] | None = None) -> Network:
    """Return what a Keras model computes in inference as a network.

    The weights keep their names (``weight.path``) and roles: those that Keras trains are parameters, the statistics of
    BatchNormalization are states, all others constants; a BatchNormalization that is frozen (``trainable=False``) stays
    as it is in inference, as it does in Keras. Layers that do nothing in inference (Dropout) are left out, and a
    BatchNormalization that is given a mask is trained as without.

    Args:
        model: A built model of Keras 3 on TensorFlow.
        example: Inputs of the model, for one whose inputs are not declared: a tensor or array, or a list of them.
        names: New names of inputs and outputs, by those that the network would have.

    Raises:
        InvalidNetworkError: The model cannot be converted, or its inputs are not known.
        MissingDependencyError: tf2onnx is not installed.
    """
    if not isinstance(model, keras.Model):
        raise InvalidNetworkError(f"A model was given as {shown(model)}; accepted is a keras.Model.")
    if keras.backend.backend() != "tensorflow":
        raise InvalidNetworkError(
            f"Keras runs on {keras.backend.backend()!r}; models are imported on 'tensorflow'. Set KERAS_BACKEND."
        )
    _TF2ONNX.require("Importing a Keras model")
    inputs = _inputs(model, example)
    trained, others = list(model.trainable_variables), list(model.non_trainable_variables)
    function = _with_weights(model, inputs, len(trained))
    proto = _converted(model, function, inputs, [*trained, *others])
    converted = ir.from_proto(proto)
    _store_weights(converted, model, trained, others)
    _name(converted, model, inputs, names)
    network = Network(load_exported(converted, f"The export of {model.name}")).folded()
    _name_constants(network.model.graph, {weight.path for weight in model.weights})
    return network


def _inputs(model: Any, example: Any) -> list[Any]:
    """Return name, dtype and shape of the inputs."""
    if example is not None:
        given = list(example) if isinstance(example, (list, tuple)) else [example]
        arrays = [np.asarray(value) for value in given]
        if not model.built:
            model(given[0] if len(given) == 1 else given)
        names = ["input"] if len(given) == 1 else [f"input_{index}" for index in range(len(given))]
        return [tf.TensorSpec([None, *a.shape[1:]], a.dtype, name=name) for name, a in zip(names, arrays)]
    try:
        declared = list(model.inputs)
    except (AttributeError, ValueError, TypeError):  # of a model whose layers are not connected yet
        declared = []
    if not declared:
        raise InvalidNetworkError(
            f"The inputs of the Keras model {model.name!r} are not declared. Give an example of them: "
            f"Network.from_keras(model, example)."
        )
    return [tf.TensorSpec(x.shape, x.dtype, name=re.sub(r"[^\w.]", "_", x.name)) for x in declared]


def _with_weights(model: Any, inputs: list[Any], trained: int) -> Callable[..., Any]:
    """Return the model as a function of its inputs and its weights, so that no weight is folded into another tensor."""
    count = len(inputs)
    settings = {"training": False} if "training" in inspect.signature(model.call).parameters else {}

    def call(*tensors: Any) -> Any:
        given, weights = list(tensors[:count]), list(tensors[count:])
        argument = given[0] if count == 1 else given
        outputs, _ = model.stateless_call(weights[:trained], weights[trained:], argument, **settings)
        return outputs

    return call


def _converted(model: Any, function: Any, inputs: list[Any], weights: list[Any]) -> onnx.ModelProto:
    import tf2onnx

    standing = [tf.TensorSpec(w.shape, w.dtype, name=_WEIGHT.format(index)) for index, w in enumerate(weights)]
    signature = [*inputs, *standing]
    origin = f"The Keras model {model.name!r}"
    try:
        with exportable_layers(model), _quiet():
            traced = tf.function(function, input_signature=signature, autograph=False)
            captures = traced.get_concrete_function(*signature).graph.captures
            proto, _ = tf2onnx.convert.from_function(
                traced, input_signature=signature, opset=_OPSET, custom_op_handlers=HANDLERS
            )
    except InvalidNetworkError:
        raise
    except Exception as error:
        # Keras, TensorFlow and tf2onnx report what they cannot convert by exceptions of unrelated types.
        raise InvalidNetworkError(f"{origin} cannot be converted to ONNX: {message_of(error)}") from error
    known = {f"{given.name}:0" for given in signature} | {given.name for given in signature}
    return mend(proto, origin, known, {inside.name: outside for outside, inside in captures})


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Keep tf2onnx from talking."""
    loggers = [logging.getLogger(name) for name in ("tf2onnx", "tensorflow")]
    levels = [logger.level for logger in loggers]
    try:
        for logger in loggers:
            logger.setLevel(logging.CRITICAL)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        for logger, level in zip(loggers, levels):
            logger.setLevel(level)


def _store_weights(converted: ir.Model, model: Any, trained: list[Any], others: list[Any]) -> None:
    """Put the weights in the place of the inputs that stood for them."""
    graph = converted.graph
    layers = normalising_layers(model)
    statistics = {id(variable) for layer in layers for variable in (layer.moving_mean, layer.moving_variance)}
    for value in graph.initializers.values():
        value.metadata_props[ROLE_KEY] = TensorRole.CONSTANT.value
    standing = {value.name: value for value in graph.inputs}
    for index, variable in enumerate([*trained, *others]):
        name = _WEIGHT.format(index)
        if name not in standing:  # nothing reads it
            continue
        value = standing[name]
        graph.inputs.remove(value)
        role = TensorRole.PARAMETER if index < len(trained) else TensorRole.CONSTANT
        role = TensorRole.STATE if id(variable) in statistics else role
        if not value.uses():
            continue
        value.name = variable.path
        value.const_value = ir.tensor(np.asarray(variable), name=variable.path)
        value.metadata_props[ROLE_KEY] = role.value
        graph.register_initializer(value)
    for layer in layers:
        mean = graph.initializers.get(layer.moving_mean.path)
        for node, index in () if mean is None else mean.uses():
            if node.op_type == "BatchNormalization" and index == 3:
                # TensorFlow's operation has none: Keras' own arithmetic updates the statistics.
                node.attributes["momentum"] = ir.AttrFloat32("momentum", float(layer.momentum))


def _name_constants(graph: ir.Graph, weights: set[str]) -> None:
    """Name constants for what they are: TensorFlow counts names up, so that two conversions would give two networks."""
    for old, value in list(graph.initializers.items()):
        tensor = value.const_value
        if old in weights or tensor is None:
            continue
        content = f"{tensor.dtype.name}{list(tensor.shape.numpy())}".encode() + tensor.tobytes()
        name = f"constant_{hashlib.sha256(content).hexdigest()[:16]}"
        if name in graph.initializers:
            ir.convenience.replace_all_uses_with(value, graph.initializers[name], replace_graph_outputs=True)
            del graph.initializers[old]
        else:
            value.name = name


def _name(converted: ir.Model, model: Any, inputs: list[Any], names: Mapping[str, str] | None) -> None:
    graph = converted.graph
    graph.name = model.name
    outputs = list(graph.outputs)
    plain = ["output"] if len(outputs) == 1 else [f"output_{index}" for index in range(len(outputs))]
    chosen = renamed([*(v.name or "" for v in graph.inputs), *plain], dict(names or {}))
    for value in graph.inputs:
        value.name = chosen[value.name or ""]
        if value.shape is not None and value.shape.rank() and not isinstance(value.shape[0], int):
            value.shape = ir.Shape([_BATCH, *value.shape[1:]])
    for value, name in zip(outputs, plain):
        value.name = chosen[name]
        if value.shape is not None and value.shape.rank() and not isinstance(value.shape[0], int):
            value.shape = ir.Shape([_BATCH, *value.shape[1:]])
