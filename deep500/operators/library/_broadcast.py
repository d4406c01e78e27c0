"""Broadcasting of shapes, and its transpose: the sum over the axes along which a tensor was repeated."""

from __future__ import annotations

import numpy as np

from deep500.core.errors import OperatorError
from deep500.operators.library._tensors import compute_dtype
from deep500.operators.operator import Array

__all__ = ["broadcast_shape", "unbroadcast"]


def broadcast_shape(operator: str, *shapes: tuple[int, ...]) -> tuple[int, ...]:
    """Return the shape that several shapes broadcast to, as NumPy and ONNX (multidirectional) have it.

    Args:
        operator: Name of the operator, for the message.
        shapes: The shapes.

    Raises:
        OperatorError: They do not broadcast.
    """
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        received = " and ".join(map(str, shapes))
        raise OperatorError(
            f"{operator}: received the shapes {received}; accepted are shapes that broadcast: counted from the last "
            f"axis, sizes are equal or one of them is 1."
        ) from None


def unbroadcast(gradient: Array, shape: tuple[int, ...]) -> Array:
    """Return the gradient by a tensor that was broadcast: the sum over every axis along which it was repeated.

    Args:
        gradient: The gradient by the broadcast tensor.
        shape: Shape of the tensor before it was broadcast.

    Returns:
        A tensor of that shape, in the gradient's dtype; the gradient itself where nothing was repeated.
    """
    if gradient.shape == shape:
        return gradient
    new = gradient.ndim - len(shape)
    repeated = tuple(i + new for i, size in enumerate(shape) if size == 1 and gradient.shape[i + new] != 1)
    total = np.sum(gradient, axis=(*range(new), *repeated), dtype=compute_dtype(gradient.dtype), keepdims=True)
    return np.asarray(total.reshape(shape).astype(gradient.dtype, copy=False))
