"""Where the elements and slices lie that tensors of indices name."""

from __future__ import annotations

import math

import numpy as np

from deep500.core.errors import OperatorError
from deep500.operators.library._selection import checked_indices
from deep500.operators.library._tensors import normalise_axis
from deep500.operators.operator import Array

__all__ = ["element_places", "slice_places"]


def element_places(operator: str, shape: tuple[int, ...], indices: Array, axis: int) -> Array:
    """Return the flat index of the element that each index along an axis names.

    Args:
        operator: Name of the operator, for the message.
        shape: Shape of the tensor that has the elements.
        indices: Indices along the axis, of the same rank; those of the other axes are their own.
        axis: The axis.

    Raises:
        OperatorError: The shapes do not fit, or an index is out of range.
    """
    place = normalise_axis(operator, axis, len(shape))
    others = [i for i in range(len(shape)) if i != place]
    if indices.ndim != len(shape) or any(indices.shape[i] > shape[i] for i in others):
        raise OperatorError(
            f"{operator}: received data of shape {shape} and indices of shape {indices.shape}; accepted are indices of "
            f"the same rank whose sizes, but that of axis {place}, are at most those of the data."
        )
    grid: list[Array] = list(np.indices(indices.shape, sparse=True))
    grid[place] = checked_indices(operator, indices, shape[place])
    return np.asarray(np.broadcast_to(sum(g * math.prod(shape[i + 1 :]) for i, g in enumerate(grid)), indices.shape))


def slice_places(operator: str, shape: tuple[int, ...], indices: Array, batch_dims: int = 0) -> Array:
    """Return the flat indices of the elements of the slices that rows of indices name.

    Args:
        operator: Name of the operator, for the message.
        shape: Shape of the tensor that has the slices.
        indices: ``[..., n]``; each row holds the first n indices of a slice, behind the batch axes.
        batch_dims: Number of first axes that are the same in the tensor and the indices.

    Returns:
        The shape of the indices without their last axis, then that of a slice.

    Raises:
        OperatorError: The shapes do not fit, or an index is out of range.
    """
    depth = indices.shape[-1] if indices.ndim else 0
    if not indices.ndim > batch_dims or batch_dims + depth > len(shape) or (
        indices.shape[:batch_dims] != shape[:batch_dims]
    ):  # fmt: skip
        raise OperatorError(
            f"{operator}: received data of shape {shape} and indices of shape {indices.shape} with batch_dims="
            f"{batch_dims}; accepted are indices [..., n] whose batch axes are those of the data, and n of at most "
            f"{len(shape) - batch_dims}."
        )
    rows = indices.shape[:-1]
    lead = np.indices(rows, sparse=True)[:batch_dims]
    named = [checked_indices(operator, indices[..., k], shape[batch_dims + k]) for k in range(depth)]
    inner = math.prod(shape[batch_dims + depth :])
    first = np.zeros(rows, np.int64)
    for axis, part in enumerate([*lead, *named]):
        first = first + part * math.prod(shape[axis + 1 : batch_dims + depth])
    places = first.reshape(*rows, 1) * inner + np.arange(inner)
    return np.asarray(places.reshape((*rows, *shape[batch_dims + depth :])))
