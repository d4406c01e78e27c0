"""Padding that PyTorch's window functions cannot express."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from deep500.networks.window import Window

__all__ = ["pad_explicitly"]


def pad_explicitly(pad: Callable[..., Any], x: Any, window: Window, value: float) -> Any:
    """Pad the spatial dimensions of ``x`` with a value, for a window that is then taken without padding.

    Args:
        pad: ``torch.nn.functional.pad``.
        x: ``[N, C, D1, ...]``.
        window: Whose padding to add.
        value: What to add.
    """
    # PyTorch counts dimensions from the last.
    pairs = [n for pair in zip(reversed(window.pads_begin), reversed(window.pads_end)) for n in pair]
    return pad(x, pairs, mode="constant", value=value)
