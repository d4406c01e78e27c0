"""The sliding window of a convolution or pooling node, with ONNX' defaults filled in and ``auto_pad`` resolved."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from deep500.core.errors import InvalidNetworkError
from deep500.networks.operator_node import OperatorNode

__all__ = ["Window", "read_window"]


@dataclass(frozen=True)
class Window:
    """A window over the spatial dimensions, one entry each.

    Attributes:
        kernel: Size in elements.
        strides: Step between windows.
        dilations: Step between the elements of a window.
        pads_begin: Elements added before the first.
        pads_end: Elements added after the last.
        ceil_mode: Whether a last window that is only partly inside counts.
    """

    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    pads_begin: tuple[int, ...]
    pads_end: tuple[int, ...]
    ceil_mode: bool = False

    @property
    def rank(self) -> int:
        """Number of spatial dimensions."""
        return len(self.kernel)

    @property
    def is_symmetric(self) -> bool:
        """Whether as much is added before as after."""
        return self.pads_begin == self.pads_end

    @property
    def is_padded(self) -> bool:
        """Whether anything is added."""
        return any(self.pads_begin) or any(self.pads_end)


def read_window(node: OperatorNode, kernel: Sequence[int] | None = None) -> Window:
    """Read the window attributes of a Conv or pooling node.

    Args:
        node: The node; its first input is ``[N, C, D1, D2, ...]``.
        kernel: Kernel size where the attribute ``kernel_shape`` may be missing (convolutions: the weight's).

    Raises:
        InvalidNetworkError: The kernel size is unknown, or ``auto_pad`` needs sizes that are symbolic.

    Source: ONNX Conv-22, MaxPool-22, AveragePool-22.
    """
    shape = node.attributes.get("kernel_shape") or kernel
    if not shape:
        raise InvalidNetworkError(f"The kernel size of {node.label} is not known; set its attribute kernel_shape.")
    rank = len(shape)
    strides = tuple(node.attributes.get("strides") or [1] * rank)
    dilations = tuple(node.attributes.get("dilations") or [1] * rank)
    auto_pad = node.attributes.get("auto_pad", "NOTSET")
    if auto_pad == "NOTSET":
        pads = tuple(node.attributes.get("pads") or [0] * (2 * rank))
        begin, end = pads[:rank], pads[rank:]
    elif auto_pad == "VALID":
        begin = end = (0,) * rank
    else:
        begin, end = _same_pads(node, tuple(shape), strides, dilations, auto_pad)
    return Window(tuple(shape), strides, dilations, begin, end, bool(node.attributes.get("ceil_mode", 0)))


def _same_pads(
    node: OperatorNode, kernel: Sequence[int], strides: Sequence[int], dilations: Sequence[int], auto_pad: str
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the padding with which the output has ``ceil(size / stride)`` elements."""
    descriptor = node.input_types[0]
    sizes = descriptor.shape[2:] if descriptor is not None and descriptor.shape is not None else ()
    if len(sizes) != len(kernel) or not all(isinstance(size, int) for size in sizes):
        raise InvalidNetworkError(
            f"{node.label} has auto_pad={auto_pad}, which needs the spatial sizes of its input; they are "
            f"{descriptor}. Declare them in the network's inputs."
        )
    begin, end = [], []
    for size, width, stride, dilation in zip(sizes, kernel, strides, dilations):
        total = max((-(-int(size or 0) // stride) - 1) * stride + (width - 1) * dilation + 1 - int(size or 0), 0)
        small, large = total // 2, total - total // 2
        begin.append(small if auto_pad == "SAME_UPPER" else large)
        end.append(large if auto_pad == "SAME_UPPER" else small)
    return tuple(begin), tuple(end)
