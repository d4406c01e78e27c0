"""Pooling."""

from __future__ import annotations

import torch
import torch.nn.functional as F  # noqa: N812 - PyTorch's own convention

from deep500.core.errors import UnsupportedOperatorError
from deep500.frameworks.pytorch.lowering import lowerings
from deep500.frameworks.pytorch.lowering._convolutions import CONVOLUTIONS
from deep500.frameworks.pytorch.lowering._padding import pad_ends, pad_window
from deep500.networks.operator_node import OperatorNode
from deep500.networks.window import Window, read_window

__all__: list[str] = []

_MAXIMUM = {1: torch.max_pool1d, 2: torch.max_pool2d, 3: torch.max_pool3d}
_AVERAGE = {1: F.avg_pool1d, 2: F.avg_pool2d, 3: F.avg_pool3d}


def _fits(window: Window) -> bool:
    """Whether PyTorch's own padding can express the window's: equal on both sides, at most half the kernel."""
    return window.is_symmetric and all(2 * p <= k for p, k in zip(window.pads_begin, window.kernel))


def _check_rank(node: OperatorNode, window: Window) -> None:
    if window.rank not in _MAXIMUM:
        raise UnsupportedOperatorError(f"PyTorch has no pooling over {window.rank} spatial dimensions ({node.label}).")


@lowerings.register("MaxPool", since=12)
def max_pool(node: OperatorNode, x: torch.Tensor) -> torch.Tensor:
    """Maximum of each window of ``[N, C, D1, ...]``."""
    if len([name for name in node.outputs if name]) > 1:
        raise UnsupportedOperatorError(f"The PyTorch adapter does not give the output Indices of {node.label}.")
    window = read_window(node)
    _check_rank(node, window)
    padding = window.pads_begin
    if not _fits(window):
        x = pad_window(x, window, float("-inf"))
        padding = (0,) * window.rank
    return _MAXIMUM[window.rank](x, window.kernel, window.strides, padding, window.dilations, window.ceil_mode)


@lowerings.register("AveragePool", since=11)
def average_pool(node: OperatorNode, x: torch.Tensor) -> torch.Tensor:
    """Mean of each window of ``[N, C, D1, ...]``."""
    window = read_window(node)
    _check_rank(node, window)
    include = bool(node.attributes.get("count_include_pad", 0))
    if _fits(window) and not any(dilation != 1 for dilation in window.dilations):
        pool = _AVERAGE[window.rank]
        return pool(x, window.kernel, window.strides, window.pads_begin, window.ceil_mode, include)
    if window.ceil_mode:
        raise UnsupportedOperatorError(
            f"{node.label} has ceil_mode over symbolic sizes with dilation or uneven padding, which the PyTorch "
            f"adapter cannot lay out. Declare the sizes in the network's inputs."
        )
    total = _window_sum(window, pad_window(x, window, 0.0))
    ones = torch.ones_like(x)
    counted = pad_window(ones, window, 0.0)
    if include:
        padded = pad_ends(ones, window.pads_begin, list(window.pads_end), 1.0)
        counted = pad_ends(padded, (0,) * window.rank, list(window.overhang), 0.0)
    # A window without any element that counts gives 0.
    return total / torch.clamp_min(_window_sum(window, counted), 1.0)


def _window_sum(window: Window, x: torch.Tensor) -> torch.Tensor:
    """Return the sum of each window of ``[N, C, D1, ...]``, which is padded already: a convolution with ones."""
    channels = x.size(1)
    ones = x.new_ones((channels, 1, *window.kernel))
    return CONVOLUTIONS[window.rank](x, ones, None, window.strides, 0, window.dilations, channels)


@lowerings.register("GlobalAveragePool", since=1)
def global_average_pool(node: OperatorNode, x: torch.Tensor) -> torch.Tensor:
    """Mean over all spatial positions: ``[N, C, D1, ...]`` to ``[N, C, 1, ...]``."""
    axes = list(range(2, node.rank()))
    return torch.mean(x, axes, keepdim=True) if axes else x


@lowerings.register("GlobalMaxPool", since=1)
def global_max_pool(node: OperatorNode, x: torch.Tensor) -> torch.Tensor:
    """Maximum over all spatial positions: ``[N, C, D1, ...]`` to ``[N, C, 1, ...]``."""
    axes = list(range(2, node.rank()))
    return torch.amax(x, axes, keepdim=True) if axes else x
