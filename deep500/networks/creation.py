"""Creating the models that Deep500 brings: built framework-free, with the same first weights everywhere."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx_ir as ir
from onnxscript import GraphBuilder, nn

from deep500.core.counts import check_count
from deep500.core.errors import InvalidInputError
from deep500.core.random import check_seed, random_stream
from deep500.core.registry import Registry
from deep500.core.tensor_descriptor import numpy_dtype
from deep500.core.texts import shown
from deep500.networks.layers import InitializedParameter, ModelInput
from deep500.networks.network import Network
from deep500.networks.normalise.model import IR_VERSION, OPSET_VERSION
from deep500.networks.tensor_roles import ROLE_KEY, TensorRole

__all__ = ["MODELS", "create_model"]

#: The models, one file each in ``deep500/networks/models``.
MODELS = Registry("model", "deep500.networks.models")

#: Number of classes, and shape of one sample, of models that set none.
DEFAULT_CLASSES, DEFAULT_SHAPE = 10, (1, 28, 28)

#: What makes a model's module: ``(*, classes, shape, ...)``.
ModelFunction = Callable[..., nn.Module]


def create_model(
    model: str | ModelFunction,
    /,
    batch_size: int | str | None = None,
    *,
    classes: int | None = None,
    shape: Sequence[int | str] | None = None,
    seed: int = 0,
    dtype: str = "float32",
    **arguments: Any,
) -> Network:
    """Create one of the models that ``deep500 list models`` shows, or one of your own.

    The network has one output, ``"output"`` of shape ``[batch, classes]`` (class scores, or regression targets); where
    every position of a sample has scores of its own, the positions come after: ``[batch, classes, height, width]``,
    ``[batch, classes, sequence]``. Most models have one input, ``"input"`` of ``[batch, *shape]``; texts are int64
    numbers of tokens. First weights are drawn in float64 from one Philox stream a parameter, named for it, and rounded
    to ``dtype``; that is done when they are first asked for.

    Args:
        model: The model's name, or a function ``(*, classes, shape, ...)`` that returns an ``onnxscript.nn.Module``.
        batch_size: Number of samples a batch; by default symbolic, so that every size is accepted.
        classes: Number of outputs a sample or position; by default the model's own number, or 10.
        shape: Shape of one sample, such as ``(1, 28, 28)`` for ``[C, H, W]``; by default the model's own, or that. A
            size that the model's own shape leaves open, such as the length of a text, may be a text: its symbol.
        seed: Seed of the first weights.
        dtype: Floating dtype of the network.
        **arguments: Arguments of the model itself, such as ``depth=44``.

    Raises:
        UnknownNameError: There is no such model.
        InvalidInputError: An argument is not accepted.
    """
    name, module_function = _found(model)
    check_seed(seed)
    own_shape = _default(module_function, "shape", DEFAULT_SHAPE)
    sample_shape = _check_shape(own_shape if shape is None else shape, own_shape)
    classes = check_count(
        "classes", _default(module_function, "classes", DEFAULT_CLASSES) if classes is None else classes, least=1
    )
    if batch_size is not None and not (isinstance(batch_size, str) and batch_size):
        check_count("batch_size", batch_size, least=1)
    element = numpy_dtype(dtype)
    if element.name not in ("float16", "float32", "float64", "bfloat16"):
        raise InvalidInputError(f"A network cannot be of dtype {dtype!r}; accepted are floating dtypes.")
    _check_arguments(name, module_function, arguments)
    module = _made(name, module_function, classes, sample_shape, arguments)
    batch = "batch" if batch_size is None else batch_size
    return _network(name, module, batch, _inputs(name, module, sample_shape), element, seed)


def _network(
    name: str,
    module: nn.Module,
    batch: int | str,
    listed: Sequence[ModelInput],
    element: np.dtype[Any],
    seed: int,
) -> Network:
    """Return the network of a module."""
    graph = ir.Graph([], [], nodes=[], opset_imports={"": OPSET_VERSION}, name=name)
    builder = GraphBuilder(graph)
    for child in module.modules():
        for parameter in child.parameters(recurse=False):
            parameter.type = ir.TensorType(ir.DataType.from_numpy(element))
    inputs = [builder.input(given.name, _data_type(given.dtype, element), [batch, *given.shape]) for given in listed]
    builder.add_output(module(builder.op, *inputs), "output")
    for parameter_name, value in graph.initializers.items():
        if isinstance(value, InitializedParameter):
            value.const_value = _first_values(value, parameter_name, seed, element)
        elif not isinstance(value, nn.Parameter):  # a number that the module's code writes
            value.metadata_props.setdefault(ROLE_KEY, TensorRole.CONSTANT.value)
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


def _default(function: ModelFunction, name: str, otherwise: Any) -> Any:
    """Return a default of the model's function, or what all models have that set none."""
    parameter = inspect.signature(function).parameters.get(name)
    return otherwise if parameter is None or parameter.default is inspect.Parameter.empty else parameter.default


def _inputs(name: str, module: nn.Module, shape: tuple[int | str, ...]) -> Sequence[ModelInput]:
    """Return the inputs that a module lists, or the one that it has otherwise."""
    listed = getattr(module, "inputs", None)
    if listed is None:
        return (ModelInput("input", shape),)
    inputs = listed() if callable(listed) else listed
    if not isinstance(inputs, (tuple, list)) or not inputs or not all(isinstance(i, ModelInput) for i in inputs):
        raise InvalidInputError(
            f"The module of model {name!r} lists the inputs {shown(inputs)}; accepted is a tuple of ModelInput."
        )
    return inputs


def _data_type(dtype: str | None, element: Any) -> ir.DataType:
    return ir.DataType.from_numpy(element if dtype is None else numpy_dtype(dtype))


def _made(name: str, function: ModelFunction, classes: int, shape: tuple[int | str, ...], arguments: Any) -> nn.Module:
    module = function(classes=classes, shape=shape, **arguments)
    if not isinstance(module, nn.Module):
        raise InvalidInputError(
            f"The model {name!r} returned {shown(module)}; accepted is an onnxscript.nn.Module, whose "
            f"forward(op, x) adds the nodes."
        )
    return module


def _check_shape(shape: Any, own: Sequence[int | str]) -> tuple[int | str, ...]:
    """Return a sample's shape; a size that is symbolic in the model's own shape may be symbolic here."""
    sizes = tuple(shape) if isinstance(shape, (tuple, list)) else ()
    symbolic = [isinstance(size, str) for size in own] if len(own) == len(sizes) else [False] * len(sizes)
    if not sizes or not all(map(_is_size, sizes, symbolic)):
        texts = (
            " Its sizes may be texts, the names of symbolic sizes, where they are so there." if any(symbolic) else ""
        )
        example = tuple(own) if any(isinstance(size, str) for size in own) else "(3, 32, 32) for [C, H, W]"
        raise InvalidInputError(
            f"shape was given as {shape!r}; accepted is the shape of one sample, such as {example}.{texts}"
        )
    return sizes


def _is_size(size: Any, symbolic: bool) -> bool:
    if isinstance(size, str):
        return symbolic and size.isidentifier()
    return isinstance(size, int) and not isinstance(size, bool) and size >= 1


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


def _first_values(parameter: InitializedParameter, name: str, seed: int, element: np.dtype[Any]) -> ir.LazyTensor:
    """Return a parameter's first values: they are drawn once, when somebody reads them."""
    assert parameter.shape is not None
    sizes = [int(size) for size in parameter.shape.numpy()]
    try:
        np.empty(sizes)  # only asks for the memory: what does not fit is reported now
    except (MemoryError, ValueError, OverflowError) as error:
        raise _too_large(sizes, error) from error

    def draw() -> ir.TensorProtocol:
        try:
            values = parameter.initial(random_stream(seed, "parameter", name), sizes)
            return ir.tensor(values.astype(element, copy=False), name=name)
        except MemoryError as error:
            raise _too_large(sizes, error) from error

    return ir.LazyTensor(draw, ir.DataType.from_numpy(element), ir.Shape(sizes), cache=True, name=name)


def _too_large(sizes: list[int], error: Exception) -> InvalidInputError:
    return InvalidInputError(f"A parameter of shape {sizes} does not fit into memory: {error}")
