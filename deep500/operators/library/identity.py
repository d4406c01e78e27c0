"""ONNX Identity."""

from __future__ import annotations

from collections.abc import Sequence

from deep500.operators.library._movement import ReshapingOperator
from deep500.operators.library._tensors import present, take_inputs
from deep500.operators.operator import Array, OptionalArray

__all__ = ["Identity"]


class Identity(ReshapingOperator):
    """Return the input itself (not a copy), of any dtype and shape.

    Source: ONNX Identity, version 25, for tensors (not sequences or optionals).
    """

    def forward(self, inputs: Sequence[OptionalArray]) -> tuple[Array, ...]:
        """Return the input."""
        return (present(take_inputs("Identity", inputs, ["input"])[0]),)
