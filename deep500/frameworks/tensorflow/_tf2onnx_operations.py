"""Operations of TensorFlow that tf2onnx has no ONNX for, or one that computes something else."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray

__all__ = ["HANDLERS"]

_TYPES = onnx.TensorProto

#: The dtypes that boundaries are compared in as they are; others are compared in float32, as TensorFlow does.
_FLOATS = (_TYPES.FLOAT, _TYPES.DOUBLE, _TYPES.FLOAT16)


class _Replacing:
    """An operation that is being replaced by nodes of ONNX."""

    def __init__(self, context: Any, node: Any) -> None:
        self.context, self.node, self.name = context, node, str(node.name)
        self.inputs, self.output = list(node.input), node.output[0]
        self.dtype, self.shape = node.output_dtypes[0], node.output_shapes[0]
        self._count = 0

    def constant(self, value: Any, dtype: Any = None) -> str:
        """Add a constant, by default of the dtype of the result; return its name."""
        array = np.asarray(value, onnx.helper.tensor_dtype_to_np_dtype(self.dtype) if dtype is None else dtype)
        return str(self.context.make_const(self._next(), array).output[0])

    def add(self, op_type: str, *inputs: str, dtype: int | None = None, **attributes: Any) -> str:
        """Add a node, by default with a result of the dtype of the operation's; return the name of its result."""
        kind = self.dtype if dtype is None else dtype
        node = self.context.make_node(op_type, list(inputs), attr=attributes, name=self._next(), dtypes=[kind])
        return str(node.output[0])

    def finish(self, op_type: str, *inputs: str, **attributes: Any) -> None:
        """Add the node that gives the operation's result, in the operation's place."""
        self.context.remove_node(self.name)
        self.context.make_node(
            op_type,
            list(inputs),
            attr=attributes,
            name=self.name,
            outputs=[self.output],
            dtypes=[self.dtype],
            shapes=[self.shape],
        )

    def _next(self) -> str:
        self._count += 1
        return f"{self.name}_{self._count}"


def _erfc(step: _Replacing) -> None:
    """The complement of the error function, ``1 - erf(x)``, of which gelu is made."""
    step.finish("Sub", step.constant(1), step.add("Erf", *step.inputs))


def _log1p(step: _Replacing) -> None:
    """``log(x + 1)``, which TensorFlow's optimizer makes Log1p of as well."""
    step.finish("Log", step.add("Add", step.inputs[0], step.constant(1)))


def _expm1(step: _Replacing) -> None:
    """``exp(x) - 1 = tanh(x / 2) (exp(x) + 1)``, which loses nothing where x is small."""
    (x,) = step.inputs
    half = step.add("Tanh", step.add("Mul", x, step.constant(0.5)))
    step.finish("Mul", half, step.add("Add", step.add("Exp", x), step.constant(1)))


def _bucketize(step: _Replacing) -> None:
    """The number of boundaries that an element is not less than; NaN is less than none."""
    (x,) = step.inputs
    dtype = step.context.get_dtype(x)
    if dtype not in _FLOATS:
        dtype = _TYPES.FLOAT
        x = step.add("Cast", x, to=dtype, dtype=dtype)
    last = step.constant([-1], np.int64)
    boundaries = step.constant(step.node.get_attr("boundaries").floats, onnx.helper.tensor_dtype_to_np_dtype(dtype))
    less = step.add("Less", step.add("Unsqueeze", x, last, dtype=dtype), boundaries, dtype=_TYPES.BOOL)
    reached = step.add("Cast", step.add("Not", less, dtype=_TYPES.BOOL), to=step.dtype)
    step.finish("ReduceSum", reached, last, keepdims=0)


def _select(step: _Replacing) -> None:
    """One of two tensors by element: tf2onnx' sum of products makes NaN of what is not chosen and not finite."""
    condition, one, other = step.inputs
    ranks = [step.context.get_rank(name) for name in (condition, one, other)]
    if step.node.type == "Select" and ranks[0] == 1:  # one condition for each row
        rank = ranks[1] if ranks[1] is not None else ranks[2]
        if rank is None:
            return
        condition = step.add("Reshape", condition, step.constant([-1, *[1] * (rank - 1)], np.int64), dtype=_TYPES.BOOL)
    if step.dtype == _TYPES.BOOL:  # ONNX Runtime does not choose among truth values
        chosen = step.add("And", condition, one)
        step.finish("Or", chosen, step.add("And", step.add("Not", condition), other))
    else:
        step.finish("Where", condition, one, other)


def _bitcast(step: _Replacing) -> None:
    """The sign bit of a float, which argmax reads so; other readers leave the operation as it is.

    A zero has it where its reciprocal is less than zero; that of NaN is taken as not set.
    """
    (x,) = step.inputs
    lowest = np.iinfo(np.int32).min
    readers = step.context.find_output_consumers(step.output)
    masks = [[i for i in reader.inputs if i.is_const()] for reader in readers if reader.type == "BitwiseAnd"]
    are_sign = [bool(m) and m[0].get_tensor_value(as_list=False) == lowest for m in masks]
    if (step.context.get_dtype(x), step.dtype) != (_TYPES.FLOAT, _TYPES.INT32) or len(masks) < len(readers):
        return
    if not all(are_sign):
        return
    zero = step.constant(0, np.float32)
    below = step.add("Less", x, zero, dtype=_TYPES.BOOL)
    is_zero = step.add("Equal", x, zero, dtype=_TYPES.BOOL)
    inverse = step.add("Less", step.add("Reciprocal", x, dtype=_TYPES.FLOAT), zero, dtype=_TYPES.BOOL)
    sign = step.add("Or", below, step.add("And", is_zero, inverse, dtype=_TYPES.BOOL), dtype=_TYPES.BOOL)
    step.finish("Where", sign, step.constant(lowest), step.constant(0))


def _resize_area(step: _Replacing) -> None:
    """The mean of the part of an image that each new element covers: a product by a matrix for each of both axes.

    Where a size is not known the operation stays as it is.
    """
    shape = step.context.get_shape(step.inputs[0])
    if not shape or -1 in shape[1:3] or not step.node.inputs[1].is_const():
        return
    sizes = [int(n) for n in step.node.inputs[1].get_tensor_value()]
    corners = bool(step.node.get_attr_value("align_corners", 0))
    rows, columns = (_covering(old, new, corners) for old, new in zip(shape[1:3], sizes))
    image = step.add("Transpose", step.inputs[0], perm=[0, 3, 1, 2], dtype=step.context.get_dtype(step.inputs[0]))
    image = step.add("Cast", image, to=step.dtype)
    across = step.add("MatMul", image, step.constant(columns.T))
    step.finish("Transpose", step.add("MatMul", step.constant(rows), across), perm=[0, 2, 3, 1])


def _covering(size: int, new_size: int, corners: bool) -> NDArray[np.float64]:
    """Return which part of each new element is made of each old one, ``[new size, size]``."""
    scale = (size - 1) / (new_size - 1) if corners and new_size > 1 else size / new_size
    start = np.arange(new_size)[:, None] * scale
    first = np.arange(size)[None]
    overlap = np.clip(np.minimum(first + 1, start + scale) - np.maximum(first, start), 0, None)
    reached = overlap.sum(1, keepdims=True)
    overlap[:, -1] += np.where(reached < scale, scale - reached, 0)[:, 0]  # what is beyond is the last element
    return np.asarray(overlap / scale)


def _handler(replace: Callable[[_Replacing], None]) -> tuple[Callable[..., None], Sequence[str]]:
    def handle(context: Any, node: Any, name: str, arguments: Any) -> None:
        replace(_Replacing(context, node))

    return handle, []


#: What tf2onnx is given as ``custom_op_handlers``.
HANDLERS = {
    operation: _handler(replace)
    for operation, replace in {
        "Bitcast": _bitcast,
        "Bucketize": _bucketize,
        "Erfc": _erfc,
        "Expm1": _expm1,
        "Log1p": _log1p,
        "ResizeArea": _resize_area,
        "Select": _select,
        "SelectV2": _select,
    }.items()
}
