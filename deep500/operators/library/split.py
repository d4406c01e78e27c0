"""ONNX Split."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from deep500.core.errors import OperatorError
from deep500.operators import attributes
from deep500.operators.library._integers import integer_list
from deep500.operators.library._tensors import is_float, normalise_axis, present, returned, take_inputs
from deep500.operators.operator import Array, Operator, OptionalArray

__all__ = ["Split"]


class Split(Operator):
    """Cut a tensor into parts along an axis.

    Inputs: input of any dtype; optionally split, int64 ``[n]``, the sizes of the parts. Without it there are
    ``num_outputs`` parts of one size, the last one smaller where the axis cannot be divided. Outputs: the parts, views.

    Source: ONNX Split, version 18.
    """

    def __init__(self, *, axis: int = 0, num_outputs: int | None = None) -> None:
        """Set the attributes.

        Args:
            axis: The axis; negative values count from the back.
            num_outputs: Number of parts, where their sizes are not given.

        Raises:
            OperatorError: One of them is not an integer, or there is less than one part.
        """
        self.axis = attributes.integer("Split", "axis", axis)
        self.num_outputs = (
            None if num_outputs is None else attributes.integer("Split", "num_outputs", num_outputs, minimum=1)
        )

    def forward(self, inputs: Sequence[OptionalArray]) -> tuple[Array, ...]:
        """Cut the tensor.

        Raises:
            OperatorError: The sizes do not add up to the axis, or are given twice or not at all.
        """
        x, axis, sizes = self._read(inputs)
        return tuple(np.split(x, np.cumsum(sizes)[:-1], axis=axis))

    def backward(
        self, grads: Sequence[OptionalArray], fwd_inputs: Sequence[OptionalArray], fwd_outputs: Sequence[OptionalArray]
    ) -> tuple[OptionalArray, ...]:
        """Compute the gradient by the input: those by the parts, joined."""
        x, axis, sizes = self._read(fwd_inputs)
        if all(g is None for g in grads) or not is_float(x.dtype):
            return (None,) * len(fwd_inputs)
        known = [*grads, *[None] * (len(sizes) - len(grads))]
        parts = [
            np.zeros((*x.shape[:axis], size, *x.shape[axis + 1 :]), x.dtype) if g is None else np.asarray(g)
            for g, size in zip(known, sizes, strict=True)
        ]
        return returned([np.concatenate(parts, axis=axis), None], fwd_inputs)

    def _read(self, inputs: Sequence[OptionalArray]) -> tuple[Array, int, list[int]]:
        """Check the inputs; return the tensor, the axis and the sizes of the parts."""
        received = take_inputs("Split", inputs, ["input"], ["split"])
        x, given = present(received[0]), received[1]
        axis = normalise_axis("Split", self.axis, x.ndim)
        size = x.shape[axis]
        if given is None and self.num_outputs is not None:
            part = -(-size // self.num_outputs)
            sizes = [min(part, max(size - i * part, 0)) for i in range(self.num_outputs)]
        elif given is not None and self.num_outputs is None:
            sizes = integer_list("Split", "split", given, minimum=0)
        else:
            raise OperatorError(
                "Split: received " + ("the sizes twice" if given is not None else "no sizes") + "; accepted is either "
                "the input split or the attribute num_outputs."
            )
        if sum(sizes) != size or not sizes:
            raise OperatorError(f"Split: received the sizes {sizes} for an axis of {size}; accepted are some that add "
                                f"up to it.")  # fmt: skip
        return x, axis, sizes
