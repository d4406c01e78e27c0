"""ONNX Reshape."""

from __future__ import annotations

import math
from collections.abc import Sequence

from deep500.core.errors import OperatorError
from deep500.operators import attributes
from deep500.operators.library._movement import ReshapingOperator
from deep500.operators.library._tensors import present, take_inputs
from deep500.operators.operator import Array, OptionalArray

__all__ = ["Reshape"]


class Reshape(ReshapingOperator):
    r"""Give a tensor another shape with the same number of elements.

    Inputs: data of any dtype and shape; shape, int64 ``[n]``, whose entry 0 keeps the input's size of that axis (or,
    with ``allowzero``, means 0), and of which one entry may be -1: what remains. Output: a view where possible.

    What remains is computed without the axes that entries 0 keep, so that ``[0, -1]`` flattens an empty batch
    ``[0, 3, 4]`` to ``[0, 12]``, where a division of the numbers of elements would be 0 / 0.

    Source: ONNX Reshape, version 25.
    """

    def __init__(self, *, allowzero: int = 0) -> None:
        """Set the attribute.

        Args:
            allowzero: 1 if an entry 0 means the size 0.

        Raises:
            OperatorError: It is neither 0 nor 1.
        """
        self.allowzero = attributes.flag("Reshape", "allowzero", allowzero)

    def forward(self, inputs: Sequence[OptionalArray]) -> tuple[Array, ...]:
        """Reshape the data.

        Raises:
            OperatorError: The shape is not of integers, or not possible for the data.
        """
        data, shape = map(present, take_inputs("Reshape", inputs, ["data", "shape"]))
        if shape.dtype.kind not in "iu" or shape.ndim != 1:
            raise OperatorError(
                f"Reshape: the input shape is of {shape.dtype} and shape {shape.shape}; accepted is int64 of one "
                f"dimension."
            )
        return (data.reshape(self._resolve(data.shape, [int(size) for size in shape])),)

    def _resolve(self, old: tuple[int, ...], wanted: list[int]) -> list[int]:
        """Return the new shape without entries 0 (that keep a size) and -1."""
        refusal = OperatorError(
            f"Reshape: received data of shape {old} and the shape {wanted} (allowzero={int(self.allowzero)}); accepted "
            f"are entries from 0 on and at most one -1, with as many elements as the data."
        )
        open_axes = [i for i, size in enumerate(wanted) if size == -1]
        kept = [] if self.allowzero else [i for i, size in enumerate(wanted) if size == 0]
        if len(open_axes) > 1 or any(size < -1 for size in wanted) or any(i >= len(old) for i in kept):
            raise refusal
        new = [old[i] if i in kept else size for i, size in enumerate(wanted)]
        if open_axes:
            given = math.prod(size for i, size in enumerate(wanted) if i not in (*kept, *open_axes))
            rest = math.prod(size for i, size in enumerate(old) if i not in kept)
            if given == 0 or rest % given:
                raise refusal
            new[open_axes[0]] = rest // given
        if math.prod(new) != math.prod(old):
            raise refusal
        return new
