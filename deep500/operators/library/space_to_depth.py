"""ONNX SpaceToDepth."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from deep500.core.errors import OperatorError
from deep500.operators import attributes
from deep500.operators.library._selection import SelectingOperator
from deep500.operators.operator import Array, OptionalArray

__all__ = ["SpaceToDepth"]


class SpaceToDepth(SelectingOperator):
    """Lay blocks of pixels out as channels: ``[N, C, H b, W b]`` becomes ``[N, C b b, H, W]``.

    Source: ONNX SpaceToDepth, version 28.
    """

    required = ("input",)

    def __init__(self, *, blocksize: int, mode: str = "DCR") -> None:
        """Set the attributes.

        Args:
            blocksize: Height and width b of a block.
            mode: In which order the channels lie: ``"DCR"`` (block row, block column, C) or ``"CRD"`` (C, block row,
                block column).

        Raises:
            OperatorError: The size is not an integer from 1 on, or there is no such mode.
        """
        self.blocksize = attributes.integer("SpaceToDepth", "blocksize", blocksize, minimum=1)
        self.mode = attributes.choice("SpaceToDepth", "mode", mode, ("DCR", "CRD"))

    def select(self, data: Array, others: Sequence[OptionalArray], constant: Any) -> Array:
        """Return the channels."""
        b = self.blocksize
        if data.ndim != 4 or data.shape[2] % b or data.shape[3] % b:
            raise OperatorError(
                f"SpaceToDepth: received a tensor of shape {data.shape} and the block size {b}; accepted is "
                f"[N, C, H, W] with H and W multiples of it."
            )
        n, c, height, width = data.shape
        h, w = height // b, width // b
        order = (0, 3, 5, 1, 2, 4) if self.mode == "DCR" else (0, 1, 3, 5, 2, 4)
        return data.reshape(n, c, h, b, w, b).transpose(order).reshape(n, c * b * b, h, w)
