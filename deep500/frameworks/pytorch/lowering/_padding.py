"""Padding that PyTorch's window functions cannot express."""

from __future__ import annotations

from typing import Any

import torch.nn.functional as F  # noqa: N812 - PyTorch's own convention

from deep500.networks.window import Window

__all__ = ["pad_ends", "pad_window"]


def pad_window(x: Any, window: Window, value: float) -> Any:
    """Pad ``[N, C, D1, ...]`` with a value so that the window can then be taken without padding."""
    ends = [end + over for end, over in zip(window.pads_end, window.overhang, strict=True)]
    return pad_ends(x, window.pads_begin, ends, value)


def pad_ends(x: Any, begin: tuple[int, ...], end: list[int], value: float) -> Any:
    """Pad the spatial dimensions of ``[N, C, D1, ...]`` with a value."""
    # PyTorch counts dimensions from the last.
    pairs = [n for pair in zip(reversed(begin), reversed(end), strict=True) for n in pair]
    return F.pad(x, pairs, mode="constant", value=value)
