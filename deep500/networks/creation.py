"""Creating the models that Deep500 brings: built framework-free, with the same first weights everywhere."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx_ir as ir
from numpy.typing import NDArray
from onnxscript import GraphBuilder, nn

from deep500.core.counts import check_count
from deep500.core.errors import InvalidInputError
from deep500.core.random import check_seed, random_stream
from deep500.core.registry import Registry
from deep500.core.tensor_descriptor import numpy_dtype
from deep500.core.texts import shown
from deep500.networks.layers import InitializedParameter
from deep500.networks.network import Network
from deep500.networks.normalise.model import IR_VERSION, OPSET_VERSION

__all__ = ["MODELS", "create_model"]

#: The models, one file each in ``deep500/networks/models``.
MODELS = Registry("model", "deep500.networks.models")

#: What makes a model's module: ``(*, classes, shape, ...)``.
ModelFunction = Callable[..., nn.Module]


def create_model(
    model: str | ModelFunction,
    /,
    batch_size: int | str | None = None,
    *,
    classes: int = 10,
    shape: Sequence[int] = (1, 28, 28),
    seed: int = 0,
    dtype: str = "float32",
    **arguments: Any,
) -> Network:
    """Create one of the models that ``deep500 list models`` shows, or one of your own.

    The network has one input, ``"input"`` of shape ``[batch, *shape]``, and one output, ``"output"`` of shape
    ``[batch, classes]`` (class scores, or regression targets). First weights are drawn in float64 from one Philox
    stream a parameter, named for it, and rounded to ``dtype``.

    Args:
        model: The model's name, or a function ``(*, classes, shape, ...)`` that returns an ``onnxscript.nn.Module``.
        batch_size: Number of samples a batch; by default symbolic, so that every size is accepted.
        classes: Number of outputs a sample.
        shape: Shape of one sample, such as ``(1, 28, 28)`` for ``[C, H, W]``.
        seed: Seed of the first weights.
        dtype: Floating dtype of the network.
        **arguments: Arguments of the model itself, such as ``depth=44``.

    Raises:
        UnknownNameError: There is no such model.
        InvalidInputError: An argument is not accepted.
    """
    name, module_function = _found(model)
    check_seed(seed)
    sample_shape = _check_shape(shape)
    check_count("classes", classes, least=1)
    if batch_size is not None and not (isinstance(batch_size, str) and batch_size):
        check_count("batch_size", batch_size, least=1)
    element = numpy_dtype(dtype)
    if element.name not in ("float16", "float32", "float64", "bfloat16"):
        raise InvalidInputError(f"A network cannot be of dtype {dtype!r}; accepted are floating dtypes.")
    _check_arguments(name, module_function, arguments)
    module = _made(name, module_function, classes, sample_shape, arguments)

    graph = ir.Graph([], [], nodes=[], opset_imports={"": OPSET_VERSION}, name=name)
    builder = GraphBuilder(graph)
    for child in module.modules():
        for parameter in child.parameters(recurse=False):
            parameter.type = ir.TensorType(ir.DataType.from_numpy(element))
    input_shape = ["batch" if batch_size is None else batch_size, *sample_shape]
    x = builder.input("input", ir.DataType.from_numpy(element), input_shape)
    builder.add_output(module(builder.op, x), "output")
    for parameter_name, value in graph.initializers.items():
        if isinstance(value, InitializedParameter) and value.shape is not None:
            sizes = [int(d) for d in value.shape.numpy()]
            values = _draw(value, random_stream(seed, "parameter", parameter_name), sizes)
            value.const_value = ir.tensor(values.astype(element), name=parameter_name)
    return Network(ir.Model(graph, ir_version=IR_VERSION, producer_name="deep500"))


def _found(model: Any) -> tuple[str, ModelFunction]:
    """Return the name of a model, and the function that makes its module."""
    if isinstance(model, str):
        return model, MODELS.get(model)
    if not callable(model) or isinstance(model, nn.Module):
        raise InvalidInputError(
            f"create_model was given {shown(model)}; accepted are a model's name (see: deep500 list models) and a "
            f"function (*, classes, shape) that returns an onnxscript.nn.Module."
        )
    return getattr(model, "__name__", type(model).__name__), model


def _made(name: str, function: ModelFunction, classes: int, shape: tuple[int, ...], arguments: Any) -> nn.Module:
    module = function(classes=classes, shape=shape, **arguments)
    if not isinstance(module, nn.Module):
        raise InvalidInputError(
            f"The model {name!r} returned {shown(module)}; accepted is an onnxscript.nn.Module, whose "
            f"forward(op, x) adds the nodes."
        )
    return module


def _check_shape(shape: Any) -> tuple[int, ...]:
    sizes = tuple(shape) if isinstance(shape, (tuple, list)) else None
    if not sizes or any(isinstance(s, bool) or not isinstance(s, int) or s < 1 for s in sizes):
        raise InvalidInputError(
            f"shape was given as {shape!r}; accepted is the shape of one sample, such as (3, 32, 32) for [C, H, W]."
        )
    return sizes


def _check_arguments(name: str, function: Any, arguments: dict[str, Any]) -> None:
    parameters = inspect.signature(function).parameters.values()
    if any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in parameters):
        return
    accepted = [parameter.name for parameter in parameters if parameter.name not in ("classes", "shape")]
    unknown = sorted(set(arguments) - set(accepted))
    if unknown:
        raise InvalidInputError(
            f"The model {name!r} has no argument {', '.join(map(repr, unknown))}. "
            f"Accepted: {', '.join(accepted) or 'none'}."
        )


def _draw(parameter: InitializedParameter, stream: np.random.Generator, sizes: list[int]) -> NDArray[Any]:
    try:
        return parameter.initial(stream, sizes)
    except (MemoryError, ValueError, OverflowError) as error:
        raise InvalidInputError(f"A parameter of shape {sizes} does not fit into memory: {error}") from error
