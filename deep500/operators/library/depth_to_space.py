"""ONNX DepthToSpace."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from deep500.core.errors import OperatorError
from deep500.operators import attributes
from deep500.operators.library._selection import SelectingOperator
from deep500.operators.operator import Array, OptionalArray

__all__ = ["DepthToSpace"]


class DepthToSpace(SelectingOperator):
    """Lay channels out as blocks of pixels: ``[N, C b b, H, W]`` becomes ``[N, C, H b, W b]``.

    Source: ONNX DepthToSpace, version 28.
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
        self.blocksize = attributes.integer("DepthToSpace", "blocksize", blocksize, minimum=1)
        self.mode = attributes.choice("DepthToSpace", "mode", mode, ("DCR", "CRD"))

    def select(self, data: Array, others: Sequence[OptionalArray], constant: Any) -> Array:
        """Return the pixels."""
        b = self.blocksize
        if data.ndim != 4 or data.shape[1] % (b * b):
            raise OperatorError(
                f"DepthToSpace: received a tensor of shape {data.shape} and the block size {b}; accepted is "
                f"[N, C, H, W] with C a multiple of {b * b}."
            )
        n, channels, h, w = data.shape
        c = channels // (b * b)
        if self.mode == "DCR":
            blocks = data.reshape(n, b, b, c, h, w).transpose(0, 3, 4, 1, 5, 2)
        else:
            blocks = data.reshape(n, c, b, b, h, w).transpose(0, 1, 4, 2, 5, 3)
        return blocks.reshape(n, c, h * b, w * b)
