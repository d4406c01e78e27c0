"""What the pooling operators share: a window with a size of its own."""

from __future__ import annotations

from collections.abc import Sequence

from deep500.core.errors import OperatorError
from deep500.operators.operator import Operator
from deep500.operators.windows import WindowAttributes

__all__ = ["Pooling"]


class Pooling(Operator):
    """An operator that makes one value of each window over the spatial axes."""

    def __init__(
        self,
        *,
        kernel_shape: Sequence[int],
        strides: Sequence[int] | None = None,
        pads: Sequence[int] | None = None,
        dilations: Sequence[int] | None = None,
        auto_pad: str = "NOTSET",
        ceil_mode: int = 0,
    ) -> None:
        """Set the window.

        Args:
            kernel_shape: Elements of a window along every spatial axis.
            strides: Distance between windows, by default 1 along every axis.
            pads: Padding before every axis, then after every axis; by default none.
            dilations: Distance between the elements of a window, by default 1 along every axis.
            auto_pad: ``"NOTSET"`` (use ``pads``), ``"SAME_UPPER"``, ``"SAME_LOWER"`` or ``"VALID"``.
            ceil_mode: 1 to round the number of windows up.

        Raises:
            OperatorError: An attribute is not what is accepted.
        """
        name = type(self).__name__
        self.windows = WindowAttributes(
            name,
            kernel_shape=kernel_shape,
            strides=strides,
            pads=pads,
            dilations=dilations,
            auto_pad=auto_pad,
            ceil_mode=ceil_mode,
        )
        if self.windows.kernel_shape is None:
            raise OperatorError(f"{name}: the attribute kernel_shape is missing; accepted is one entry a spatial axis.")
