"""Convolutions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812 - PyTorch's own convention

from deep500.core.errors import InvalidNetworkError
from deep500.frameworks.pytorch._recording import recorded
from deep500.frameworks.pytorch._sizes import as_integers, integers_of
from deep500.frameworks.pytorch.lowering import _transposed as transposed
from deep500.frameworks.pytorch.lowering import lowerings
from deep500.frameworks.pytorch.lowering._convolutions import CONVOLUTIONS
from deep500.frameworks.pytorch.lowering._deformable import deformable
from deep500.frameworks.pytorch.lowering._known import known_sizes, wants
from deep500.frameworks.pytorch.lowering._padding import pad_window
from deep500.frameworks.pytorch.lowering._windows import (
    fold_blocks,
    lay_out,
    pad_to_span,
    window_settings,
    window_view,
)
from deep500.networks.operator_node import OperatorNode
from deep500.networks.window import read_window

__all__: list[str] = []


def _kernel(node: OperatorNode) -> tuple[int, ...] | None:
    """Return the kernel's sizes, ``None`` where only a run tells them."""
    return tuple(node.attributes.get("kernel_shape") or ()) or known_sizes(node, 1, 2) or None


@lowerings.register("Conv", since=11)
def conv(node: OperatorNode, x: torch.Tensor, w: torch.Tensor, b: torch.Tensor | None = None) -> torch.Tensor:
    """Convolution of ``[N, C, D1, ...]`` with ``[M, C/group, K1, ...]``. Source: ONNX Conv-22."""
    kernel, group = _kernel(node), node.attributes.get("group", 1)
    by_sizes = node.attributes.get("auto_pad", "NOTSET").startswith("SAME") and known_sizes(node, 0, 2) is None
    if kernel is None or by_sizes or len(kernel) not in CONVOLUTIONS:
        return _any_conv(x, w, b, window_settings(node), group)
    window = read_window(node, kernel)
    padding = window.pads_begin
    if not window.is_symmetric:
        x = pad_window(x, window, 0.0)
        padding = (0,) * window.rank
    return CONVOLUTIONS[window.rank](x, w, b, window.strides, padding, window.dilations, group)


@recorded
def _any_conv(
    x: torch.Tensor, w: torch.Tensor, b: torch.Tensor | None, settings: Sequence[Any], group: int
) -> torch.Tensor:
    """Convolution whose windows are laid out when the network runs, over any number of axes."""
    windows = lay_out(settings, x.shape[2:], w.shape[2:])
    padded = pad_to_span(x, windows, 0.0)
    rank = len(windows.kernel)
    if rank in CONVOLUTIONS:
        return CONVOLUTIONS[rank](padded, w, b, windows.strides, 0, windows.dilations, group)
    parts = window_view(padded, windows)
    axes = [0, 1, *range(2 + rank, 2 + 2 * rank), *range(2, 2 + rank)]
    count = math.prod(windows.output)
    columns = parts.permute(axes).reshape(x.shape[0], group, w[0].numel(), count)
    y = w.reshape(group, w.shape[0] // group, -1) @ columns
    y = y.reshape(x.shape[0], w.shape[0], *windows.output)
    return y if b is None else y + b.reshape(-1, *(1,) * rank)


@lowerings.register("ConvTranspose", since=11)
def conv_transpose(node: OperatorNode, x: torch.Tensor, w: torch.Tensor, b: torch.Tensor | None = None) -> Any:
    """Transposed convolution of ``[N, C, D1, ...]`` with ``[C, M/group, K1, ...]``. Source: ONNX ConvTranspose-22."""
    kernel, sizes = _kernel(node), known_sizes(node, 0, 2)
    settings = transposed.settings(node)
    group = node.attributes.get("group", 1)
    if kernel is None or (sizes is None and node.attributes.get("output_shape")):
        return transposed.any_conv_transpose(x, w, b, settings, group)
    place = transposed.lay_out(settings, kernel, sizes)
    return transposed.conv_transpose(x, w, b, place, group)


@lowerings.register("DeformConv", since=19)
def deform_conv(
    node: OperatorNode,
    x: torch.Tensor,
    w: torch.Tensor,
    offset: torch.Tensor,
    b: torch.Tensor | None = None,
    mask: torch.Tensor | None = None,
) -> torch.Tensor:
    """Convolution whose windows take their elements from anywhere, and weigh them. Source: ONNX DeformConv-22."""
    strides, pads, dilations = (tuple(node.attributes.get(name) or ()) for name in ("strides", "pads", "dilations"))
    groups = (node.attributes.get("group", 1), node.attributes.get("offset_group", 1))
    return deformable(x, w, offset, b, mask, strides, pads, dilations, groups)


@lowerings.register("Col2Im", since=18)
def col2im(node: OperatorNode, columns: torch.Tensor, image: torch.Tensor, block: torch.Tensor) -> torch.Tensor:
    """Blocks ``[N, C K1 ..., O1 ...]``, added up to images ``[N, C, D1, ...]``. Source: ONNX Col2Im-18."""
    sizes, kernel = integers_of(node, 1, image), integers_of(node, 2, block)
    strides, pads, dilations = (tuple(node.attributes.get(name) or ()) for name in ("strides", "pads", "dilations"))
    return _col2im(columns, sizes, kernel, strides, pads, dilations)


@recorded
def _col2im(
    columns: torch.Tensor, image: Any, block: Any, strides: Sequence[int], pads: Sequence[int], dilations: Sequence[int]
) -> torch.Tensor:
    sizes, kernel = tuple(as_integers(image)), tuple(as_integers(block))
    rank = len(sizes)
    one, none = (1,) * rank, (0,) * rank
    strides, dilations = tuple(strides) or one, tuple(dilations) or one
    begin, end = tuple(pads[:rank]) or none, tuple(pads[rank:]) or none
    if rank == 2 and begin == end and columns.is_floating_point() and columns.numel():
        return F.fold(columns, sizes, kernel, dilations, begin, strides)
    return fold_blocks(columns, sizes, kernel, strides, dilations, begin, end)


@lowerings.register("CausalConvWithState", since=27)
def causal_conv_with_state(
    node: OperatorNode,
    x: torch.Tensor,
    w: torch.Tensor,
    b: torch.Tensor | None = None,
    past: torch.Tensor | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Convolution of each channel with its past, and what the next call needs of it.

    ``y[t] = b + sum(w[j] x[t - k + 1 + j] for j < k)``, before the first step the past state, or 0.
    Source: ONNX CausalConvWithState-27.
    """
    activation = node.attributes.get("activation", "none")
    if activation not in ("none", "silu", "swish"):
        raise InvalidNetworkError(
            f"{node.label} has activation={activation!r}; accepted are 'none', 'silu' and 'swish'."
        )
    kernel = known_sizes(node, 1, 2)
    state = kernel[0] - 1 if kernel else w.size(2) - 1
    channels = (known_sizes(node, 1) or (w.size(0),))[0]
    padded = F.pad(x, (state, 0)) if past is None else torch.cat((past, x), 2)
    y = torch.conv1d(padded, w, b, 1, 0, 1, channels)
    if activation != "none":
        y = F.silu(y)
    return y, torch.narrow(padded, 2, x.size(2), state) if wants(node, 1) else padded
