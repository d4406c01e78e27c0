"""The frame of operators each of whose results is an element of the input, or a constant."""

from __future__ import annotations

import abc
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from deep500.core.errors import OperatorError
from deep500.operators.library._tensors import is_float, present, returned, take_inputs
from deep500.operators.operator import Array, Operator, OptionalArray

__all__ = ["SelectingOperator", "checked_indices", "gathered_back"]


class SelectingOperator(Operator):
    """An operator that takes elements of its first input, of any dtype, from places that the other inputs say.

    What a subclass does with values it does with the places of the values as well; the gradient by an element is the
    sum of those by the results that were taken from its place.
    """

    #: Names of the inputs in the specification.
    required: ClassVar[tuple[str, ...]] = ("data",)
    optional: ClassVar[tuple[str, ...]] = ()

    @abc.abstractmethod
    def select(self, data: Array, others: Sequence[OptionalArray], constant: Any) -> Array:
        """Return the results.

        Args:
            data: The first input, or the places of its elements.
            others: The other inputs.
            constant: What results are that are no element; ``None`` where the operator decides.

        Raises:
            OperatorError: The inputs do not fit each other.
        """

    def forward(self, inputs: Sequence[OptionalArray]) -> tuple[Array, ...]:
        """Take the elements.

        Raises:
            OperatorError: An input is missing, or the inputs do not fit each other.
        """
        data, *others = self._read(inputs)
        return (np.asarray(self.select(present(data), others, None)),)

    def backward(
        self, grads: Sequence[OptionalArray], fwd_inputs: Sequence[OptionalArray], fwd_outputs: Sequence[OptionalArray]
    ) -> tuple[OptionalArray, ...]:
        """Compute the gradient by the first input."""
        data, *others = self._read(fwd_inputs)
        if grads[0] is None or not is_float(present(data).dtype):
            return (None,) * len(fwd_inputs)
        places = self._places(present(data), others)
        by_data = gathered_back(np.asarray(grads[0]), places, present(data).shape)
        return returned([by_data, *(None for _ in others)], fwd_inputs)

    def _places(self, data: Array, others: Sequence[OptionalArray]) -> Array:
        """Return the flat index of the element that each result is; -1 for constants."""
        return np.asarray(self.select(np.arange(data.size).reshape(data.shape), others, np.int64(-1)))

    def _read(self, inputs: Sequence[OptionalArray]) -> list[OptionalArray]:
        return take_inputs(type(self).__name__, inputs, self.required, self.optional)


def gathered_back(gradient: Array, places: Array, shape: tuple[int, ...]) -> Array:
    """Return the sum of the gradients for each place, in float64.

    Args:
        gradient: Gradients.
        places: Flat index of a place for each of them, -1 for none; of the same number of elements.
        shape: Shape of the tensor that has the places.
    """
    flat, weights = places.reshape(-1), gradient.reshape(-1).astype(np.float64)
    valid = flat >= 0
    if not valid.all():
        flat, weights = flat[valid], weights[valid]
    size = int(np.prod(shape))
    return np.bincount(flat, weights, minlength=size)[:size].reshape(shape)


def checked_indices(operator: str, indices: Array, size: int, *, name: str = "indices") -> Array:
    """Return indices counted from the front.

    Args:
        operator: Name of the operator, for the message.
        indices: The indices; negative ones count from the back.
        size: Size of the axis that they are of.
        name: What they are called, for the message.

    Raises:
        OperatorError: They are not integers, or not in ``[-size, size - 1]``.
    """
    if indices.dtype.kind not in "iu":
        raise OperatorError(f"{operator}: {name} is of {indices.dtype}; accepted are int32 and int64.")
    wide = indices.astype(np.int64, copy=False)
    if wide.size and (wide.min() < -size or wide.max() >= size):
        wrong = wide.min() if wide.min() < -size else wide.max()
        raise OperatorError(f"{operator}: an entry of {name} is {wrong} for an axis of the size {size}; accepted are "
                            f"entries from {-size} to {size - 1}.")  # fmt: skip
    return np.where(wide < 0, wide + size, wide)
