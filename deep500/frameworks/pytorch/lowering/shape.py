"""Shapes: the same elements in another arrangement, parts of them, and more of them."""

from __future__ import annotations

from typing import Any

import torch

from deep500.frameworks.pytorch._sizes import integers_of
from deep500.frameworks.pytorch.lowering import _padding as padding
from deep500.frameworks.pytorch.lowering import _shapes as shapes
from deep500.frameworks.pytorch.lowering import lowerings
from deep500.frameworks.pytorch.lowering._texts import texts_on_host
from deep500.networks.operator_node import OperatorNode

__all__: list[str] = []


@lowerings.register("Identity", since=1)
def identity(node: OperatorNode, x: Any) -> Any:
    """The input itself, of any kind. Source: ONNX Identity-25."""
    return x


@lowerings.register("Shape", since=15)
def shape(node: OperatorNode, x: Any) -> Any:
    """Sizes of the axes from ``start`` to ``end``. Source: ONNX Shape-25."""
    start, end = node.attributes.get("start", 0), node.attributes.get("end")
    kind = node.input_types[0]
    sizes = None if kind is None or kind.shape is None else kind.shape[start:end]
    if sizes is not None and all(isinstance(size, int) for size in sizes):
        return torch.tensor(sizes, dtype=torch.int64)
    return shapes.shape(x, start, end)


@lowerings.register("Size", since=13)
def size(node: OperatorNode, x: Any) -> Any:
    """The number of elements. Source: ONNX Size-25."""
    kind = node.input_types[0]
    if kind is not None and kind.shape is not None and all(isinstance(n, int) for n in kind.shape):
        return torch.tensor(kind.shape, dtype=torch.int64).prod()
    return shapes.element_count(x)


@lowerings.register("Flatten", since=9)
@texts_on_host
def flatten(node: OperatorNode, x: torch.Tensor) -> torch.Tensor:
    """``[D0, ..., Dn]`` to ``[D0 ... D(axis-1), D(axis) ... Dn]``. Source: ONNX Flatten-25."""
    kind = node.input_types[0]
    axis = node.attributes.get("axis", 1)
    if kind is None or kind.rank is None:
        return shapes.flatten(x, axis)
    rank = kind.rank
    axis = axis + rank if axis < 0 else axis
    if axis == 1 and rank > 1:
        return torch.flatten(x, 1)
    if axis == 0:
        return torch.reshape(x, (1, x.numel()))
    return shapes.flatten(x, axis)


@lowerings.register("Reshape", since=5)
@texts_on_host
def reshape(node: OperatorNode, x: torch.Tensor, shape: torch.Tensor) -> torch.Tensor:
    """The elements in a given shape: 0 keeps a size (unless ``allowzero``), -1 takes what is left.

    Source: ONNX Reshape-25.
    """
    sizes = integers_of(node, 1, shape)
    keep = not node.attributes.get("allowzero", 0)
    if not isinstance(sizes, tuple):
        return shapes.reshape(x, sizes, keep)
    numbers = [size for size in sizes if isinstance(size, int)]
    if 0 in numbers and -1 in numbers:
        return shapes.reshape(x, sizes, keep)
    kept = [x.size(axis) if isinstance(size, int) and size == 0 and keep else size for axis, size in enumerate(sizes)]
    return torch.reshape(x, tuple(kept))


@lowerings.register("Transpose", since=1)
@texts_on_host
def transpose(node: OperatorNode, x: torch.Tensor) -> torch.Tensor:
    """Dimensions in another order, reversed by default. Source: ONNX Transpose-25."""
    order = node.attributes.get("perm")
    if order is None:
        order = list(reversed(range(node.rank())))
    return torch.permute(x, tuple(order))


@lowerings.register("Concat", since=4)
@texts_on_host
def concat(node: OperatorNode, *tensors: torch.Tensor) -> torch.Tensor:
    """Tensors one after the other along an axis. Source: ONNX Concat-13."""
    return torch.cat(list(tensors), node.attributes["axis"])


@lowerings.register("Squeeze", since=13)
@texts_on_host
def squeeze(node: OperatorNode, x: torch.Tensor, axes: torch.Tensor | None = None) -> torch.Tensor:
    """Without dimensions of size 1: the named ones, or all. Source: ONNX Squeeze-25."""
    if not node.is_given(1):
        return torch.squeeze(x)
    names, kind = integers_of(node, 1, axes), node.input_types[0]
    if not isinstance(names, tuple) or kind is None or kind.rank is None:
        return shapes.squeeze(x, names)
    rank = kind.rank
    dropped = {axis % rank for axis in names} if rank else set()
    # PyTorch's squeeze would keep an axis that is not 1 without a word; a reshape fails.
    return torch.reshape(x, tuple(x.size(axis) for axis in range(rank) if axis not in dropped))


@lowerings.register("Unsqueeze", since=13)
@texts_on_host
def unsqueeze(node: OperatorNode, x: torch.Tensor, axes: torch.Tensor) -> torch.Tensor:
    """With dimensions of size 1 where the axes of the output say. Source: ONNX Unsqueeze-25."""
    names, kind = integers_of(node, 1, axes), node.input_types[0]
    if not isinstance(names, tuple) or kind is None or kind.rank is None:
        return shapes.unsqueeze(x, names)
    rank = kind.rank + len(names)
    for axis in sorted(int(a) % rank for a in names):
        x = torch.unsqueeze(x, axis)
    return x


@lowerings.register("Expand", since=8)
@texts_on_host
def expand(node: OperatorNode, x: torch.Tensor, shape: torch.Tensor) -> torch.Tensor:
    """The elements repeated along axes of size 1, as broadcasting does. Source: ONNX Expand-13."""
    sizes, kind = integers_of(node, 1, shape), node.input_types[0]
    if kind is None or kind.rank is None or not _are_numbers(sizes):
        return shapes.expand(x, sizes)
    rank = kind.rank
    sizes = (*[1] * (rank - len(sizes)), *sizes)
    # 1 leaves an axis as it is, which PyTorch says with -1 where the axis exists.
    kept = [-1 if size == 1 and axis >= len(sizes) - rank else size for axis, size in enumerate(sizes)]
    return x.expand(*kept) if kept else x


@lowerings.register("Tile", since=6)
@texts_on_host
def tile(node: OperatorNode, x: torch.Tensor, repeats: torch.Tensor) -> torch.Tensor:
    """The tensor again and again along every axis. Source: ONNX Tile-13."""
    counts = integers_of(node, 1, repeats)
    return torch.tile(x, counts) if isinstance(counts, tuple) else shapes.tile(x, counts)


@lowerings.register("Slice", since=10)
@texts_on_host
def slice_axes(
    node: OperatorNode,
    x: torch.Tensor,
    starts: torch.Tensor,
    ends: torch.Tensor,
    axes: torch.Tensor | None = None,
    steps: torch.Tensor | None = None,
) -> torch.Tensor:
    """``x[start:end:step]`` along axes, the first ones by default. Source: ONNX Slice-13."""
    first, last, names, strides = (integers_of(node, i, v) for i, v in enumerate((starts, ends, axes, steps), 1))
    names = tuple(range(len(first))) if names is None and isinstance(first, tuple) else names
    strides = (1,) * len(first) if strides is None and isinstance(first, tuple) else strides
    kind = node.input_types[0]
    rank = None if kind is None else kind.rank
    known = all(isinstance(values, tuple) for values in (first, last, names, strides))
    if rank is None or not known or not all(isinstance(step, int) and step > 0 for step in strides):
        return shapes.slice_axes(x, first, last, names, strides)
    parts = [slice(None)] * rank
    for axis, start, end, step in zip(names, first, last, strides, strict=True):
        parts[axis] = shapes.bounded_slice(start, end, step)
    return x[tuple(parts)]


@lowerings.register("Split", since=18)
@texts_on_host
def split(node: OperatorNode, x: torch.Tensor, sizes: torch.Tensor | None = None) -> tuple[torch.Tensor, ...]:
    """Parts along an axis, of given sizes or of equal ones (the last may be smaller). Source: ONNX Split-18."""
    axis, count = node.attributes.get("axis", 0), len(node.outputs)
    given = integers_of(node, 1, sizes)
    if isinstance(given, tuple):
        parts: Any = torch.split(x, list(given), axis)
    elif given is not None:
        parts = shapes.split(x, given, axis)
    else:
        parts = shapes.split_evenly(x, node.attributes.get("num_outputs", count), axis)
    return tuple(parts[index] for index in range(count))


@lowerings.register("Trilu", since=14)
def trilu(node: OperatorNode, x: torch.Tensor, diagonal: torch.Tensor | None = None) -> torch.Tensor:
    """The upper or lower triangles of matrices, zero elsewhere. Source: ONNX Trilu-14."""
    offset = integers_of(node, 1, diagonal) if node.is_given(1) else (0,)
    return shapes.triangle(x, offset, bool(node.attributes.get("upper", 1)))


@lowerings.register("DepthToSpace", since=11)
@texts_on_host
def depth_to_space(node: OperatorNode, x: torch.Tensor) -> torch.Tensor:
    """``[N, C b b, H, W]`` to ``[N, C, H b, W b]``. Source: ONNX DepthToSpace-28."""
    block, mode = node.attributes["blocksize"], node.attributes.get("mode", "DCR")
    n, c, h, w = (x.size(axis) for axis in range(4))
    depth = c // (block * block)
    if mode == "CRD":
        return torch.pixel_shuffle(x, block)
    parts = torch.reshape(x, (n, block, block, depth, h, w))
    return torch.reshape(torch.permute(parts, (0, 3, 4, 1, 5, 2)), (n, depth, h * block, w * block))


@lowerings.register("SpaceToDepth", since=1)
@texts_on_host
def space_to_depth(node: OperatorNode, x: torch.Tensor) -> torch.Tensor:
    """``[N, C, H b, W b]`` to ``[N, C b b, H, W]``. Source: ONNX SpaceToDepth-28."""
    block, mode = node.attributes["blocksize"], node.attributes.get("mode", "DCR")
    if mode == "CRD":
        return torch.pixel_unshuffle(x, block)
    n, c, h, w = (x.size(axis) for axis in range(4))
    parts = torch.reshape(x, (n, c, h // block, block, w // block, block))
    return torch.reshape(torch.permute(parts, (0, 3, 5, 1, 2, 4)), (n, c * block * block, h // block, w // block))


@lowerings.register("ReverseSequence", since=10)
@texts_on_host
def reverse_sequence(node: OperatorNode, x: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
    """The first ``lengths[i]`` steps of sequence i in reversed order. Source: ONNX ReverseSequence-28."""
    return shapes.reverse_sequence(
        x, lengths, node.attributes.get("time_axis", 0), node.attributes.get("batch_axis", 1)
    )


@lowerings.register("Pad", since=18)
@texts_on_host
def pad(
    node: OperatorNode, x: torch.Tensor, pads: torch.Tensor, value: Any = None, axes: torch.Tensor | None = None
) -> torch.Tensor:
    """With more elements before and after, or fewer where pads are negative. Source: ONNX Pad-25."""
    widths, names = integers_of(node, 1, pads), integers_of(node, 3, axes)
    mode = node.attributes.get("mode", "constant")
    if mode != "constant":
        return padding.pad_by_position(x, widths, names, mode)
    if node.is_given(2) and 2 not in node.constants:
        return padding.pad_with_tensor(x, widths, names, value)
    number = node.constants[2].reshape(()).item() if node.is_given(2) else 0
    kind = node.input_types[0]
    if (
        isinstance(widths, tuple)
        and kind is not None
        and kind.rank is not None
        and (names is None or isinstance(names, tuple))
    ):
        return padding.pad_constant(x, padding.pad_pairs(widths, names, kind.rank), number)
    return padding.pad_with_number(x, widths, names, number)


@lowerings.register("CenterCropPad", since=18)
@texts_on_host
def center_crop_pad(node: OperatorNode, x: torch.Tensor, shape: torch.Tensor) -> torch.Tensor:
    """The middle of a tensor, or the tensor in the middle of zeros. Source: ONNX CenterCropPad-18."""
    return padding.center_crop_pad(x, integers_of(node, 1, shape), node.attributes.get("axes"))


def _are_numbers(values: Any) -> bool:
    return isinstance(values, tuple) and all(isinstance(value, int) for value in values)
