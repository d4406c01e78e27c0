"""Convolutions."""

from __future__ import annotations

import torch

from deep500.core.errors import UnsupportedOperatorError
from deep500.frameworks.pytorch.lowering import lowerings
from deep500.frameworks.pytorch.lowering._convolutions import CONVOLUTIONS
from deep500.frameworks.pytorch.lowering._padding import pad_window
from deep500.networks.operator_node import OperatorNode
from deep500.networks.window import read_window

__all__: list[str] = []


@lowerings.register("Conv", since=11)
def conv(node: OperatorNode, x: torch.Tensor, w: torch.Tensor, b: torch.Tensor | None = None) -> torch.Tensor:
    """Convolution of ``[N, C, D1, ...]`` with ``[M, C/group, K1, ...]``."""
    kernel = node.input_types[1].shape if len(node.input_types) > 1 and node.input_types[1] is not None else None
    window = read_window(node, None if kernel is None else [int(k or 0) for k in kernel[2:]])
    if window.rank not in CONVOLUTIONS:
        raise UnsupportedOperatorError(
            f"PyTorch has no convolution over {window.rank} spatial dimensions ({node.label})."
        )
    padding = window.pads_begin
    if not window.is_symmetric:
        x = pad_window(x, window, 0.0)
        padding = (0,) * window.rank
    group = node.attributes.get("group", 1)
    return CONVOLUTIONS[window.rank](x, w, b, window.strides, padding, window.dilations, group)
