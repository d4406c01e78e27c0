"""Convolution over elements that are interpolated at any place."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
import torch.nn.functional as F  # noqa: N812 - PyTorch's own convention

from deep500.core.errors import UnsupportedOperatorError
from deep500.frameworks.pytorch._recording import recorded

__all__ = ["deformable"]


@recorded
def deformable(
    x: torch.Tensor,
    w: torch.Tensor,
    offset: torch.Tensor,
    b: torch.Tensor | None,
    mask: torch.Tensor | None,
    strides: Sequence[int],
    pads: Sequence[int],
    dilations: Sequence[int],
    groups: Sequence[int],
) -> torch.Tensor:
    """Deformable convolution of ``[N, C, D1, ...]``; ``groups`` are those of channels and those of offsets."""
    dtype, rank = x.dtype, x.dim() - 2
    if not 1 <= rank <= 3:
        raise UnsupportedOperatorError(
            f"PyTorch interpolates over one to three spatial axes; the input of DeformConv has {rank}."
        )
    group, offset_group = groups
    count, channels, output = x.shape[0], x.shape[1], offset.shape[2:]
    elements, places = math.prod(w.shape[2:]), math.prod(output)
    wide = torch.float64 if dtype == torch.float64 else torch.float32  # places in half precision would be wrong
    shift = offset.to(wide).reshape(count * offset_group, elements, rank, *output)
    grid = _grid(x, w, shift, strides or (1,) * rank, pads or (0,) * (2 * rank), dilations or (1,) * rank)
    sizes = (1, *x.shape[2:]) if rank == 1 else x.shape[2:]
    source = x.to(wide).reshape(count * offset_group, channels // offset_group, *sizes)
    source = F.pad(source, [w for size in reversed(sizes) for w in (0, _rounded(size) - size)])
    taken = F.grid_sample(source, grid, mode="bilinear", padding_mode="zeros", align_corners=False)
    taken = taken.reshape(count, offset_group, channels // offset_group, elements, places)
    if mask is not None:
        taken = taken * mask.to(wide).reshape(count, offset_group, 1, elements, places)
    columns = taken.reshape(count, group, channels // group * elements, places)
    y = w.to(wide).reshape(group, w.shape[0] // group, -1) @ columns
    y = y.reshape(count, w.shape[0], *output)
    return (y if b is None else y + b.to(wide).reshape(-1, *(1,) * rank)).to(dtype)


def _rounded(size: int) -> int:
    """Return the power of two from a size on: places divided by it, and multiplied again, are not rounded."""
    return 1 << max(size - 1, 0).bit_length()


def _grid(
    x: torch.Tensor,
    w: torch.Tensor,
    shift: torch.Tensor,
    strides: Sequence[int],
    pads: Sequence[int],
    dilations: Sequence[int],
) -> torch.Tensor:
    """Return where the elements of all windows lie, from -1 to 1 and the last axis first, as PyTorch samples."""
    kernel, output = w.shape[2:], shift.shape[3:]
    rank = len(kernel)
    found = []
    for axis in range(rank):
        element = torch.arange(kernel[axis], device=x.device) * dilations[axis] - pads[axis]
        window = torch.arange(output[axis], device=x.device) * strides[axis]
        element = element.reshape([-1 if other == axis else 1 for other in range(rank)]).expand(kernel)
        window = window.reshape([-1 if other == axis else 1 for other in range(rank)])
        place = element.reshape(-1, *(1,) * rank) + window + shift[:, :, axis]
        found.append((2 * place + 1) / _rounded(x.shape[2 + axis]) - 1)
    if rank == 1:  # sampled as an image of one row
        found.insert(0, torch.zeros_like(found[0]))
    grid = torch.stack(found[::-1], -1)
    shape = (grid.shape[0], grid.shape[1], -1, *((1,) if rank == 3 else ()), max(rank, 2))
    return grid.reshape(shape)
