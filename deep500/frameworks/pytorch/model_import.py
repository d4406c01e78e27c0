"""PyTorch modules as networks, through ``torch.export``."""

from __future__ import annotations

import contextlib
import inspect
import logging
import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import onnx_ir as ir
import torch
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel

from deep500.core.errors import InvalidNetworkError
from deep500.core.texts import message_of, shown
from deep500.networks.importing import renamed
from deep500.networks.loading import load_exported
from deep500.networks.network import Network
from deep500.networks.normalise.model import OPSET_VERSION
from deep500.networks.tensor_roles import ROLE_KEY, TensorRole

__all__ = ["import_model"]

#: Symbol of the sizes that may differ from those of the example.
_BATCH = "batch"

#: Modules whose dropout is one operator, which training needs and evaluation passes.
_DROPOUT = nn.Dropout

#: Writes a warning for every package that is not installed and that it could know operators of.
_LOGGER = "torch.onnx._internal.exporter._registration"


def import_model(
    module: nn.Module, example: Any, *, dynamic_batch: bool = True, names: Mapping[str, str] | None = None
) -> Network:
    """Return what a module computes as a network.

    Parameters keep their names (``module.named_parameters()``) and are trained, except for those with
    ``requires_grad=False``; the running statistics of BatchNormalization are states; other buffers are constants.
    ``nn.Dropout`` is kept for training; dropout that a module applies by itself while it trains is not.

    Args:
        module: The module; its training flags are left as they were.
        example: A tensor or array, a tuple of them for several arguments, or a dictionary of them by argument.
        dynamic_batch: Whether the first dimension of inputs that have one in common may have any size.
        names: New names of inputs (the arguments of ``forward``) and outputs (``output``, or ``output_0`` and so on).

    Raises:
        InvalidNetworkError: The module cannot be exported, fixes its batch size, or was given no such example.
    """
    if not isinstance(module, nn.Module):
        raise InvalidNetworkError(f"A module was given as {shown(module)}; accepted is a torch.nn.Module.")
    positional, named = _arguments(example)
    if dynamic_batch:
        positional, named = _of_several(positional, named)
    with _exporting(module):
        model = _exported(module, positional, named, dynamic_batch=dynamic_batch)
    _share_tied(model, module)
    _set_roles(model, module)
    _name(model, module, positional, named, dynamic_batch=dynamic_batch, names=names)
    return Network(load_exported(model, f"The export of {type(module).__name__}")).folded()


def _arguments(example: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the example as positional and named arguments, arrays as tensors."""

    def taken(value: Any) -> Any:
        if isinstance(value, (list, tuple)):
            return type(value)(taken(entry) for entry in value)
        return torch.from_numpy(np.array(value)) if isinstance(value, np.ndarray) else value

    positional: tuple[Any, ...]
    if isinstance(example, Mapping):
        positional, named = (), {str(name): taken(value) for name, value in example.items()}
    elif isinstance(example, (list, tuple)):
        positional, named = tuple(taken(value) for value in example), {}
    else:
        positional, named = (taken(example),), {}
    if not any(isinstance(value, torch.Tensor) for value in (*positional, *named.values())):
        raise InvalidNetworkError(
            f"The example was given as {shown(example)}; accepted are a tensor or array, a tuple of them, and a "
            f"dictionary of them by argument."
        )
    return positional, named


def _batch_size(values: Sequence[Any]) -> int | None:
    """Return the size of the first dimension of the first tensor that has one."""
    return next((len(v) for v in values if isinstance(v, torch.Tensor) and v.ndim), None)


def _of_several(positional: tuple[Any, ...], named: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return an example with a batch of two in the place of a batch of one, which ``torch.export`` takes for fixed."""
    if _batch_size((*positional, *named.values())) != 1:
        return positional, named

    def doubled(value: Any) -> Any:
        is_batch = isinstance(value, torch.Tensor) and value.ndim and len(value) == 1
        return torch.cat([value, value]) if is_batch else value

    return tuple(doubled(v) for v in positional), {name: doubled(v) for name, v in named.items()}


@contextlib.contextmanager
def _exporting(module: nn.Module) -> Iterator[None]:
    """Put a module in evaluation mode, but for its dropout, and keep the exporter from talking about itself."""
    before = {part: part.training for part in module.modules()}
    logger = logging.getLogger(_LOGGER)
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        for part in before:
            part.training = isinstance(part, _DROPOUT) and part.p > 0
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(level)
        for part, training in before.items():
            part.training = training


def _exported(
    module: nn.Module, positional: tuple[Any, ...], named: dict[str, Any], *, dynamic_batch: bool
) -> ir.Model:
    size = _batch_size((*positional, *named.values()))

    def free(value: Any) -> Any:
        if isinstance(value, (list, tuple)):
            return type(value)(free(entry) for entry in value)
        is_batch = isinstance(value, torch.Tensor) and value.ndim and len(value) == size
        return {0: torch.export.Dim.AUTO} if is_batch else None

    shapes: Any = None
    try:
        if dynamic_batch and size is not None:
            shapes = _by_argument(module, positional, named, free)
        # Fused kernels of attention lay out their results in other ways than what the export replaces them by, and a
        # reshape after them that needed no copy then would.
        with sdpa_kernel(SDPBackend.MATH):
            program = torch.onnx.export(
                module,
                positional,
                kwargs=named or None,
                dynamic_shapes=shapes,
                dynamo=True,
                opset_version=OPSET_VERSION,  # from this one on, attention is one operator
                optimize=False,  # it would compute new tensors from parameters, which would lose their names
                verbose=False,
            )
    except Exception as error:
        # The exporter reports what it cannot express by exceptions of many unrelated types.
        cause: BaseException = error
        while cause.__cause__ is not None:
            cause = cause.__cause__
        raise InvalidNetworkError(
            f"{type(module).__name__} cannot be exported to ONNX: {message_of(cause).rstrip('.')}. Check that "
            f"torch.export.export(module, example) works" + (", and try dynamic_batch=False." if dynamic_batch else ".")
        ) from error
    assert program is not None
    ranges = getattr(program.exported_program, "range_constraints", {})
    fixed = {str(symbol): int(span.lower) for symbol, span in ranges.items() if span.lower == span.upper}
    if fixed:
        _fix_sizes(program.model.graph, fixed)
    return program.model


def _fix_sizes(graph: ir.Graph, fixed: Mapping[str, int]) -> None:
    """Write down sizes of which the export found that they can only be one number."""
    for value in (*graph.inputs, *(v for node in graph.all_nodes() for v in node.outputs)):
        if value.shape is not None:
            sizes = [d if isinstance(d, int) else fixed.get(d.value or "", d) for d in value.shape]
            value.shape = ir.Shape(sizes)


def _by_argument(module: nn.Module, positional: tuple[Any, ...], named: dict[str, Any], of: Any) -> dict[str, Any]:
    bound = inspect.signature(module.forward).bind(*positional, **named)
    return {
        name: {key: of(entry) for key, entry in value.items()} if isinstance(value, dict) else of(value)
        for name, value in bound.arguments.items()
    }


def _share_tied(model: ir.Model, module: nn.Module) -> None:
    """Let all uses of a parameter that has several names read one initializer: it is one tensor, trained once."""
    first: dict[int, str] = {}
    stored = model.graph.initializers
    for name, parameter in module.named_parameters(remove_duplicate=False):
        kept = first.setdefault(id(parameter), name)
        if kept == name or name not in stored:
            continue
        if kept not in stored:
            value = stored.pop(name)
            value.name = kept
            stored.add(value)
            continue
        ir.convenience.replace_all_uses_with(stored.pop(name), stored[kept], replace_graph_outputs=True)


def _set_roles(model: ir.Model, module: nn.Module) -> None:
    roles = {
        name: TensorRole.PARAMETER if parameter.requires_grad else TensorRole.CONSTANT
        for name, parameter in module.named_parameters()
    }
    for prefix, part in module.named_modules():
        if isinstance(part, nn.modules.batchnorm._NormBase):
            roles.update(dict.fromkeys((f"{prefix}.{n}".strip(".") for n, _ in part.named_buffers()), TensorRole.STATE))
    for name, value in model.graph.initializers.items():
        value.metadata_props[ROLE_KEY] = roles.get(name, TensorRole.CONSTANT).value


def _name(
    model: ir.Model,
    module: nn.Module,
    positional: tuple[Any, ...],
    named: dict[str, Any],
    *,
    dynamic_batch: bool,
    names: Mapping[str, str] | None,
) -> None:
    """Name inputs, outputs and symbolic sizes."""
    graph = model.graph
    graph.name = type(module).__name__
    _unshare_outputs(graph)
    outputs = list(graph.outputs)
    taken = {value.name for value in (*graph.inputs, *graph.initializers.values())}
    plain = ["output"] if len(outputs) == 1 else [f"output_{index}" for index in range(len(outputs))]
    plain = [f"{name}_" if name in taken else name for name in plain]
    chosen = renamed([*(v.name or "" for v in graph.inputs), *plain], dict(names or {}))
    for value in graph.inputs:
        value.name = chosen[value.name or ""]
    wanted = set(chosen.values())
    for node in graph.all_nodes():  # inner tensors give way
        for value in node.outputs:
            if value.name in wanted:
                value.name = f"{value.name}_inner"
    for value, name in zip(outputs, plain):
        value.name = chosen[name]
    if dynamic_batch:
        _name_sizes(graph, module, _batch_size((*positional, *named.values())))


def _unshare_outputs(graph: ir.Graph) -> None:
    """Give each output a tensor of its own: an input or a stored tensor that is returned as it is keeps its name."""
    seen: set[ir.Value] = set()
    for index, value in enumerate(list(graph.outputs)):
        if value in seen or value.producer() is None:
            copy = ir.Value(name=f"{value.name}_returned_{index}", shape=value.shape, type=value.type)
            graph.append(ir.Node("", "Identity", [value], outputs=[copy]))
            graph.outputs[index] = copy
        seen.add(graph.outputs[index])


def _name_sizes(graph: ir.Graph, module: nn.Module, size: int | None) -> None:
    symbols = [value.shape[0] for value in graph.inputs if value.shape]
    free = [symbol.value for symbol in symbols if isinstance(symbol, ir.SymbolicDim) and symbol.value]
    if size is not None and not free:
        raise InvalidNetworkError(
            f"{type(module).__name__} fixes its batch size, so it cannot have a dynamic one. Give dynamic_batch=False."
        )
    renamings = {old: _BATCH if index == 0 else f"{_BATCH}_{index}" for index, old in enumerate(dict.fromkeys(free))}
    for value in (*graph.inputs, *(v for node in graph.all_nodes() for v in node.outputs)):
        if value.shape is not None:
            sizes = [d if isinstance(d, int) else renamings.get(d.value or "", d) for d in value.shape]
            value.shape = ir.Shape(sizes)
