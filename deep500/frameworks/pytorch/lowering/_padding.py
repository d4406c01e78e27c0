"""Padding, and what PyTorch's own cannot express of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812 - PyTorch's own convention

from deep500.frameworks.pytorch._recording import recorded
from deep500.frameworks.pytorch._sizes import as_integers
from deep500.frameworks.pytorch.lowering._plain import moving, taken
from deep500.networks.window import Window

__all__ = [
    "center_crop_pad",
    "pad_by_position",
    "pad_constant",
    "pad_ends",
    "pad_pairs",
    "pad_window",
    "pad_with_number",
    "pad_with_tensor",
]


def pad_window(x: Any, window: Window, value: float) -> Any:
    """Pad ``[N, C, D1, ...]`` with a value so that the window can then be taken without padding."""
    ends = [end + over for end, over in zip(window.pads_end, window.overhang, strict=True)]
    return pad_ends(x, window.pads_begin, ends, value)


def pad_ends(x: Any, begin: tuple[int, ...], end: list[int], value: float) -> Any:
    """Pad the spatial dimensions of ``[N, C, D1, ...]`` with a value."""
    # PyTorch counts dimensions from the last.
    pairs = [n for pair in zip(reversed(begin), reversed(end), strict=True) for n in pair]
    return F.pad(x, pairs, mode="constant", value=value)


def pad_pairs(widths: Sequence[Any], axes: Sequence[int] | None, rank: int) -> list[Any]:
    """Return ONNX' pads of axes as PyTorch's: pairs, the last axis first."""
    names = range(rank) if axes is None else [axis % rank for axis in axes]
    pairs: list[Any] = [0] * (2 * rank)
    for index, axis in enumerate(names):
        place = 2 * (rank - 1 - axis)
        pairs[place], pairs[place + 1] = widths[index], widths[len(names) + index]
    return pairs


@moving
def _pad_moving(x: torch.Tensor, pairs: list[int]) -> torch.Tensor:
    return F.pad(x, pairs)


def pad_constant(x: torch.Tensor, pairs: list[Any], value: Any) -> torch.Tensor:
    """Pad with a number; negative pads take elements away."""
    return F.pad(x, pairs, mode="constant", value=value) if pairs else torch.clone(x)


@recorded
def pad_with_number(x: torch.Tensor, widths: Any, axes: Any, value: Any) -> torch.Tensor:
    """Pad with a number, by pads or axes that are known only when the graph runs."""
    return pad_constant(x, _run_time_pairs(x, widths, axes), value)


@recorded
def pad_with_tensor(x: torch.Tensor, widths: Any, axes: Any, value: torch.Tensor) -> torch.Tensor:
    """Pad with the value of a tensor, which stays on the device and has a gradient."""
    pairs = _run_time_pairs(x, widths, axes)
    if not pairs:
        return x.clone()
    inside = F.pad(torch.ones_like(x, dtype=torch.bool), pairs)
    return torch.where(inside, _pad_moving(x, pairs), value.reshape(()).to(x.dtype))


def _run_time_pairs(x: torch.Tensor, widths: Any, axes: Any) -> list[int]:
    return pad_pairs(as_integers(widths), None if axes is None else as_integers(axes), x.dim())


@recorded
def pad_by_position(x: torch.Tensor, widths: Any, axes: Any, mode: str) -> torch.Tensor:
    """Pad with elements of the tensor itself: its edge, its reflection, or as if it went round.

    Elements that negative pads take away are none that padding can show.
    """
    pairs = _run_time_pairs(x, widths, axes)
    x = _pad_moving(x, [min(width, 0) for width in pairs])
    pairs = [max(width, 0) for width in pairs]
    if not any(pairs):
        return x.clone()
    native = {"reflect": "reflect", "edge": "replicate"}.get(mode)
    if native and _is_native(x, pairs, native):
        return F.pad(x, pairs[: 2 * (x.dim() - 2)], mode=native)
    for axis in range(x.dim()):
        place = 2 * (x.dim() - 1 - axis)
        begin, end = pairs[place : place + 2]
        if begin or end:
            x = taken(x, _positions(x.shape[axis], begin, end, mode, x.device), axis)
    return x


def _is_native(x: torch.Tensor, pairs: list[int], mode: str) -> bool:
    """Whether PyTorch's kernels do it: floating point, the last axes of ``[N, C, D1, ...]``, less than their sizes."""
    if x.dtype not in (torch.float32, torch.float64) or x.dim() not in (3, 4, 5) or not x.numel():
        return False
    if any(pairs[2 * (x.dim() - 2) :]):
        return False
    return mode != "reflect" or all(
        max(pairs[2 * (x.dim() - 1 - axis) : 2 * (x.dim() - axis)]) < x.shape[axis] for axis in range(2, x.dim())
    )


def _positions(size: int, begin: int, end: int, mode: str, device: torch.device) -> torch.Tensor:
    """Return which element of an axis stands at each place of the padded one."""
    places = torch.arange(-begin, size + end, device=device)
    if mode == "edge":
        return places.clamp(0, size - 1)
    if mode == "wrap":
        return places % size
    period = max(2 * (size - 1), 1)
    folded = places % period
    return torch.where(folded >= size, period - folded, folded)


@recorded
def center_crop_pad(x: torch.Tensor, sizes: Any, axes: list[int] | None) -> torch.Tensor:
    """Return the middle of a tensor, or the tensor in the middle of zeros, along axes."""
    wanted = as_integers(sizes)
    names = list(range(x.dim())) if axes is None else [axis % x.dim() for axis in axes]
    widths = [0] * (2 * len(names))
    for index, (axis, size) in enumerate(zip(names, wanted)):
        difference = size - x.shape[axis]
        before = difference // 2 if difference >= 0 else -(-difference // 2)
        widths[index], widths[len(names) + index] = before, difference - before
    pairs = pad_pairs(widths, names, x.dim())
    return _pad_moving(x, pairs) if pairs else x.clone()
