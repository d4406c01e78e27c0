"""Transposed convolution: all that its input gives, of which a part is taken."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch

from deep500.core.errors import InvalidNetworkError
from deep500.frameworks.pytorch._recording import recorded
from deep500.frameworks.pytorch.lowering._padding import pad_ends
from deep500.frameworks.pytorch.lowering._windows import fold_blocks
from deep500.networks.operator_node import OperatorNode

__all__ = ["Placement", "any_conv_transpose", "conv_transpose", "lay_out", "settings"]

_KERNELS = {1: torch.conv_transpose1d, 2: torch.conv_transpose2d, 3: torch.conv_transpose3d}


class Placement(NamedTuple):
    """Where the output lies in the full one; one entry a spatial axis.

    Attributes:
        kernel: Elements of a window.
        strides: Distance between the windows of neighbouring elements.
        dilations: Distance between the elements of a window.
        begin: Elements of the full output before the output; negative where the output begins before the full one.
        end: Elements of the full output after it; negative where the output reaches beyond the full one.
    """

    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    begin: tuple[int, ...]
    end: tuple[int, ...]


def settings(node: OperatorNode) -> tuple[Any, ...]:
    """Return the attributes of a node as plain values, for :func:`lay_out`."""
    auto_pad = node.attributes.get("auto_pad", "NOTSET")
    if auto_pad not in ("NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"):
        raise InvalidNetworkError(
            f"{node.label} has auto_pad={auto_pad!r}; accepted are NOTSET, VALID, SAME_UPPER and SAME_LOWER."
        )
    names = ("strides", "dilations", "pads", "output_padding", "output_shape")
    return (auto_pad, *(tuple(node.attributes.get(name) or ()) for name in names))


def lay_out(values: Sequence[Any], kernel: Sequence[int], sizes: Sequence[int] | None) -> Placement:
    """Return where the output lies.

    Padding that ``output_shape`` or SAME ask for follows ONNX' formulas. Where the full output is too small for them,
    it is negative: zeros around the output by SAME, and after it by ``output_shape`` alone, as in ONNX' reference.

    Args:
        values: What :func:`settings` returned.
        kernel: Elements of a window.
        sizes: Spatial sizes of the input; needed where an ``output_shape`` is given.
    """
    auto_pad, strides, dilations, pads, output_padding, output_shape = values
    rank = len(kernel)
    strides, dilations = strides or (1,) * rank, dilations or (1,) * rank
    more, pads = output_padding or (0,) * rank, pads or (0,) * (2 * rank)
    begin, end = [], []
    for axis in range(rank):
        reach, stride = (kernel[axis] - 1) * dilations[axis] + 1, strides[axis]
        if output_shape and sizes is not None:
            surplus = stride * (sizes[axis] - 1) + reach - output_shape[len(output_shape) - rank + axis]
        elif auto_pad.startswith("SAME"):
            surplus = reach - stride
        else:
            taken = auto_pad == "VALID"
            begin.append(0 if taken else pads[axis])
            end.append((0 if taken else pads[rank + axis]) - more[axis])
            continue
        total = surplus + more[axis] if auto_pad.startswith("SAME") else max(0, surplus + more[axis])
        first = total // 2 if auto_pad == "SAME_UPPER" else total - total // 2
        begin.append(first)
        end.append(surplus - first)
    return Placement(tuple(kernel), tuple(strides), tuple(dilations), tuple(begin), tuple(end))


def _native(begin: int, end: int, most: int) -> tuple[int, int]:
    """Return the padding and output padding with which PyTorch's kernel gives one axis, or more than that."""
    if 0 <= begin - end < most and begin >= 0:
        return begin, begin - end
    return max(0, min(begin, end)), 0


def conv_transpose(x: Any, w: Any, b: Any, place: Placement, group: int) -> Any:
    """Transposed convolution by PyTorch's kernel, and by cutting or padding what the kernel cannot give."""
    rank = len(place.kernel)
    if rank not in _KERNELS:
        return _any_rank(x, w, b, place, group)
    limits = [max(stride, dilation) for stride, dilation in zip(place.strides, place.dilations)]
    chosen = [_native(*axis) for axis in zip(place.begin, place.end, limits)]
    padding, more = tuple(axis[0] for axis in chosen), tuple(axis[1] for axis in chosen)
    begin = tuple(padded - first for first, padded in zip(place.begin, padding))
    end = [padded - extra - last for last, padded, extra in zip(place.end, padding, more)]
    late = any(width > 0 for width in (*begin, *end))  # zeros around it get the bias, too
    y = _KERNELS[rank](x, w, None if late else b, place.strides, padding, more, group, place.dilations)
    if any(begin) or any(end):
        y = pad_ends(y, begin, end, 0.0)
    return y + torch.reshape(b, (-1, *(1,) * rank)) if late and b is not None else y


@recorded
def any_conv_transpose(
    x: torch.Tensor, w: torch.Tensor, b: torch.Tensor | None, values: Sequence[Any], group: int
) -> torch.Tensor:
    """Transposed convolution that is laid out when the network runs."""
    result: torch.Tensor = conv_transpose(x, w, b, lay_out(values, w.shape[2:], x.shape[2:]), group)
    return result


@recorded
def _any_rank(
    x: torch.Tensor, w: torch.Tensor, b: torch.Tensor | None, place: Sequence[Any], group: int
) -> torch.Tensor:
    """Transposed convolution over any number of axes."""
    kernel, strides, dilations, begin, end = place
    rank, count = len(kernel), x.shape[0]
    rows = x.reshape(count, group, x.shape[1] // group, -1)
    blocks = w.reshape(group, w.shape[0] // group, -1).transpose(1, 2) @ rows
    axes = zip(x.shape[2:], kernel, strides, dilations, strict=True)
    full = [(size - 1) * stride + (k - 1) * dilation + 1 for size, k, stride, dilation in axes]
    none = (0,) * rank
    y = fold_blocks(blocks.reshape(count, -1, rows.shape[3]), full, kernel, strides, dilations, none, none)
    y = torch.as_tensor(pad_ends(y, tuple(-n for n in begin), [-n for n in end], 0.0))
    return y if b is None else y + b.reshape(-1, *(1,) * rank)
