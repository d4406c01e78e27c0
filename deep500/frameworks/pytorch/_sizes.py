"""Integers that are known while a graph is recorded: constants, sizes of tensors, and what is computed from them.

Networks compute shapes by operators of their own (Shape, Gather, Concat, ...). Followed here, a shape reaches Reshape
or Expand as numbers and sizes instead of as a tensor whose values only a run could tell: nothing is copied from the
device for it, and ``torch.compile`` sees one graph.
"""

from __future__ import annotations

import dataclasses
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import fx

from deep500.core.tensor_descriptor import STRING
from deep500.frameworks.pytorch._arrays import to_array, to_tensor
from deep500.networks.operator_node import OperatorNode

__all__ = ["Integers", "as_integers", "follow", "integers_of", "known_integers", "with_constants"]

#: Longest tensor that is followed; shapes are short.
_MOST = 64

#: Operators that occur between constants and the parameters that say how to arrange something.
_SHAPE_ARITHMETIC = frozenset(
    {
        "Abs", "Add", "And", "Cast", "Ceil", "Concat", "ConstantOfShape", "Div", "Equal", "Expand", "Floor", "Gather",
        "Greater", "Identity", "Less", "Max", "Min", "Mod", "Mul", "Neg", "Not", "Or", "Range", "ReduceMax",
        "ReduceMin", "ReduceProd", "ReduceSum", "Reshape", "ScatterElements", "ScatterND", "Slice", "Split", "Squeeze",
        "Sub", "Tile", "Transpose", "Unsqueeze", "Where",
    }
)  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Integers:
    """What is known of a tensor of integers.

    Attributes:
        values: Its elements: numbers, or proxies for sizes of tensors.
        is_scalar: Whether it is of rank 0 instead of 1.
    """

    values: tuple[Any, ...]
    is_scalar: bool = False

    @property
    def is_constant(self) -> bool:
        """Whether all elements are numbers."""
        return all(isinstance(value, int) for value in self.values)


def known_integers(node: OperatorNode, inputs: Sequence[Any]) -> list[Integers | None]:
    """Return what is known of every input of a node."""
    return [_known(node, index, value) for index, value in enumerate(inputs)]


def _known(node: OperatorNode, index: int, value: Any) -> Integers | None:
    constant = node.constants.get(index)
    if constant is None and isinstance(value, fx.Proxy):
        found: Integers | None = getattr(value.tracer, "integers", {}).get(value.node)
        if found is not None:
            return found
        constant = _held(value)
    if constant is None or constant.dtype not in (np.int32, np.int64) or constant.ndim > 1 or constant.size > _MOST:
        return None
    return Integers(tuple(int(v) for v in constant.reshape(-1)), constant.ndim == 0)


def _held(value: fx.Proxy) -> NDArray[Any] | None:
    """Return what was computed while the graph was recorded, if it is short."""
    tensor = getattr(value.tracer, "values", {}).get(value.node)
    return None if tensor is None or tensor.numel() > _MOST else to_array(tensor)


def with_constants(node: OperatorNode, inputs: Sequence[Any], integers: Sequence[Integers | None]) -> OperatorNode:
    """Return a node with those inputs among its constants whose elements turned out to be known."""
    found = {}
    for index, (value, known) in enumerate(zip(inputs, integers)):
        if index in node.constants or index >= len(node.input_types) or not isinstance(value, fx.Proxy):
            continue
        held = _held(value)
        if held is not None:
            found[index] = held
        elif known is not None and known.is_constant:
            kind = node.input_types[index]
            values = np.array(known.values, np.int64).astype(np.int64 if kind is None else kind.numpy_dtype)
            found[index] = values.reshape(() if known.is_scalar else (-1,))
    return dataclasses.replace(node, constants={**node.constants, **found}) if found else node


def constant_inputs(node: OperatorNode) -> list[torch.Tensor | None] | None:
    """Return the inputs of a node as tensors if what it computes can be computed at once, ``None`` otherwise.

    That is the arithmetic of shapes where all its numbers are known.
    """
    given = [index for index, name in enumerate(node.inputs) if name]
    if node.domain or node.op_type not in _SHAPE_ARITHMETIC or not given:
        return None
    if not all(index in node.constants and node.constants[index].size <= _MOST for index in given):
        return None
    if any(node.constants[index].dtype.kind not in "biuf" for index in given):
        return None
    # What a constant of few elements makes large is left to the run.
    if any(kind is None or not _is_small(kind.shape) for kind in node.output_types):
        return None
    return [to_tensor(node.constants[index]) if name else None for index, name in enumerate(node.inputs)]


def _is_small(shape: Sequence[Any] | None) -> bool:
    return shape is not None and all(isinstance(size, int) for size in shape) and _product(shape) <= _MOST


def integers_of(node: OperatorNode, index: int, value: Any) -> Any:
    """Return an input of integers as a tuple of numbers and sizes where it is known, else as it is (``None`` too)."""
    constant = node.constants.get(index)
    if constant is not None:
        return tuple(int(v) for v in constant.reshape(-1))
    known = _known(node, index, value)
    return value if known is None else known.values


def as_integers(values: Any) -> list[int]:
    """Return what :func:`integers_of` gave as a list of numbers, when the graph runs."""
    if isinstance(values, torch.Tensor):
        return [int(value) for value in values.reshape(-1).tolist()]
    return list(values)


def follow(node: OperatorNode, inputs: Sequence[Any], known: Sequence[Integers | None]) -> Integers | None:
    """Return what is known of the first output of a node; ``None`` where that is nothing."""
    rule = _RULES.get(node.op_type) if node.domain == "" else None
    if rule is None:
        return None
    found = rule(node, inputs, known)
    return None if found is None or len(found.values) > _MOST else found


def _sizes(node: OperatorNode, x: Any) -> list[Any] | None:
    kind = node.input_types[0] if node.input_types else None
    if kind is None or kind.shape is None or kind.dtype == STRING or not isinstance(x, fx.Proxy):
        return None
    return [size if isinstance(size, int) else x.size(axis) for axis, size in enumerate(kind.shape)]


def _shape(node: OperatorNode, inputs: Sequence[Any], known: Sequence[Integers | None]) -> Integers | None:
    sizes = _sizes(node, inputs[0])
    if sizes is None:
        return None
    return Integers(tuple(sizes[node.attributes.get("start", 0) : node.attributes.get("end")]))


def _size(node: OperatorNode, inputs: Sequence[Any], known: Sequence[Integers | None]) -> Integers | None:
    sizes = _sizes(node, inputs[0])
    if sizes is None:
        return None
    return Integers((inputs[0].numel() if not all(isinstance(s, int) for s in sizes) else _product(sizes),), True)


def _product(values: Sequence[Any]) -> Any:
    result: Any = 1
    for value in values:
        result = result * value
    return result


def _gather(node: OperatorNode, inputs: Sequence[Any], known: Sequence[Integers | None]) -> Integers | None:
    source, index = known[0], known[1]
    if source is None or index is None or source.is_scalar or not index.is_constant:
        return None
    if not all(-len(source.values) <= i < len(source.values) for i in index.values):
        return None
    return Integers(tuple(source.values[i] for i in index.values), index.is_scalar)


def _concat(node: OperatorNode, inputs: Sequence[Any], known: Sequence[Integers | None]) -> Integers | None:
    parts = [part for part in known if part is not None and not part.is_scalar]
    if len(parts) < len(known):
        return None
    return Integers(tuple(value for part in parts for value in part.values))


def _slice(node: OperatorNode, inputs: Sequence[Any], known: Sequence[Integers | None]) -> Integers | None:
    source, bounds = known[0], known[1:]
    if source is None or source.is_scalar or any(b is None for b, v in zip(bounds, inputs[1:]) if v is not None):
        return None
    given = [bound for bound in bounds if bound is not None]
    if not all(bound.is_constant and len(bound.values) == 1 for bound in given):
        return None
    step = bounds[3].values[0] if len(bounds) > 3 and bounds[3] is not None else 1
    return Integers(source.values[given[0].values[0] : given[1].values[0] : step]) if step else None


def _same(node: OperatorNode, inputs: Sequence[Any], known: Sequence[Integers | None]) -> Integers | None:
    return known[0]


def _to_scalar(node: OperatorNode, inputs: Sequence[Any], known: Sequence[Integers | None]) -> Integers | None:
    source = known[0]
    return Integers(source.values, True) if source is not None and len(source.values) == 1 else None


def _to_vector(node: OperatorNode, inputs: Sequence[Any], known: Sequence[Integers | None]) -> Integers | None:
    source, axes = known[0], known[1]
    if source is None or not source.is_scalar or axes is None or axes.values not in ((0,), (-1,)):
        return None
    return Integers(source.values)


def _reshape(node: OperatorNode, inputs: Sequence[Any], known: Sequence[Integers | None]) -> Integers | None:
    source, shape = known[0], known[1]
    if source is None or shape is None or shape.is_scalar:
        return None
    if shape.values == ():
        return Integers(source.values, True) if len(source.values) == 1 else None
    return Integers(source.values) if shape.values in ((-1,), (len(source.values),)) and source.values else None


def _cast(node: OperatorNode, inputs: Sequence[Any], known: Sequence[Integers | None]) -> Integers | None:
    kind = node.output_types[0] if node.output_types else None
    return known[0] if kind is not None and kind.dtype in ("int32", "int64") else None


def _arithmetic(function: Callable[[Any, Any], Any], *, divides: bool = False) -> Callable[..., Integers | None]:
    """Return the rule of an operator of two numbers."""

    def rule(node: OperatorNode, inputs: Sequence[Any], known: Sequence[Integers | None]) -> Integers | None:
        a, b = known
        if a is None or b is None or {len(a.values), len(b.values)} - {1, max(len(a.values), len(b.values))}:
            return None
        if divides and 0 in [v for v in b.values if isinstance(v, int)]:
            return None
        count = 0 if not a.values or not b.values else max(len(a.values), len(b.values))
        pairs = zip(a.values * (count if len(a.values) == 1 else 1), b.values * (count if len(b.values) == 1 else 1))
        return Integers(tuple(function(x, y) for x, y in pairs), a.is_scalar and b.is_scalar)

    return rule


def _quotient(a: Any, b: Any) -> Any:
    """Return a quotient without its fraction, as ONNX divides integers."""
    for value in (a, b):
        if isinstance(value, fx.Proxy):
            return value.tracer.create_proxy("call_function", _quotient, (a, b), {})
    return a // b if (a < 0) == (b < 0) else -(-a // b)


_RULES: dict[str, Callable[..., Integers | None]] = {
    "Shape": _shape,
    "Size": _size,
    "Gather": _gather,
    "Concat": _concat,
    "Slice": _slice,
    "Identity": _same,
    "Reshape": _reshape,
    "Squeeze": _to_scalar,
    "Unsqueeze": _to_vector,
    "Cast": _cast,
    "Add": _arithmetic(operator.add),
    "Sub": _arithmetic(operator.sub),
    "Mul": _arithmetic(operator.mul),
    "Div": _arithmetic(_quotient, divides=True),
}
