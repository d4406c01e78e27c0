"""Pooling."""

from __future__ import annotations

import torch
import torch.nn.functional as F  # noqa: N812 - PyTorch's own convention

from deep500.frameworks.pytorch._recording import spread
from deep500.frameworks.pytorch._sizes import integers_of
from deep500.frameworks.pytorch.lowering import _pools as pools
from deep500.frameworks.pytorch.lowering import lowerings
from deep500.frameworks.pytorch.lowering._known import known_dtype, known_shape, known_sizes, wants
from deep500.frameworks.pytorch.lowering._padding import pad_window
from deep500.frameworks.pytorch.lowering._windows import window_settings
from deep500.networks.operator_node import OperatorNode
from deep500.networks.window import Window, read_window

__all__: list[str] = []

_MAXIMUM = {1: torch.max_pool1d, 2: torch.max_pool2d, 3: torch.max_pool3d}
_AVERAGE = {1: F.avg_pool1d, 2: F.avg_pool2d, 3: F.avg_pool3d}
_INDEXED = {1: F.max_pool1d_with_indices, 2: F.max_pool2d_with_indices, 3: F.max_pool3d_with_indices}


def _rounds_up(node: OperatorNode) -> bool:
    """Whether the number of windows is rounded up; by the specification's formulas only with explicit padding."""
    return bool(node.attributes.get("ceil_mode", 0)) and node.attributes.get("auto_pad", "NOTSET") == "NOTSET"


def _known_window(node: OperatorNode) -> Window | None:
    """Return the window, ``None`` where its place depends on sizes that are not known, or no kernel takes its rank."""
    if node.attributes.get("auto_pad", "NOTSET").startswith("SAME") and known_sizes(node, 0, 2) is None:
        return None
    window = read_window(node)
    return window if window.rank in _MAXIMUM else None


def _fits(window: Window) -> bool:
    """Whether PyTorch's own padding can express the window's: equal on both sides, at most half the kernel.

    Its rule for the number of windows is ONNX', so an overhang needs no padding.
    """
    return window.pads_begin == window.pads_end and all(
        2 * p <= k for p, k in zip(window.pads_begin, window.kernel, strict=True)
    )


@lowerings.register("MaxPool", since=12)
def max_pool(node: OperatorNode, x: torch.Tensor) -> torch.Tensor | tuple[torch.Tensor, ...]:
    """Maximum of each window of ``[N, C, D1, ...]``, and its place in the whole tensor. Source: ONNX MaxPool-22."""
    window, with_places = _known_window(node), wants(node, 1)
    column_major = bool(node.attributes.get("storage_order", 0))
    is_float = known_dtype(node, 0) not in ("int8", "uint8")
    if window is None or (window.rank == 1 and not is_float):
        return spread(pools.maximum(x, window_settings(node), column_major), 2)
    if _fits(window):
        arguments = (window.kernel, window.strides, window.pads_begin, window.dilations, _rounds_up(node))
        if not with_places:
            return _MAXIMUM[window.rank](x, *arguments)
        y, places = _INDEXED[window.rank](x, *arguments)
        return y, pools.whole_places(places, x, column_major)
    if with_places or not is_float or window.ceil_mode:
        return spread(pools.maximum(x, window_settings(node), column_major), 2)
    padded = pad_window(x, window, float("-inf"))
    return _MAXIMUM[window.rank](padded, window.kernel, window.strides, 0, window.dilations)


@lowerings.register("AveragePool", since=11)
def average_pool(node: OperatorNode, x: torch.Tensor) -> torch.Tensor:
    """Mean of each window of ``[N, C, D1, ...]``. Source: ONNX AveragePool-22."""
    window = _known_window(node)
    include = bool(node.attributes.get("count_include_pad", 0))
    if window is None or not _fits(window) or any(dilation != 1 for dilation in window.dilations):
        return pools.average(x, window_settings(node), include)
    dtype = known_dtype(node, 0)
    narrow = window.rank == 3 and dtype in ("float16", "bfloat16")  # no kernel of PyTorch on a processor
    arguments = (window.kernel, window.strides, window.pads_begin, _rounds_up(node), include)
    y = _AVERAGE[window.rank](x.to(torch.float32) if narrow else x, *arguments)
    return y.to(getattr(torch, str(dtype))) if narrow else y


@lowerings.register("LpPool", since=11)
def lp_pool(node: OperatorNode, x: torch.Tensor) -> torch.Tensor:
    """``sum(|x|^p)^(1/p)`` of each window of ``[N, C, D1, ...]``. Source: ONNX LpPool-22."""
    return pools.norm(x, window_settings(node), node.attributes.get("p", 2))


@lowerings.register("GlobalAveragePool", since=1)
def global_average_pool(node: OperatorNode, x: torch.Tensor) -> torch.Tensor:
    """Mean over all spatial positions: ``[N, C, D1, ...]`` to ``[N, C, 1, ...]``. Source: ONNX GlobalAveragePool-22."""
    shape = known_shape(node, 0)
    if shape is None or len(shape) == 2:
        return pools.over_positions(x, "mean", 0)
    return torch.mean(x, list(range(2, len(shape))), keepdim=True)


@lowerings.register("GlobalMaxPool", since=1)
def global_max_pool(node: OperatorNode, x: torch.Tensor) -> torch.Tensor:
    """Maximum over all spatial positions: ``[N, C, D1, ...]`` to ``[N, C, 1, ...]``. Source: ONNX GlobalMaxPool-22."""
    shape = known_shape(node, 0)
    if shape is None or len(shape) == 2:
        return pools.over_positions(x, "maximum", 0)
    return torch.amax(x, list(range(2, len(shape))), keepdim=True)


@lowerings.register("GlobalLpPool", since=2)
def global_lp_pool(node: OperatorNode, x: torch.Tensor) -> torch.Tensor:
    """``sum(|x|^p)^(1/p)`` over all spatial positions. Source: ONNX GlobalLpPool-22."""
    return pools.over_positions(x, "norm", node.attributes.get("p", 2))


@lowerings.register("MaxUnpool", since=11)
def max_unpool(
    node: OperatorNode, x: torch.Tensor, places: torch.Tensor, shape: torch.Tensor | None = None
) -> torch.Tensor:
    """Zeros, and each element at its place in the tensor that was pooled. Source: ONNX MaxUnpool-22."""
    names = ("kernel_shape", "strides", "pads")
    values = [tuple(node.attributes.get(name) or ()) for name in names]
    return pools.unpool(x, places, None if shape is None else integers_of(node, 2, shape), *values)


@lowerings.register("MaxRoiPool", since=1)
def max_roi_pool(node: OperatorNode, x: torch.Tensor, regions: torch.Tensor) -> torch.Tensor:
    """Maximum of each part of each region of ``[N, C, H, W]``. Source: ONNX MaxRoiPool-22."""
    return pools.region_maximum(
        x, regions, tuple(node.attributes["pooled_shape"]), node.attributes.get("spatial_scale", 1.0)
    )
