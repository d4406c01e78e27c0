"""Windows that are laid out when the network runs, over any number of spatial axes.

PyTorch's kernels take windows over one to three axes, with padding that is equal on both sides. What is here serves
all others, and those whose place depends on sizes that are not known while the network is translated.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812 - PyTorch's own convention

from deep500.frameworks.pytorch._recording import recorded
from deep500.frameworks.pytorch.lowering._plain import moving
from deep500.networks.operator_node import OperatorNode
from deep500.operators.windows import WindowAttributes, Windows

__all__ = ["fold_blocks", "lay_out", "pad_to_span", "window_counts", "window_settings", "window_view"]


def window_settings(node: OperatorNode) -> tuple[Any, ...]:
    """Return the window attributes of a node as plain values, for :func:`lay_out`."""
    names = ("kernel_shape", "strides", "pads", "dilations")
    values = (tuple(node.attributes[name]) if node.attributes.get(name) else None for name in names)
    return (node.op_type, *values, node.attributes.get("auto_pad", "NOTSET"), node.attributes.get("ceil_mode", 0))


def lay_out(settings: Sequence[Any], sizes: Sequence[int], kernel: Sequence[int] | None = None) -> Windows:
    """Lay windows over spatial axes.

    Args:
        settings: What :func:`window_settings` returned.
        sizes: Sizes of the axes.
        kernel: Elements of a window, where no attribute says it.
    """
    operator, shape, strides, pads, dilations, auto_pad, ceil_mode = settings
    attributes = WindowAttributes(
        operator,
        kernel_shape=shape,
        strides=strides,
        pads=pads,
        dilations=dilations,
        auto_pad=auto_pad,
        ceil_mode=ceil_mode,
    )
    return attributes.plan(tuple(sizes), None if kernel is None else tuple(kernel))


def pad_to_span(x: torch.Tensor, windows: Windows, value: float) -> torch.Tensor:
    """Pad ``[N, C, D1, ...]``, or cut it, to what the windows see."""
    axes = list(zip(windows.begin, windows.span, windows.size, strict=True))
    pairs = [width for begin, span, size in reversed(axes) for width in (begin, span - begin - size)]
    return F.pad(x, pairs, value=value) if any(pairs) else x


def window_view(padded: torch.Tensor, windows: Windows) -> torch.Tensor:
    """Return all windows, ``[N, C, O1, ..., K1, ...]``, as a view of ``[N, C, D1, ...]``."""
    rank = len(windows.kernel)
    view = padded
    for axis, (kernel, stride, dilation) in enumerate(
        zip(windows.kernel, windows.strides, windows.dilations, strict=True)
    ):
        view = view.unfold(2 + axis, (kernel - 1) * dilation + 1, stride)
    for axis, dilation in enumerate(windows.dilations, 2 + rank):
        view = view[(slice(None),) * axis + (slice(None, None, dilation),)]
    return view


def window_counts(windows: Windows, *, include_pad: bool, like: torch.Tensor) -> torch.Tensor:
    """Return how many elements of every window lie in the input, or in the padded input, ``[O1, ...]``."""
    total = like.new_ones((1,) * len(windows.output))
    for axis, number in enumerate(windows.output):
        first = torch.arange(number, device=like.device).unsqueeze(1) * windows.strides[axis]
        place = first + torch.arange(windows.kernel[axis], device=like.device) * windows.dilations[axis]
        low = 0 if include_pad else windows.begin[axis]
        high = windows.begin[axis] + windows.size[axis] + (windows.end[axis] if include_pad else 0)
        count = ((place >= low) & (place < high)).sum(1).to(like.dtype)
        total = total * count.reshape([-1 if other == axis else 1 for other in range(len(windows.output))])
    return total


@recorded
@moving
def fold_blocks(
    blocks: torch.Tensor,
    image: Sequence[int],
    kernel: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
    begin: Sequence[int],
    end: Sequence[int],
) -> torch.Tensor:
    """Add blocks up to images, ``[N, C K1 ..., O1 ...]`` to ``[N, C, D1, ...]``; the adjoint of taking windows.

    Unsigned integers are added as signed ones, whose sums have the same bits.
    """
    padded = [size + before + after for size, before, after in zip(image, begin, end, strict=True)]
    axes = zip(padded, kernel, strides, dilations, strict=True)
    output = tuple((size - (k - 1) * dilation - 1) // stride + 1 for size, k, stride, dilation in axes)
    none = (0,) * len(padded)
    windows = Windows(tuple(padded), tuple(kernel), tuple(strides), tuple(dilations), none, none, output)
    channels = blocks.shape[1] // math.prod(kernel)
    parts = blocks.reshape(blocks.shape[0], channels, math.prod(kernel), *output)
    total = blocks.new_zeros((blocks.shape[0], channels, *padded))
    for index, place in enumerate(windows.offsets()):
        total[place] += parts[:, :, index]
    for axis, (before, size) in enumerate(zip(begin, image, strict=True), 2):
        total = total.narrow(axis, before, size)
    return total
