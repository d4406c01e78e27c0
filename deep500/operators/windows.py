"""Windows that slide over the spatial axes: their attributes, and where they lie.

Conv and the pooling operators share one geometry: a window of ``kernel`` elements, ``dilations`` apart, moves in steps
of ``strides`` over an input that is padded with ``pads``.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from types import EllipsisType
from typing import Any

import numpy as np

from deep500.core.errors import OperatorError
from deep500.operators import attributes
from deep500.operators.operator import Array

__all__ = ["AUTO_PADS", "WindowAttributes", "Windows"]

# Slices of the spatial axes, after an ellipsis for the axes before them.
_Place = tuple[EllipsisType | slice, ...]

AUTO_PADS = ("NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID")


@dataclass(frozen=True)
class Windows:
    """Where the windows lie over an input of a certain size. Every tuple has one entry a spatial axis.

    Attributes:
        size: The input's spatial shape.
        kernel: Elements of a window.
        strides: Distance between neighbouring windows.
        dilations: Distance between neighbouring elements of a window.
        begin: Padding before the input.
        end: Padding after the input that counts as such; ``ceil_mode`` lets windows reach beyond it.
        output: Number of windows.
    """

    size: tuple[int, ...]
    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    begin: tuple[int, ...]
    end: tuple[int, ...]
    output: tuple[int, ...]

    @property
    def span(self) -> tuple[int, ...]:
        """Elements from the first one of the first window to the last one of the last window, padding included."""
        axes = zip(self.output, self.strides, self.kernel, self.dilations, strict=True)
        return tuple((n - 1) * s + (k - 1) * d + 1 for n, s, k, d in axes)

    @property
    def covered(self) -> tuple[int, ...]:
        """How many elements of the input lie within the span; the windows may end before the input does."""
        axes = zip(self.size, self.span, self.begin, strict=True)
        return tuple(max(0, min(size, span - begin)) for size, span, begin in axes)

    @property
    def source(self) -> _Place:
        """The part of the input that windows see."""
        return (..., *(slice(n) for n in self.covered))

    @property
    def target(self) -> _Place:
        """Where that part lies in the padded input."""
        return (..., *(slice(begin, begin + n) for begin, n in zip(self.begin, self.covered, strict=True)))

    def offsets(self) -> Iterator[_Place]:
        """Iterate over the elements of a window in row-major order.

        Each is given as the slices that select this element of every window from the padded input.
        """
        for position in itertools.product(*map(range, self.kernel)):
            axes = zip(position, self.dilations, self.output, self.strides, strict=True)
            yield (..., *(slice(p * d, p * d + (n - 1) * s + 1, s) for p, d, n, s in axes))

    def counts(self, *, include_pad: bool) -> Array:
        """Return how many elements of every window lie in the input, or in the padded input, ``[D1, ...]``."""
        total: Array = np.ones((), np.int64)
        for axis, n in enumerate(self.output):
            first = np.arange(n)[:, None] * self.strides[axis]
            place = first + np.arange(self.kernel[axis]) * self.dilations[axis]
            low = 0 if include_pad else self.begin[axis]
            high = self.begin[axis] + self.size[axis] + (self.end[axis] if include_pad else 0)
            total = np.multiply.outer(total, ((place >= low) & (place < high)).sum(axis=1))
        return total


class WindowAttributes:
    """The attributes that Conv and the pooling operators share.

    Attributes:
        kernel_shape: Elements of a window, or ``None`` where the operator finds it elsewhere.
        strides: Distance between windows; ``None`` is 1 along every axis.
        pads: Padding before every axis, then after every axis; ``None`` is 0.
        dilations: Distance between the elements of a window; ``None`` is 1.
        auto_pad: ``"NOTSET"`` (use ``pads``), ``"SAME_UPPER"``, ``"SAME_LOWER"`` or ``"VALID"``.
        ceil_mode: Round the number of windows up.
    """

    def __init__(
        self,
        operator: str,
        *,
        kernel_shape: Any,
        strides: Any,
        pads: Any,
        dilations: Any,
        auto_pad: Any,
        ceil_mode: Any = 0,
    ) -> None:
        """Check the attributes.

        Raises:
            OperatorError: An attribute is not what the specification accepts.
        """
        self.operator = operator
        self.kernel_shape = attributes.integers(operator, "kernel_shape", kernel_shape, minimum=1)
        self.strides = attributes.integers(operator, "strides", strides, minimum=1)
        self.pads = attributes.integers(operator, "pads", pads, minimum=0)
        self.dilations = attributes.integers(operator, "dilations", dilations, minimum=1)
        self.auto_pad = attributes.choice(operator, "auto_pad", auto_pad, AUTO_PADS)
        self.ceil_mode = attributes.flag(operator, "ceil_mode", ceil_mode)
        if self.auto_pad != "NOTSET" and self.pads and any(self.pads):
            raise OperatorError(
                f"{operator}: pads is {self.pads} and auto_pad is {self.auto_pad!r}; accepted is one of the two."
            )

    def plan(self, size: tuple[int, ...], kernel: tuple[int, ...] | None = None) -> Windows:
        """Lay the windows over an input.

        Args:
            size: The input's spatial shape.
            kernel: Elements of a window, where they are not those of the attribute ``kernel_shape``.

        Raises:
            OperatorError: An attribute has not one entry an axis, or no window fits into the input.
        """
        rank = len(size)
        kernel = kernel or self.kernel_shape or ()
        strides = self.strides or (1,) * rank
        dilations = self.dilations or (1,) * rank
        pads = self.pads or (0,) * 2 * rank
        for name, value, length in (
            ("kernel_shape", kernel, rank),
            ("strides", strides, rank),
            ("dilations", dilations, rank),
            ("pads", pads, 2 * rank),
        ):
            if len(value) != length:
                raise OperatorError(
                    f"{self.operator}: {name} is {list(value)} for an input of {rank} spatial axes {size}; accepted "
                    f"are {length} entries."
                )
        reach = tuple((k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True))
        axes = [self._axis(size[i], reach[i], strides[i], pads[i], pads[rank + i]) for i in range(rank)]
        output = tuple(axis[2] for axis in axes)
        if any(n < 1 for n in output):
            raise OperatorError(
                f"{self.operator}: windows of {reach} (kernel {kernel}, dilations {dilations}) do not fit into the "
                f"input's spatial shape {size} with pads {list(pads)} and auto_pad {self.auto_pad!r}; accepted are "
                f"windows that are not larger than the padded input."
            )
        begin, end = tuple(axis[0] for axis in axes), tuple(axis[1] for axis in axes)
        return Windows(size, kernel, strides, dilations, begin, end, output)

    def _axis(self, size: int, reach: int, stride: int, begin: int, end: int) -> tuple[int, int, int]:
        """Return the padding before and after one axis, and the number of windows along it."""
        if self.auto_pad in ("SAME_UPPER", "SAME_LOWER"):
            number = -(-size // stride)
            total = max(0, (number - 1) * stride + reach - size)
            small, large = total // 2, total - total // 2
            return (small, large, number) if self.auto_pad == "SAME_UPPER" else (large, small, number)
        room = size + begin + end - reach
        if self.auto_pad == "VALID" or not self.ceil_mode:
            # The specification's formula for VALID with ceil_mode gives the same number as without.
            return begin, end, room // stride + 1
        number = -(-room // stride) + 1
        # A window that would start in the padding after the input is dropped.
        return begin, end, number - 1 if (number - 1) * stride >= size + begin else number
